//! Record and world → the ordered steps after which nothing of ours is left. Pure.
//!
//! What publishes goes first and what protects last. Everything is looked at before it is deleted: a record that somebody
//! else marked, or an application that now stands for another name, is not ours any more.

use portolan_cloudflare_api::Entry;
use portolan_core::{Change, Mark, Notice, Problem};
use portolan_publication::{Footprint, Part};
use serde_json::json;

use crate::app::App;
use crate::changes;
use crate::inventory::{AppHeld, Inventory, RecordKind, RuleHeld, TokenHeld, ZoneAndTunnel};
use crate::live::Live;
use crate::plan::{
    find_records, find_redirects, find_rules, known_names, old_apps_gone, policy_gone, released, removal, rule_gone,
    token_gone, unrecorded_app, unrecorded_token,
};
use crate::plan_context::PlanContext;
use crate::policy::is_marked;
use crate::step::{Course, Exposure, ExposureStep, RuleClaim, Work};

const WHY: &str = "the name is withdrawn";
/// What follows a tunnel's id in the name that a CNAME leads to.
pub(crate) const TUNNEL_DOMAIN: &str = ".cfargotunnel.com";

/// What to do so that nothing of ours is left for a name.
pub fn withdraw(mark: &Mark, recorded: &Footprint, live: &Live, context: &PlanContext) -> Result<Exposure, Problem> {
    let mut withdrawal =
        Withdrawal { mark, recorded, live, context, held: Inventory::read(recorded), notices: Vec::new() };
    let mut steps = withdrawal.records();
    steps.extend(withdrawal.rules());
    steps.extend(withdrawal.redirects());
    steps.extend(withdrawal.app());
    steps.extend(withdrawal.old_apps());
    steps.extend(withdrawal.policies());
    steps.extend(withdrawal.token());
    Ok(withdrawal.finish(steps))
}

struct Withdrawal<'a> {
    mark: &'a Mark,
    recorded: &'a Footprint,
    live: &'a Live,
    context: &'a PlanContext,
    held: Inventory,
    notices: Vec<Notice>,
}

impl<'a> Withdrawal<'a> {
    fn account_id(&self) -> Option<String> {
        let intended = || self.context.intent.as_ref().and_then(|intent| intent.account_id.clone());
        self.recorded.account_id.clone().or_else(intended)
    }

    fn account(&self) -> String {
        self.account_id().unwrap_or_default()
    }

    fn records(&mut self) -> Vec<ExposureStep> {
        find_records(&mut self.held, self.live, self.mark, None);
        let mut steps: Vec<ExposureStep> = Vec::new();
        for held in &self.held.records {
            let Some(entry) = self.live.record(&held.zone_id, &held.id) else { continue };
            if held.adopted {
                self.notices.push(released(Part::Record, &held.id));
            }
            let (change, work) = removal(self.mark, held, entry);
            let (zone_id, hostname) = (held.zone_id.clone(), held.hostname.clone());
            let work = Work::Records { zone_id, hostname, work: vec![work] };
            steps.push(ExposureStep { changes: change.into_iter().collect(), work });
        }
        steps
    }

    fn rules(&mut self) -> Vec<ExposureStep> {
        find_rules(&mut self.held, self.live, self.context);
        self.find_rules();
        let mut steps = Vec::new();
        let intended: Vec<String> =
            self.context.intent.iter().flat_map(|intent| intent.rules.iter().cloned()).collect();
        for held in self.held.rules.clone() {
            if held.adopted {
                self.notices.push(released(Part::Rule, &held.hostname));
                self.held.rules.retain(|other| *other != held);
                continue;
            }
            let claim = RuleClaim { ours: true, intended: intended.clone(), adopt: false };
            steps.extend(rule_gone(self.live, &held, claim, WHY));
        }
        steps
    }

    /// A CNAME with our mark was made behind a rule of ours.
    fn find_rules(&mut self) {
        let adopted = self.recorded.is_adopted(Part::Rule);
        let cnames = self.held.records.iter().filter(|held| held.kind == RecordKind::Cname && !held.adopted);
        let targets = cnames.filter_map(|held| {
            let entry = self.live.record(&held.zone_id, &held.id)?;
            let tunnel_id = entry.item.value().strip_suffix(TUNNEL_DOMAIN)?.to_owned();
            Some(RuleHeld { tunnel_id, hostname: held.hostname.clone(), adopted })
        });
        let same =
            |one: &RuleHeld, other: &RuleHeld| one.tunnel_id == other.tunnel_id && one.hostname == other.hostname;
        let found: Vec<RuleHeld> =
            targets.filter(|rule| !self.held.rules.iter().any(|held| same(held, rule))).collect();
        self.held.rules.extend(found);
    }

