//! The controller of tenants: whether their credential and tunnel can be used, and how their routes stand.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_core::{
    Change, Condition, ConditionStatus, NewCondition, ObjectKey, Plan, Problem, Target, reasons as core, text,
};
use portolan_engine::{LedgerWork, Levels, Notice, Outcome, Profile, Reconcile, Report};
use portolan_zerotrust_model::{CloudflareZeroTrustTenant as Tenant, State, TenantSummary, annotations, reasons};
use serde_json::json;

use crate::routes::guarded;
use crate::shared::RoutesContext;

/// Routes that a message names.
const NAMES_SHOWN: usize = 5;
/// How soon a tenant that waits for its routes looks again, should nobody tell.
const PATIENCE: Duration = Duration::from_secs(300);

/// The condition that names what lost its Access application.
const PROTECTION_LOST: &str = "ProtectionLost";
/// The condition that names routes that nobody looks at any more; it is called as its reason is.
const NOT_WATCHED: &str = reasons::ROUTES_NOT_WATCHED;
/// How long a name is told of that lost its Access application.
const TOLD_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Reasons of routes that are really their tenant's.
const OF_TENANT: &[&str] = &[
    reasons::CREDENTIAL_NOT_FOUND,
    reasons::CREDENTIAL_KEY_MISSING,
    reasons::CREDENTIAL_INVALID,
    reasons::RATE_LIMITED,
];

/// Reconciles tenants.
pub(crate) struct TenantController {
    pub(crate) shared: Arc<RoutesContext>,
}

