//! Drift passes: what stands at Cloudflare is listed anew and compared with what routes ask for. Where it differs, a task
//! is queued though nothing was asked for.
//!
//! One listing serves all routes of a zone, tunnel or account. A place that cannot be read is tried once a pass. Where not
//! everything fits into drift's share of the budget, zones take turns.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use portolan_cloudflare_api::{DriftScope, Identity, Lane, Reader, collections};
use portolan_core::{Class, ObjectKey, Problem, reasons as core};
use portolan_engine::{Levels, Passed};
use portolan_exposure::{APPS, Exposure, Footprint, Fresh, PlanContext, gather_with, plan};
use portolan_zerotrust_model::reasons;
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{
    AddressSource, CloudflareTask, Enabled, Phase, RouteInput, TaskResult, WantedRoute, desired, select, settings,
};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::reasons::TaskFailure;
use crate::shared::RoutesContext;
use crate::zones;

/// What routes see that Cloudflare refused: their plan, as it was when they were first looked at after it.
const PLAN: &str = "plan";
/// So many names are compared before others have their turn.
const AT_ONCE: usize = 50;

/// Where something of a route stands.
type RemotePlace = (&'static str, String);

/// A route to compare.
struct Comparison {
    route: ObjectKey,
    input: Arc<RouteInput>,
    wanted: WantedRoute,
    recorded: Footprint,
    plan_context: PlanContext,
    last: Last,
}

/// How the last attempt to publish a name ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Done,
    /// Something is in its way, or missing.
    Hindered,
    /// Cloudflare refused what was sent.
    Refused,
}

impl Last {
    /// A task that is not tried again by itself was refused as it is, or something is in its way.
    fn of(task: Option<&CloudflareTask>) -> Self {
        let Some(task) = task else { return Self::Done };
        let api_error = |failure: TaskFailure| failure.reason == reasons::CLOUDFLARE_API_ERROR;
        let refused = task.is_refused() || TaskFailure::of(task).is_none_or(api_error);
        if refused { Self::Refused } else { Self::Hindered }
    }
}

/// The names that one credential is used for, by the zones that they lie in.
struct NamesByZone<'a> {
    reader: Reader,
    zones: BTreeMap<String, Vec<&'a Comparison>>,
}

impl<'a> NamesByZone<'a> {
    fn new(reader: Reader) -> Self {
        Self { reader, zones: BTreeMap::new() }
    }

    fn accounts(&self) -> BTreeSet<String> {
        self.zones.values().flatten().filter_map(|check| check.wanted.spec.account_id.clone()).collect()
    }

    /// What is looked at together: a zone, with what its names have in tunnels and accounts.
    fn scopes(&self) -> Vec<DriftScope<String>> {
        self.zones.iter().map(|(zone, names)| self.scope(zone, names)).collect()
    }

    fn scope(&self, zone: &str, names: &[&'a Comparison]) -> DriftScope<String> {
        let places: BTreeSet<RemotePlace> = names.iter().flat_map(|check| check.places()).collect();
        let ids = |check: &&Comparison| {
            let recorded = &check.recorded;
            [&recorded.access_app_id, &recorded.service_token_id, &recorded.tunnel_id].map(Clone::clone)
        };
        DriftScope {
            key: zone.to_owned(),
            parts: places.iter().map(|(kind, id)| (format!("{kind} {id}").into(), self.calls(kind, id))).collect(),
            names: names.iter().filter_map(|check| check.input.hostname().ok()).map(|name| name.to_string()).collect(),
            ids: names.iter().flat_map(ids).flatten().collect(),
            of_account: false,
        }
    }

    /// How many calls it takes to read a place, about.
    fn calls(&self, kind: &str, id: &str) -> u32 {
        match kind {
            "zone" => self.reader.records(&collections::DNS_RECORDS, id).pages(),
            // Its configuration, and the list of tunnels.
            "tunnel" => 2,
            // Applications, policies, groups and tokens.
            _ => self.reader.records(&APPS, id).pages() + 3,
        }
    }
}

impl Comparison {
    /// The zone that the name lies in; empty where there is none.
    fn zone(&self) -> &str {
        self.wanted.spec.zone_id.as_deref().unwrap_or_default()
    }

