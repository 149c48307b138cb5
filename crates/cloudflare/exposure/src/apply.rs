//! An ordered plan → calls, one step after the other, each noted before the next begins.
//!
//! While protection steps run, the tunnel's configuration and the zone are told that a write is to come, so that names
//! which are published together go out together.

mod app;
mod policy;
mod records;
mod redirect;
mod rule;
mod sight;
mod token;

use std::collections::{BTreeMap, BTreeSet};

use portolan_cloudflare_api::document::TUNNEL_CONFIGURATION;
use portolan_cloudflare_api::objects::DnsRecord;
use portolan_cloudflare_api::{
    ApiError, Client, CollectionHandle, ErrorClass, Lane, NearlyFull, PendingWrite, collections, is_near,
};
use portolan_core::{Change, Class, Notice, Plan, Problem};
use portolan_publication::Footprint;

use crate::app::{APPS, App};
use crate::inventory::Inventory;
use crate::journal::{Applied, Failed, Journal};
use crate::policy::{POLICIES, ReusablePolicy};
use crate::quota::{self, Counted};
use crate::step::{Course, Exposure, ExposureStep, Stage, Work};
use crate::token::{ServiceToken, TOKENS};
use sight::AppSight;

/// Carries a plan out.
pub async fn apply(client: &Client, exposure: &Exposure, journal: &impl Journal) -> Result<Applied, Failed> {
    apply_again(client, exposure, journal, 0).await
}

/// The same as the n-th attempt in a row: a failure that may pass is waited out as long as the client's policy allows.
pub(crate) async fn apply_again(
    client: &Client,
    exposure: &Exposure,
    journal: &impl Journal,
    attempt: u32,
) -> Result<Applied, Failed> {
    portolan_core::waypoint!();
    let mut run = StepRun::new(client, exposure, journal, attempt);
    for step in &exposure.steps {
        run.take(step).await;
        if run.is_over() {
            break;
        }
    }
    run.finish()
}

/// A step that did not succeed.
struct Fault {
    problem: Problem,
    stale: bool,
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self { problem, stale: false }
    }
}

/// What a step really changed.
enum StepEffect {
    /// As planned.
    Planned,
    /// Nothing was left to do.
    Nothing,
    /// Something else than planned.
    Changed(Change),
}

struct StepRun<'a, J> {
    client: &'a Client,
    exposure: &'a Exposure,
    journal: &'a J,
    attempt: u32,
    /// The part that is being written.
    stage: Option<Stage>,
    held: Inventory,
    /// The application as it was last seen in this run.
    app: Option<App>,
    seen: AppSight,
    /// Our own reusable policies that were made in this run, by name.
    own: BTreeMap<String, String>,
    notices: Vec<Notice>,
    changes: Vec<Change>,
    token_created: bool,
    faults: Vec<(Stage, Fault)>,
    /// The first step whose content the API refused.
    refused: Option<ExposureStep>,
    expected_edits: BTreeMap<String, PendingWrite>,
    expected_records: BTreeMap<String, PendingWrite<DnsRecord>>,
}

impl<'a, J: Journal> StepRun<'a, J> {
    fn new(client: &'a Client, exposure: &'a Exposure, journal: &'a J, attempt: u32) -> Self {
        let mut run = Self {
            client,
            exposure,
            journal,
            attempt,
            stage: None,
            held: exposure.held.clone(),
            app: None,
            seen: AppSight::default(),
            own: BTreeMap::new(),
            notices: exposure.notices.clone(),
            changes: Vec::new(),
            token_created: false,
            faults: Vec::new(),
            refused: None,
            expected_edits: BTreeMap::new(),
            expected_records: BTreeMap::new(),
        };
        run.announce();
        run
    }

    /// Says what is to be written later.
    fn announce(&mut self) {
        for step in self.exposure.steps.iter().skip(1) {
            match &step.work {
                Work::EnsureRule { rule, .. } => {
                    let document = self.client.document(&TUNNEL_CONFIGURATION, self.account(), &rule.tunnel_id);
                    self.expected_edits.entry(rule.tunnel_id.clone()).or_insert_with(|| document.expect());
                }
                Work::Records { zone_id, .. } => {
                    let records = self.zone(zone_id);
                    self.expected_records.entry(zone_id.clone()).or_insert_with(|| records.expect());
                }
                _ => {}
            }
        }
    }