/// How a tenant stands.
pub(crate) struct TenantTally {
    /// Why its credential or tunnel cannot be used.
    problem: Option<Problem>,
    summary: TenantSummary,
    last_sync: Option<String>,
    /// Routes that are published with it, or want to be.
    routes: usize,
    /// Routes that failed: key, reason, message.
    failed: Vec<(ObjectKey, &'static str, String)>,
    /// What those say that wait for the rate limit: reason, message.
    limited: Option<(&'static str, String)>,
    /// Deletions that are held.
    held: Vec<String>,
    /// Names that lost their Access application, the last first, and how long that is told.
    exposed: Vec<(SignedDuration, String)>,
    /// Routes that are published with it and stand outside the watched namespaces.
    unwatched: Vec<ObjectKey>,
    /// Routes that something is recorded for with it.
    recorded: Vec<ObjectKey>,
    /// What is due in its ledgers of deletions.
    ledgers: LedgerWork,
}

/// What is to be done for a tenant.
pub(crate) struct TenantPlan {
    /// What an older operator left on it goes.
    annotations: Plan,
    ledgers: LedgerWork,
    /// The credential that nobody will need, since what stands is left as it is.
    abandoned: Option<ObjectKey>,
}

/// What was done for a tenant.
pub(crate) struct TenantChange {
    /// Whether deletions were let go.
    released: bool,
    /// Those that are still held.
    held: Vec<String>,
}

impl TenantController {
    fn tally(&self, key: &ObjectKey) -> TenantTally {
        let of_tenant = self.shared.states_of(key);
        let standing = self.shared.statuses.of_tenant(key);
        let count = |holds: &dyn Fn(&portolan_exposure::Footprint) -> usize| {
            let sum: usize = of_tenant.iter().map(|known| holds(&known.state.footprint)).sum();
            i64::try_from(sum).unwrap_or(i64::MAX)
        };
        TenantTally {
            problem: None,
            summary: TenantSummary {
                managed_http_routes: count(&|one| usize::from(!one.is_empty())),
                hostname_routes: count(&|one| usize::from(one.has_rule)),
                access_applications: count(&|one| usize::from(one.access_app_id.is_some())),
                access_policies: count(&|one| one.access_policy_ids.len()),
                service_tokens: count(&|one| usize::from(one.service_token_id.is_some())),
            },
            last_sync: of_tenant.iter().filter_map(|known| known.state.last_sync_time.clone()).max(),
            routes: standing.len(),
            limited: standing.iter().filter(|(_, one)| one.limited).find_map(|(_, one)| one.failure.clone()),
            failed: standing
                .into_iter()
                .filter_map(|(key, one)| one.failure.map(|(reason, text)| (key, reason, text)))
                // What the budget holds back is said for all of them together.
                .filter(|(_, reason, _)| *reason != core::DELETION_BUDGET_EXCEEDED)
                .collect(),
            held: self.shared.deletions.held(&key.to_string()),
            exposed: exposed(of_tenant.iter().map(|known| &known.state), (self.shared.context.clock)()),
            unwatched: self.unwatched(of_tenant.iter().map(|known| &known.state.route)),
            recorded: sorted(of_tenant.iter().map(|known| known.state.route.clone())),
            ledgers: LedgerWork::default(),
        }
    }

    /// Routes that were looked at once and no longer are: the namespaces to watch were narrowed.
    fn unwatched<'a>(&self, routes: impl Iterator<Item = &'a ObjectKey>) -> Vec<ObjectKey> {
        let watched = self.shared.settings.selection();
        sorted(routes.filter(|route| !watched.covers(route.namespace.as_deref())).cloned())
    }

    fn ready(&self, tenant: &ObjectKey, tally: &TenantTally) -> NewCondition {
        if let Some(problem) = &tally.problem {
            return NewCondition::not_ready(problem.reason, problem.message.clone());
        }
        // What stops one route stops them all.
        let common = OF_TENANT.iter().find_map(|reason| tally.failed.iter().find(|(_, one, _)| one == reason));
        let common = common.map(|(_, reason, message)| (*reason, message));
        if let Some((reason, message)) = common.or(tally.limited.as_ref().map(|(reason, message)| (*reason, message))) {
            return NewCondition::not_ready(reason, message.clone());
        }
        if tally.failed.is_empty() {
            let message = match tally.routes {
                0 => "No route is published with this tenant".to_owned(),
                routes => format!("{} as asked", text::count(routes, "route")),
            };
            return NewCondition::ready(reasons::RECONCILE_SUCCESS, message);
        }
        let names = tally.failed.iter().map(|(key, reason, _)| (key, format!("{key} ({reason})")));
        let (failed, routes) = (tally.failed.len(), tally.routes);
        let message = format!("{failed} of {routes} routes failed: {}", named_in(tenant, names));
        NewCondition::not_ready(reasons::PARTIAL_FAILURE, message)
    }
}

/// Routes in a sentence: those of the object's own namespace by name, others by their number. Who reads an object reads
/// nothing of other namespaces.
pub(crate) fn named_in<'a>(object: &ObjectKey, routes: impl IntoIterator<Item = (&'a ObjectKey, String)>) -> String {
    let (own, others): (Vec<_>, Vec<_>) =
        routes.into_iter().partition(|(route, _)| route.namespace == object.namespace);
    let mut shown: Vec<String> = own.into_iter().map(|(_, name)| name).collect();
    let more = shown.len().saturating_sub(NAMES_SHOWN);
    shown.truncate(NAMES_SHOWN);
    shown.extend((more > 0).then(|| format!("{more} more")));
    shown.extend((!others.is_empty()).then(|| format!("{} of other namespaces", text::count(others.len(), "route"))));
    text::join_and(shown)
}

impl Reconcile for TenantController {
    type Object = Tenant;
    type Inputs = TenantTally;
    type Plan = TenantPlan;
    type Applied = TenantChange;
    type Projection = ();

    fn profile(&self) -> Profile {
        Profile { heeds_times: true, ..guarded("CloudflareZeroTrustTenant") }
    }

    fn needs_finalizer(&self, _: &Tenant, _: &TenantTally, _: &TenantPlan) -> bool {
        self.shared.settings.finalizers
    }

    fn reacts_to_annotation(&self, annotation: &str) -> bool {
        annotation.starts_with(annotations::PREFIX) || annotation.starts_with("portolan.dev/")
    }

    fn project(&self, _: &Tenant) {}