    fn places(&self) -> BTreeSet<RemotePlace> {
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

impl RoutesContext {
    /// Compares everything once.
    pub(crate) async fn drift_pass(&self) -> Passed {
        let began = Instant::now();
        let checks = self.checks();
        for one in self.by_credential(&checks).await.values() {
            self.schedule.all(&one.reader, &one.zones.keys().cloned().collect::<Vec<_>>());
        }
        Box::pin(self.compare(checks.iter(), began)).await
    }

    /// Compares what is due and fits into the share of the budget.
    pub(crate) async fn drift_pass_in_turn(&self) -> Passed {
        let checks = self.checks();
        let mut resting: BTreeSet<&ObjectKey> = BTreeSet::new();
        for one in self.by_credential(&checks).await.values() {
            let chosen = self.schedule.next(&one.reader, &one.accounts(), one.scopes()).await;
            let others = one.zones.iter().filter(|(zone, _)| !chosen.contains(zone));
            resting.extend(others.flat_map(|(_, names)| names.iter().map(|check| &check.route)));
        }
        let due = checks.iter().filter(|check| !resting.contains(&check.route));
        Box::pin(self.compare(due, Instant::now())).await
    }

    /// The names of each credential that can be used, by their zones.
    async fn by_credential<'a>(&self, checks: &'a [Comparison]) -> BTreeMap<Identity, NamesByZone<'a>> {
        let mut names: BTreeMap<Identity, NamesByZone<'a>> = BTreeMap::new();
        for check in checks {
            let Some(credential) = &check.wanted.spec.credential_secret_ref else { continue };
            if let Ok(reader) = self.credentials.reader(credential).await {
                let one = names.entry(reader.identity().clone()).or_insert_with(|| NamesByZone::new(reader));
                one.zones.entry(check.zone().to_owned()).or_default().push(check);
            }
        }
        names
    }

    /// Compares names, and has those run that do not stand as asked.
    async fn compare(&self, checks: impl Iterator<Item = &Comparison>, began: Instant) -> Passed {
        let (mut passed, mut read, mut broken) = (Passed::default(), BTreeSet::new(), BTreeSet::new());
        for (count, check) in checks.enumerate() {
            // Leases and probes share the threads.
            if count % AT_ONCE == AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let places = check.places();
            if !places.is_disjoint(&broken) {
                continue;
            }
            read.extend(places.iter().cloned());
            match self.compare_one(check, began).await {
                Ok(differs) => passed.drifted += usize::from(differs),
                // It is this name's own mistake.
                Err(problem) if problem.class == Class::Invalid => {}
                Err(_) => broken.extend(places),
            }
        }
        passed.scopes = read.len();
        passed.failed = broken.len();
        self.after_pass().await;
        self.context.metrics.passed_for_drift(portolan_zerotrust_model::JOB, passed);
        passed
    }

    async fn compare_one(&self, check: &Comparison, began: Instant) -> Result<bool, Problem> {
        let tenant = check.wanted.spec.tenant_ref.as_ref().map(portolan_zerotrust_model::TenantRef::key);
        let span = tenant.as_ref().map_or_else(tracing::Span::none, Levels::span);
        let differs = self.differs(check, began).instrument(span).await;
        if let Err(problem) = &differs {
            tracing::warn!(route = %check.route, error = %problem, "A name could not be checked for drift");
        }
        // Where something is gone, its zone may be another one by now.
        let gone = differs.as_ref().is_err_and(|problem| problem.reason == core::NOT_FOUND);
        if gone || *differs.as_ref().unwrap_or(&false) {
            self.set_drifted(&check.route, true);
            self.routes.enqueue(&check.route);
        }
        differs
    }

    async fn after_pass(&self) {
        // Their tunnels were read anew.
        for tenant in self.tenants.iter() {
            self.tenant_statuses.enqueue(&tenant.key());
        }
        for hostname in self.state_index.stale((self.context.clock)()) {
            if let Err(problem) = self.forget_former(&hostname).await {
                tracing::warn!(hostname, error = %problem, "A name that nobody took could not be forgotten");
            }
        }
        self.ends.retain(|route| self.state_index.state(route).is_some());
        self.refused.retain_waiting(|route| self.state_index.task(route, TaskAction::Reconcile).is_some());
    }

