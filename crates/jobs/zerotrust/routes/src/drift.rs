//! Drift passes: what stands at Cloudflare is listed anew and compared with what routes ask for. Where it differs, a task
//! is queued though nothing was asked for.
//!
//! One listing serves all routes of a zone, tunnel or account. A place that cannot be read is tried once a pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_core::{ObjectKey, Problem, reasons as core};
use portolan_engine::{Levels, Passed};
use portolan_exposure::{Footprint, Fresh, Notes, gather_with, plan};
use portolan_zerotrust_model::task::Action;
use portolan_zerotrust_model::{Enabled, Phase, RouteInput, Target, TaskResult, Wanted, desired, select, settings};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::shared::Shared;
use crate::zones;

/// Where something of a route stands.
type Place = (&'static str, String);

/// A route to compare.
struct Check {
    route: ObjectKey,
    input: Arc<RouteInput>,
    wanted: Wanted,
    recorded: Footprint,
    notes: Notes,
}

impl Check {
    fn places(&self) -> BTreeSet<Place> {
        let spec = &self.wanted.spec;
        let place = |kind, id: &Option<String>| Some((kind, id.clone().filter(|id| !id.is_empty())?));
        let operations = spec.operations.as_ref();
        let access = operations.and_then(|all| all.access_app.as_ref()?.enabled).unwrap_or(false);
        let rule = operations.and_then(|all| all.tunnel_route.as_ref()?.enabled).unwrap_or(true);
        let all = [
            place("zone", &spec.zone_id),
            place("tunnel", &spec.tunnel_id).filter(|_| rule),
            place("account", &spec.account_id).filter(|_| access),
        ];
        all.into_iter().flatten().collect()
    }
}

impl Shared {
    /// Compares everything once.
    pub(crate) async fn drift_pass(&self) -> Passed {
        let began = Instant::now();
        let (mut passed, mut read, mut broken) = (Passed::default(), BTreeSet::new(), BTreeSet::new());
        for check in self.checks() {
            let places = check.places();
            if !places.is_disjoint(&broken) {
                continue;
            }
            read.extend(places.iter().cloned());
            let tenant = check.wanted.spec.tenant_ref.as_ref().map(portolan_zerotrust_model::TenantRef::key);
            let span = tenant.as_ref().map_or_else(tracing::Span::none, Levels::span);
            match self.differs(&check, began).instrument(span).await {
                Ok(true) => {
                    passed.drifted += 1;
                    self.set_drifted(&check.route, true);
                    self.routes.enqueue(&check.route);
                }
                Ok(false) => {}
                Err(problem) => {
                    if problem.reason == core::NOT_FOUND {
                        // Its zone may be another one by now.
                        self.set_drifted(&check.route, true);
                        self.routes.enqueue(&check.route);
                    }
                    tracing::warn!(route = %check.route, error = %problem, "A name could not be checked for drift");
                    broken.extend(places);
                }
            }
        }
        // Their tunnels were read anew.
        for tenant in self.tenants.iter() {
            self.tenant_statuses.enqueue(&tenant.key());
        }
        for hostname in self.records.stale((self.context.clock)()) {
            if let Err(problem) = self.forget_former(&hostname).await {
                tracing::warn!(hostname, error = %problem, "A name that nobody took could not be forgotten");
            }
        }
        passed.scopes = read.len();
        passed.failed = broken.len();
        self.ends.retain(|route| self.records.state(route).is_some());
        self.context.metrics.passed_for_drift(portolan_zerotrust_model::JOB, passed);
        passed
    }

    /// The routes that stand as asked, and those whose task failed and waits for something to change.
    fn checks(&self) -> Vec<Check> {
        let routes: Vec<Arc<RouteInput>> = self.routes.read(|store| {
            let asks = |input: &RouteInput| !input.deleting && input.enabled() == Enabled::Yes;
            store.projections().filter(|(_, input)| asks(input)).map(|(_, input)| Arc::clone(input)).collect()
        });
        routes.into_iter().filter_map(|input| self.check(input)).collect()
    }

    fn check(&self, input: Arc<RouteInput>) -> Option<Check> {
        let known = self.records.state(&input.key);
        let task = self.records.task(&input.key, Action::Reconcile);
        let status = task.as_ref().and_then(|task| task.status.as_ref());
        let failed = task.as_ref().is_some_and(|task| task.phase() == Phase::Failed);
        let retries = status.is_some_and(|status| status.next_attempt_time.is_some());
        if task.is_some() && (!failed || retries) {
            return None;
        }
        let made = status.and_then(|status| status.result.as_ref()).map(TaskResult::footprint);
        let recorded = made.or_else(|| known.as_ref().map(|known| known.state.footprint.clone())).unwrap_or_default();
        let zone = match &task {
            Some(task) => task.spec.zone_id.clone().filter(|zone| !zone.is_empty()),
            None => recorded.zone_id.clone(),
        };
        let wanted = self.wanted_again(&input, zone.as_deref(), &recorded).ok()?;
        let executed = match &task {
            Some(task) => task.hash() == Some(wanted.hash.as_str()),
            None => known.is_some_and(|known| known.state.hash == wanted.hash),
        };
        let mut notes = Notes::at((self.context.clock)());
        notes.intent = status.and_then(portolan_zerotrust_model::CloudflareTaskStatus::intent);
        executed.then(|| Check { route: input.key.clone(), input, wanted, recorded, notes })
    }

    /// What a route asks for, without asking anybody.
    pub(crate) fn wanted_again(
        &self,
        input: &RouteInput,
        zone: Option<&str>,
        recorded: &Footprint,
    ) -> Result<Wanted, Problem> {
        let selected = select(input, self, self.namespace())?;
        let settings = settings(input, &selected)?;
        let ip = match settings.target()? {
            Target::None => None,
            Target::Static(ip) => Some(ip),
            Target::Service(_) => recorded.dns_record_ip.as_deref().and_then(|ip| ip.parse().ok()),
        };
        desired(input, &selected, &settings, zone, ip)
    }

    /// Whether a name does not stand as asked. Everything is read after the pass began.
    async fn differs(&self, check: &Check, began: Instant) -> Result<bool, Problem> {
        let spec = &check.wanted.spec;
        let Some(credential) = &spec.credential_secret_ref else { return Ok(false) };
        let reader = self.credentials.reader(credential).await?;
        self.credentials.not_refused(&reader)?;
        if spec.zone_id.as_deref().is_none_or(str::is_empty) {
            let selected = select(&check.input, self, self.namespace())?;
            let spec = &selected.tenant.spec;
            let only = spec.zone_id.as_deref().filter(|id| !id.is_empty());
            let hostname = check.input.hostname()?;
            let question = zones::Question { hostname: &hostname, account: &spec.account_id, only };
            if zones::look_up(&self.credentials, &reader, &question).await?.is_some() {
                return Ok(true);
            }
        }
        let wanted = spec.desired(&self.context.owner)?;
        let fresh = Fresh::within(began.elapsed());
        let live =
            gather_with(&reader, &wanted.mark, Some(&wanted), &check.recorded, check.notes.intent.as_ref(), fresh)
                .await
                .inspect_err(|problem| {
                    if problem.reason == core::NOT_FOUND {
                        zones::doubt(&reader);
                    }
                })?;
        self.ends.note(&check.route, &check.recorded, &live);
        // What is in the way stays in the way: the route has said so.
        let failed = self.records.task(&check.route, Action::Reconcile).is_some();
        match plan(&wanted, &check.recorded, &live, &check.notes) {
            Ok(exposure) => Ok(failed || !exposure.is_empty()),
            Err(_) => Ok(!failed),
        }
    }
}