    async fn gather(&self, tenant: &Tenant) -> Result<TenantTally, Problem> {
        Levels::mark(&tenant.key());
        let mut tally = self.tally(&tenant.key());
        tally.ledgers = self.shared.deletions.due(&tenant.key().to_string(), &tenant.metadata);
        if tenant.metadata.deletion_timestamp.is_none() {
            tally.problem = self.shared.credentials.check(tenant).await.err();
        }
        Ok(tally)
    }

    fn plan(&self, tenant: &Tenant, tally: &TenantTally) -> Result<TenantPlan, Problem> {
        let older = tenant.metadata.annotations.iter().flatten();
        let older = older.filter(|(name, _)| name.starts_with(annotations::OLDER_PREFIX));
        let drop =
            |name: &str| Change::delete(Target::new("annotation", "", name), json!({}), "left by an older operator");
        let gives_up = is_forced(tenant) && tenant.metadata.deletion_timestamp.is_some();
        Ok(TenantPlan {
            annotations: older.map(|(name, _)| drop(name)).collect(),
            ledgers: tally.ledgers.clone(),
            abandoned: gives_up.then(|| tenant.credential().object()),
        })
    }

    /// Nothing at Cloudflare changes for a tenant.
    fn changes(&self, _: &TenantPlan) -> Plan {
        Plan::default()
    }

    fn has_work(&self, plan: &TenantPlan) -> bool {
        !plan.annotations.is_empty() || !plan.ledgers.is_empty() || plan.abandoned.is_some()
    }

    async fn apply(&self, tenant: &Tenant, _: &TenantTally, plan: &TenantPlan) -> Result<TenantChange, Problem> {
        let id = tenant.key().to_string();
        let released = self.shared.deletions.settle(&id, &plan.ledgers).await?;
        if let Some(credential) = &plan.abandoned {
            self.shared.guard.abandon(credential).await?;
        }
        if !plan.annotations.is_empty() {
            self.shared.drop_annotations(tenant, &plan.annotations).await?;
        }
        Ok(TenantChange { released, held: self.shared.deletions.held(&id) })
    }

    fn report(&self, tenant: &Tenant, outcome: Outcome<'_, Self>) -> Report {
        let (tally, held) = match outcome {
            Outcome::Applied { inputs, applied, .. } => (inputs, &applied.held),
            Outcome::Unchanged { inputs, .. } => (inputs, &inputs.held),
            Outcome::Failed(failure) => return Report::failed(failure.problem),
        };
        if tenant.metadata.deletion_timestamp.is_some() {
            return report_leaving(tenant, tally);
        }
        let stalled = match held.as_slice() {
            [] => NewCondition::not_stalled(),
            held => NewCondition::stalled(core::DELETION_BUDGET_EXCEEDED, held.join(" ")),
        };
        let mut conditions = vec![self.ready(&tenant.key(), tally), stalled];
        conditions.extend(protection_lost(tenant, tally));
        let unwatched = not_watched(tenant, tally);
        let events = newly_told(tenant, unwatched.as_ref());
        conditions.extend(unwatched);
        let again = tally.exposed.last().map(|(left, _)| left.unsigned_abs());
        Report {
            status: json!({"summary": tally.summary, "lastSyncTime": tally.last_sync}),
            conditions,
            events,
            again,
            problem: tally.problem.clone(),
        }
    }

    /// Routes whose deletions were held and are not any more run.
    fn remember(&self, tenant: &Tenant, outcome: Outcome<'_, Self>) {
        match outcome {
            Outcome::Applied { applied, .. } if applied.released => self.shared.released(&tenant.key()),
            Outcome::Applied { .. } | Outcome::Unchanged { .. } | Outcome::Failed(_) => {}
        }
    }
}

fn sorted(routes: impl Iterator<Item = ObjectKey>) -> Vec<ObjectKey> {
    let mut routes: Vec<ObjectKey> = routes.collect();
    routes.sort();
    routes
}