    /// The routes that stand as asked, and those whose task failed and waits for something to change.
    fn checks(&self) -> Vec<Comparison> {
        let routes: Vec<Arc<RouteInput>> = self.routes.read(|store| {
            let asks = |input: &RouteInput| !input.deleting && input.enabled() == Enabled::Yes;
            store.projections().filter(|(_, input)| asks(input)).map(|(_, input)| Arc::clone(input)).collect()
        });
        routes.into_iter().filter_map(|input| self.check(input)).collect()
    }

    fn check(&self, input: Arc<RouteInput>) -> Option<Comparison> {
        let known = self.state_index.state(&input.key);
        let task = self.state_index.task(&input.key, TaskAction::Reconcile);
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
        let mut plan_context = PlanContext::at((self.context.clock)());
        plan_context.intent = status.and_then(portolan_zerotrust_model::CloudflareTaskStatus::intent);
        let last = Last::of(task.as_deref());
        executed.then(|| Comparison { route: input.key.clone(), input, wanted, recorded, plan_context, last })
    }

    /// What a route asks for, without asking anybody.
    pub(crate) fn wanted_again(
        &self,
        input: &RouteInput,
        zone: Option<&str>,
        recorded: &Footprint,
    ) -> Result<WantedRoute, Problem> {
        let selected = select(input, self, self.namespace())?;
        let settings = settings(input, &selected)?;
        let ip = match settings.target()? {
            AddressSource::None => None,
            AddressSource::Static(ip) => Some(ip),
            AddressSource::Service(_) => recorded.dns_record_ip.as_deref().and_then(|ip| ip.parse().ok()),
        };
        desired(input, &selected, &settings, zone, ip)
    }

    /// Whether a name does not stand as asked. Everything is read after the pass began.
    async fn differs(&self, check: &Comparison, began: Instant) -> Result<bool, Problem> {
        let spec = &check.wanted.spec;
        let Some(credential) = &spec.credential_secret_ref else { return Ok(false) };
        let reader = self.credentials.reader(credential).await?;
        self.credentials.not_refused(&reader)?;
        if spec.zone_id.as_deref().is_none_or(str::is_empty) {
            let selected = select(&check.input, self, self.namespace())?;
            let spec = &selected.tenant.spec;
            let only = spec.zone_id.as_deref().filter(|id| !id.is_empty());
            let hostname = check.input.hostname()?;
            let question = zones::ZoneQuestion { hostname: &hostname, account: &spec.account_id, only };
            if zones::look_up_in(Lane::Drift, &self.credentials, &reader, &question).await?.is_some() {
                return Ok(true);
            }
        }
        let wanted = spec.desired(&self.context.owner)?;
        let fresh = Fresh::within(began.elapsed());
        let live = gather_with(
            &reader,
            &wanted.mark,
            Some(&wanted),
            &check.recorded,
            check.plan_context.intent.as_ref(),
            fresh,
        )
        .await
        .inspect_err(|problem| {
            if problem.reason == core::NOT_FOUND {
                zones::doubt(&reader, wanted.hostname.as_str());
            }
        })?;
        self.ends.note(&check.route, &check.recorded, &live);
        let planned = self.context.pure(|| plan(&wanted, &check.recorded, &live, &check.plan_context));
        match (planned, check.last) {
            (Ok(exposure), Last::Done) => Ok(!exposure.is_empty()),
            (Ok(_), Last::Hindered) | (Err(_), Last::Done) => Ok(true),
            // The same request would be refused again; another one may not be.
            (Ok(exposure), Last::Refused) => {
                let now = digest(&exposure);
                let another = self.refused.sees(&check.route, PLAN, now).is_some_and(|before| before != now);
                // An application that was there and is gone: protection does not rest, whatever was refused.
                Ok(another || check.recorded.access_app_id.is_some() && exposure.makes_application())
            }
            // What is in the way stays in the way: the route has said so.
            (Err(_), Last::Hindered | Last::Refused) => Ok(false),
        }
    }
}

/// What a plan is, where it is only compared.
fn digest(exposure: &Exposure) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(&exposure.changes()).expect("changes are plain JSON").hash(&mut hasher);
    hasher.finish()
}