    fn redirects(&mut self) -> Vec<ExposureStep> {
        find_redirects(&mut self.held, self.live, self.mark);
        let steps = self.held.redirects.iter().map(|held| {
            let target = changes::redirect(&held.zone_id, &held.hostname, Some(&held.rule_id));
            let work = Work::DeleteRedirect {
                zone_id: held.zone_id.clone(),
                ruleset_id: held.ruleset_id.clone(),
                rule_id: held.rule_id.clone(),
            };
            ExposureStep::new(Change::delete(target, json!({"hostname": held.hostname}), WHY), work)
        });
        steps.collect()
    }

    fn app(&mut self) -> Option<ExposureStep> {
        let entry = self.find_app()?;
        let held = self.held.app.clone()?;
        if !held.adopted {
            return Some(ExposureStep::new(
                changes::app_gone(&self.account(), entry, WHY),
                Work::DeleteApp { id: held.id },
            ));
        }
        self.notices.push(released(Part::App, &held.id));
        self.held.app = None;
        let token_id = self.held.token.as_ref()?.id.clone();
        let body = entry.item.without_token(&token_id)?;
        let target = changes::app(&self.account(), &entry.item.domain(), Some(&entry.id));
        let change = Change::update(target, entry.item.shown(), body, "the token goes");
        Some(ExposureStep::new(change, Work::DetachToken { app_id: entry.id.clone(), token_id }))
    }

    fn old_apps(&mut self) -> Vec<ExposureStep> {
        let (account, live) = (self.account(), self.live);
        self.held
            .old_apps
            .retain(|app| live.app(&app.id).is_some_and(|entry| Some(entry.item.domain()) == app.hostname));
        old_apps_gone(&account, live, &mut self.held, &mut self.notices)
    }

    /// The application that is ours: recorded and still standing for the name, or made by an attempt that did not record it.
    fn find_app(&mut self) -> Option<&'a Entry<App>> {
        let names = known_names(self.recorded, self.context);
        if let Some(held) = &self.held.app {
            match self.live.app(&held.id) {
                Some(entry) if names.is_empty() || names.contains(&entry.item.domain()) => {
                    return self.live.app(&held.id);
                }
                Some(entry) => self.notices.push(Notice::warning(
                    portolan_core::reasons::RELEASED,
                    format!("the Access application {} stands for {} now; it stays", held.id, entry.item.domain()),
                )),
                None => {}
            }
            self.held.app = None;
        }
        let entry = unrecorded_app(self.live, self.context).next()?;
        let hostname = Some(entry.item.domain());
        self.held.app = Some(AppHeld { id: entry.id.clone(), hostname, policy_ids: Vec::new(), adopted: false });
        Some(entry)
    }

    fn policies(&mut self) -> Vec<ExposureStep> {
        let live = self.live;
        let ours = |id: &String| {
            let entry = live.policies.iter().find(|entry| entry.id == *id);
            entry.is_some_and(|entry| is_marked(entry.item.name(), self.mark))
        };
        self.held.reusable.retain(ours);
        for entry in live.policies.iter().filter(|entry| is_marked(entry.item.name(), self.mark)) {
            if !self.held.reusable.contains(&entry.id) {
                self.held.reusable.push(entry.id.clone());
            }
        }
        let gone = live.policies.iter().filter(|entry| self.held.reusable.contains(&entry.id));
        gone.map(|entry| policy_gone(&self.account(), entry)).collect()
    }

    fn token(&mut self) -> Option<ExposureStep> {
        if let Some(held) = self.held.token.clone() {
            let entry = self.live.token(&held.id);
            if held.adopted || entry.is_none() {
                self.notices.extend(held.adopted.then(|| released(Part::Token, &held.id)));
                self.held.token = None;
            }
            return entry.filter(|_| !held.adopted).map(|entry| token_gone(&self.account(), entry, WHY));
        }
        let entry = unrecorded_token(self.live, self.context, self.mark)?;
        self.held.token = Some(TokenHeld { id: entry.id.clone(), client_id: None, rotation: None, adopted: false });
        Some(token_gone(&self.account(), entry, WHY))
    }

    fn finish(self, steps: Vec<ExposureStep>) -> Exposure {
        let account_id = self.account();
        let place = ZoneAndTunnel {
            account_id: self.account_id(),
            hostname: self.recorded.hostname.clone(),
            tunnel_id: self.recorded.tunnel_id.clone(),
            zone_id: self.recorded.zone_id.clone(),
        };
        Exposure {
            steps,
            notices: self.notices,
            account_id,
            mark: self.mark.clone(),
            held: self.held,
            place,
            course: Course::Withdraw,
        }
    }
}