/// The names that lost their Access application of late, the last first.
fn exposed<'a>(states: impl Iterator<Item = &'a State>, now: Timestamp) -> Vec<(SignedDuration, String)> {
    let mut exposed: Vec<(SignedDuration, String)> = states
        .filter_map(|state| {
            let since: Timestamp = state.exposed_at.as_deref()?.parse().ok()?;
            let left = TOLD_FOR - now.duration_since(since);
            (left > SignedDuration::ZERO).then(|| (left, state.footprint.hostname.clone().unwrap_or_default()))
        })
        .collect();
    exposed.sort_by(|one, other| (other.0, &one.1).cmp(&(one.0, &other.1)));
    exposed
}

/// What is said of names that lost their Access application; nothing where that was never said.
fn protection_lost(tenant: &Tenant, tally: &TenantTally) -> Option<NewCondition> {
    let of = |status, reason, message: String| NewCondition::of(PROTECTION_LOST, status, reason, message);
    if tally.exposed.is_empty() {
        let message = "No name lost its Access application within a day".to_owned();
        return said(tenant, PROTECTION_LOST).map(|_| of(ConditionStatus::False, reasons::PROTECTION_KEPT, message));
    }
    let names = text::join_some(tally.exposed.iter().map(|(_, name)| name), NAMES_SHOWN);
    let message = format!("Public now, and protected by Access within the last day: {names}");
    Some(of(ConditionStatus::True, reasons::PROTECTION_REMOVED, message))
}

/// What is said of routes that nobody looks at any more; nothing where that was never said.
fn not_watched(tenant: &Tenant, tally: &TenantTally) -> Option<NewCondition> {
    let of = |status, reason, message: String| NewCondition::of(NOT_WATCHED, status, reason, message);
    if tally.unwatched.is_empty() {
        let message = "All routes of the tenant are in watched namespaces".to_owned();
        return said(tenant, NOT_WATCHED).map(|_| of(ConditionStatus::False, reasons::ROUTES_WATCHED, message));
    }
    let message = format!(
        "{} published with it and outside the watched namespaces: {}. Their names stay as they are, edits are not followed, and one \
         that is deleted stays until WATCH_NAMESPACES has its namespace again",
        text::count(tally.unwatched.len(), "route"),
        named_in(&tenant.key(), tally.unwatched.iter().map(|route| (route, route.to_string()))),
    );
    Some(of(ConditionStatus::True, reasons::ROUTES_NOT_WATCHED, message))
}

/// The condition as the tenant has it.
fn said<'a>(tenant: &'a Tenant, kind: &str) -> Option<&'a Condition> {
    tenant.status.as_ref()?.conditions.iter().find(|condition| condition.r#type == kind)
}

/// An event for a condition that was not true before.
fn newly_told(tenant: &Tenant, condition: Option<&NewCondition>) -> Vec<Notice> {
    let Some(condition) = condition.filter(|one| one.status == ConditionStatus::True) else { return Vec::new() };
    let told = said(tenant, condition.r#type).is_some_and(|before| before.status == ConditionStatus::True);
    if told { Vec::new() } else { vec![Notice::warning(condition.reason, &condition.message)] }
}

/// A tenant that is being deleted stays as long as something is published with it: its credential is needed.
fn report_leaving(tenant: &Tenant, tally: &TenantTally) -> Report {
    if tally.recorded.is_empty() || is_forced(tenant) {
        return Report::default();
    }
    let message = format!(
        "{} still published with it: {}. Delete them or give them another tenant; or set the annotation {}: \"true\" \
         to leave everything at Cloudflare",
        text::count(tally.recorded.len(), "route"),
        named_in(&tenant.key(), tally.recorded.iter().map(|route| (route, route.to_string()))),
        annotations::name("force-forget"),
    );
    let problem = Problem::waiting(core::DELETING, message).with_retry_after(PATIENCE);
    Report { problem: Some(problem), ..Report::default() }
}

/// Whether the user says that a tenant is to go whatever stands.
fn is_forced(tenant: &Tenant) -> bool {
    tenant
        .metadata
        .annotations
        .iter()
        .flatten()
        .any(|(name, value)| *name == annotations::name("force-forget") && value.trim().eq_ignore_ascii_case("true"))
}