    fn account(&self) -> &'a str {
        &self.exposure.account_id
    }

    fn zone(&self, zone_id: &str) -> std::sync::Arc<CollectionHandle<DnsRecord>> {
        self.client.records(&collections::DNS_RECORDS, zone_id)
    }

    fn apps(&self) -> std::sync::Arc<CollectionHandle<App>> {
        self.client.records(&APPS, self.account())
    }

    fn tokens(&self) -> std::sync::Arc<CollectionHandle<ServiceToken>> {
        self.client.records(&TOKENS, self.account())
    }

    fn policies(&self) -> std::sync::Arc<CollectionHandle<ReusablePolicy>> {
        self.client.records(&POLICIES, self.account())
    }

    /// Taking names away comes first, and so does what protects a name that can be reached.
    fn lane(&self) -> Lane {
        match (self.exposure.course, self.stage) {
            (Course::Withdraw, _) => Lane::Protect,
            (Course::Publish, Some(Stage::App | Stage::Policy | Stage::Token)) if !self.held.hostnames().is_empty() => {
                Lane::Protect
            }
            (Course::Publish, _) => Lane::Change,
        }
    }

    fn footprint(&self) -> Footprint {
        self.held.footprint(&self.exposure.place)
    }

    async fn take(&mut self, step: &ExposureStep) {
        let stage = step.work.stage();
        if self.faults.iter().any(|(failed, _)| self.blocks(*failed, stage)) {
            return;
        }
        self.stage = Some(stage);
        let done = match self.perform(step).await {
            Ok(done) => done,
            Err(fault) => {
                // What may pass is waited out, and what is gone or in the way is seen by the next look.
                if fault.stale && fault.problem.class == Class::Invalid {
                    self.refused.get_or_insert_with(|| step.clone());
                }
                return self.faults.push((stage, fault));
            }
        };
        match done {
            StepEffect::Planned => self.changes.extend(step.changes.iter().cloned()),
            StepEffect::Nothing => {}
            StepEffect::Changed(change) => self.changes.push(change),
        }
        self.notices.extend(self.near_limits(&step.work));
        if let Err(problem) = self.journal.reached(&self.footprint(), step.work.operation()).await {
            self.faults.push((stage, problem.into()));
        }
    }

    /// The limit that a step brought near, told by the first one who does.
    fn near_limits(&self, work: &Work) -> Option<Notice> {
        let (what, near) = match work {
            Work::CreateToken { .. } => (Counted::Tokens, self.tokens().nearly_full()),
            Work::CreatePolicy { .. } => (Counted::Policies, self.policies().nearly_full()),
            Work::CreateApp { .. } => match self.apps().nearly_full() {
                Some(near) => (Counted::Apps, Some(near)),
                None => (Counted::Domains, self.near_domains()),
            },
            Work::UpdateApp { .. } => (Counted::Domains, self.near_domains()),
            Work::Records { zone_id, .. } => (Counted::Records, self.zone(zone_id).nearly_full()),
            _ => return None,
        };
        near.map(|near| quota::nearly_reached(what, near))
    }

    /// How many domains the application has that was just written, where that is nearly too many.
    fn near_domains(&self) -> Option<NearlyFull> {
        let (used, limit) = (self.app.as_ref()?.domains(), self.client.limits().domains_per_application()?);
        is_near(used, limit).then_some(NearlyFull { used, limit })
    }

    fn blocks(&self, failed: Stage, stage: Stage) -> bool {
        match self.exposure.course {
            Course::Publish => true,
            Course::Withdraw => {
                let is_wall = stage == Stage::Rule && failed == Stage::Record && self.walls_depths();
                is_wall || stage.is_removed_after(failed)
            }
        }
    }

    /// Whether a protected wildcard is held. Deeper than its application reaches the rule alone protects it: without the
    /// rule, its record leads to the tunnel's last one.
    fn walls_depths(&self) -> bool {
        self.held.app.is_some() && self.held.rules.iter().any(|held| held.hostname.starts_with("*."))
    }

    fn is_over(&self) -> bool {
        self.exposure.course == Course::Publish && !self.faults.is_empty()
    }

    async fn perform(&mut self, step: &ExposureStep) -> Result<StepEffect, Fault> {
        match &step.work {
            Work::CreateToken { name, duration, rotation } => {
                self.create_token(name, duration, rotation.as_ref()).await
            }
            Work::RotateToken { id, keep_until, rotation } => {
                self.rotate_token(id, *keep_until, rotation.as_ref()).await
            }
            Work::UpdateToken { id, name, duration } => self.update_token(id, name, duration).await,
            Work::RefreshToken { id } => self.refresh_token(id).await,
            Work::DeleteToken { id } => self.delete_token(id).await,
            Work::CreatePolicy { own } => self.create_policy(own).await,
            Work::UpdatePolicy { id, own } => self.update_policy(id, own).await,
            Work::DeletePolicy { id } => self.delete_policy(id).await,
            Work::CreateApp { wish } => self.create_app(wish).await,
            Work::UpdateApp { id, found, wish } => self.update_app(id, found.as_ref(), wish).await,
            Work::ConfirmApp { id, wish, taken } => self.confirm_app(id, wish, *taken).await,
            Work::DetachToken { app_id, token_id } => self.detach_token(app_id, token_id).await,
            Work::DeleteApp { id } => self.delete_app(id).await,
            Work::EnsureRule { hostname, rule, wall, claim } => self.ensure_rule(hostname, rule, wall, claim).await,
            Work::RemoveRule { hostname, tunnel_id, claim } => self.remove_rule(hostname, tunnel_id, claim).await,
            Work::Records { zone_id, hostname, work } => self.write_records(zone_id, hostname, work).await,
            Work::CreateRedirect { zone_id, hostname, ruleset_id, body } => {
                self.create_redirect(zone_id, hostname, ruleset_id.as_deref(), body).await
            }
            Work::UpdateRedirect { zone_id, ruleset_id, rule_id, body } => {
                self.update_redirect(zone_id, ruleset_id, rule_id, body).await
            }
            Work::DeleteRedirect { zone_id, ruleset_id, rule_id } => {
                self.delete_redirect(zone_id, ruleset_id, rule_id).await
            }
        }
    }

    /// What a refused call means: something that the plan did not know of, or a refusal. What may pass was waited out by
    /// whoever sent it.
    fn fault(&self, error: &ApiError, doing: &str) -> Fault {
        let stale = matches!(error.class, ErrorClass::NotFound | ErrorClass::Conflict);
        Fault { problem: error.problem(doing), stale }
    }

    /// What a refused call means that nobody repeats, since it may have arrived: after a pause it is planned again.
    async fn fault_of_post(&self, error: &ApiError, doing: &str) -> Fault {
        let fault = self.fault(error, doing);
        let stale = fault.stale || self.client.again(error, self.attempt).await;
        Fault { stale, ..fault }
    }

    #[expect(clippy::result_large_err, reason = "it is handed on once, at the end of a run")]
    fn finish(mut self) -> Result<Applied, Failed> {
        let footprint = self.footprint();
        let changes: Plan = self.changes.into_iter().collect();
        let (notices, token_created) = (self.notices, self.token_created);
        if self.faults.is_empty() {
            return Ok(Applied { footprint, notices, token_created, changes });
        }
        let stale = self.faults.iter().any(|(_, fault)| fault.stale);
        let (_, Fault { mut problem, .. }) = self.faults.remove(0);
        let mut said: BTreeSet<String> = [problem.message.clone()].into();
        for (_, fault) in self.faults {
            if said.insert(fault.problem.message.clone()) {
                problem.message = format!("{}; {}", problem.message, fault.problem.message);
            }
        }
        Err(Failed { footprint, problem, stale, refused: self.refused, notices, token_created, changes })
    }
}
