//! One route, with all that the cluster knows of it → how it is. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use portolan_core::{ObjectHealth, Problem, reasons as core};
use portolan_publication::reasons as publication;
use portolan_zerotrust_model::{
    CloudflareTask, CloudflareZeroTrustTenant as Tenant, Phase, RouteInput, Selected, Settings, State, desired,
    reasons, settings,
};
use serde_json::{Value, json};

/// Reasons of events that tell something beside a success.
const ASIDE: [&str; 6] = [
    reasons::DNS_SKIPPED,
    reasons::NO_ACCESS_POLICY,
    reasons::ACCESS_NOT_ENABLED,
    reasons::PROTECTION_REMOVED,
    publication::HTTP_REDIRECT_NOT_MANAGED,
    publication::TUNNEL_CONFIG_RACED,
];

/// A route and what is known of it.
pub struct RouteView<'a> {
    /// What it asks for.
    pub input: RouteInput,
    /// The tenant it is published with, though its template may be missing.
    pub tenant: Option<Arc<Tenant>>,
    pub(super) selected: Result<Selected, Problem>,
    pub(super) tasks: Vec<&'a CloudflareTask>,
    pub(super) state: Option<&'a State>,
    pub(super) incident: Option<&'a Incident>,
}

/// What an event tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Incident {
    pub(super) at: Timestamp,
    pub(super) is_warning: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

/// How a route is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteHealth {
    /// In a word that all tools use.
    pub health: ObjectHealth,
    /// In a word that programs can rely on.
    pub reason: String,
    /// In a sentence.
    pub message: String,
}

impl RouteHealth {
    fn new(health: ObjectHealth, reason: &str, message: impl Into<String>) -> Self {
        Self { health, reason: reason.to_owned(), message: message.into() }
    }

    fn problem(problem: &Problem) -> Self {
        Self::new(ObjectHealth::NotReady, problem.reason, problem.message.clone())
    }
}

impl RouteView<'_> {
    /// `namespace/name`.
    pub fn key(&self) -> String {
        self.input.key.to_string()
    }

    /// The name that it asks for, as written where it is not valid.
    pub fn hostname(&self) -> String {
        match self.input.hostname() {
            Ok(name) => name.to_string(),
            Err(_) => self.input.input("hostname").unwrap_or_default().to_owned(),
        }
    }

    /// What its layers come to.
    pub fn settings(&self) -> Result<Settings, Problem> {
        settings(&self.input, self.selected.as_ref().map_err(Clone::clone)?)
    }

    /// How it is.
    pub fn verdict(&self) -> RouteHealth {
        if let Some(held) = self.incident.filter(|incident| self.is_held(incident)) {
            return RouteHealth::new(ObjectHealth::NotReady, &held.reason, held.message.clone());
        }
        if self.input.deleting {
            return RouteHealth::new(ObjectHealth::Deleting, core::DELETING, "its name is being taken down");
        }
        if let Some(problem) = self.problem() {
            return RouteHealth::problem(&problem);
        }
        if let Some(task) = self.tasks.first() {
            return task_verdict(task);
        }
        if let Some(incident) = self.incident.filter(|incident| self.is_open(incident)) {
            return RouteHealth::new(ObjectHealth::NotReady, &incident.reason, incident.message.clone());
        }
        match self.state {
            Some(state) if self.executed(state) && is_without_record(state) => RouteHealth::new(
                ObjectHealth::NotReady,
                reasons::DNS_SKIPPED,
                format!("no zone of the account holds {}: it has a rule, but no record leads to it", self.hostname()),
            ),
            Some(state) if self.executed(state) => {
                RouteHealth::new(ObjectHealth::Ready, reasons::RECONCILED, format!("{} is published", self.hostname()))
            }
            Some(_) => RouteHealth::new(
                ObjectHealth::Pending,
                core::PENDING,
                "what it asks for changed, and no task was made for that yet",
            ),
            None => RouteHealth::new(ObjectHealth::Pending, core::PENDING, "no task was made for it yet"),
        }
    }

    /// Whether what was carried out last is what it asks for now. The zone and the address are taken as they were found.
    fn executed(&self, state: &State) -> bool {
        let (Ok(selected), Ok(settings)) = (&self.selected, self.settings()) else { return false };
        let zone = state.footprint.zone_id.as_deref().filter(|zone| !zone.is_empty());
        let address = state.footprint.dns_record_ip.as_deref().and_then(|address| address.parse().ok());
        desired(&self.input, selected, &settings, zone, address).is_ok_and(|wanted| wanted.hash == state.hash)
    }

    /// What is wrong with the route itself.
    fn problem(&self) -> Option<Problem> {
        self.input.unclear().or_else(|| self.input.hostname().err()).or_else(|| self.settings().err())
    }

    /// Whether the budget holds back what was asked for: nothing is under way, and what stands stays.
    fn is_held(&self, incident: &Incident) -> bool {
        let going = self.input.deleting || self.state.is_some_and(|state| !self.executed(state));
        incident.reason == core::DELETION_BUDGET_EXCEEDED && going && self.tasks.is_empty() && self.is_open(incident)
    }

    /// Whether a warning was given after the last success.
    fn is_open(&self, incident: &Incident) -> bool {
        let synced = self.state.and_then(|state| state.last_sync_time.as_deref()?.parse::<Timestamp>().ok());
        incident.is_warning && !ASIDE.contains(&incident.reason.as_str()) && synced.is_none_or(|at| at < incident.at)
    }

    /// The route as an object with conditions, though it has none of ours.
    pub fn shown(&self) -> Value {
        let verdict = self.verdict();
        let status = match verdict.health {
            ObjectHealth::Ready => "True",
            ObjectHealth::NotReady => "False",
            ObjectHealth::Pending | ObjectHealth::Deleting => "Unknown",
        };
        let ready = json!({"type": "Ready", "status": status, "reason": verdict.reason, "message": verdict.message});
        let deleted = if self.input.deleting { json!("now") } else { Value::Null };
        json!({
            "metadata": {
                "namespace": self.input.key.namespace, "name": self.input.key.name, "deletionTimestamp": deleted,
            },
            "spec": {"hostname": self.hostname(), "leadsTo": self.leads_to(), "protected": self.is_protected()},
            "status": {"conditions": [ready]},
        })
    }

    /// What the name leads to.
    fn leads_to(&self) -> String {
        let Some(state) = self.state else { return String::new() };
        match (&state.footprint.dns_record_ip, &state.origin_service) {
            (Some(address), _) => address.clone(),
            (None, Some(origin)) => origin.clone(),
            (None, None) => String::new(),
        }
    }

    fn is_protected(&self) -> bool {
        self.state.is_some_and(|state| state.footprint.access_app_id.is_some())
    }
}

/// Whether a name has a rule, and nothing that leads to it.
fn is_without_record(state: &State) -> bool {
    state.footprint.has_rule && state.footprint.zone_id.is_none() && state.footprint.record_ids().next().is_none()
}

fn task_verdict(task: &CloudflareTask) -> RouteHealth {
    let status = task.status.clone().unwrap_or_default();
    let reason = status.failure_reason();
    let told = |reason: &str| RouteHealth::new(ObjectHealth::NotReady, reason, status.message_after(reason));
    match status.phase.unwrap_or_default() {
        Phase::Failed => told(reason.unwrap_or(reasons::TASK_FAILED)),
        Phase::Pending if status.next_attempt_time.is_some() => told(reason.unwrap_or(reasons::TASK_WAITING)),
        // It waits until Cloudflare answers again.
        Phase::InProgress if reason.is_some_and(|reason| WAITS.contains(&reason)) => {
            told(reasons::CLOUDFLARE_API_ERROR)
        }
        Phase::Pending | Phase::InProgress | Phase::Completed => {
            RouteHealth::new(ObjectHealth::Pending, reasons::TASK_UNDER_WAY, status.message.clone().unwrap_or_default())
        }
    }
}

/// What a worker that has a task waits for.
const WAITS: [&str; 2] = [reasons::CLOUDFLARE_API_ERROR, reasons::RATE_LIMITED];

#[cfg(test)]
mod tests {
    use portolan_zerotrust_model::{CloudflareTaskSpec, CloudflareTaskStatus};

    use super::*;

    fn input() -> RouteInput {
        let route = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "apps", "uid": "u1", "annotations": {
                "cfzt.cloudflare.com/enabled": "true", "cfzt.cloudflare.com/hostname": "web.example.com"}},
            "spec": {},
        }))
        .unwrap();
        RouteInput::read(&route)
    }

    fn selected() -> Selected {
        let tenant = serde_json::from_value(json!({
            "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustTenant",
            "metadata": {"name": "prod", "namespace": "apps"},
            "spec": {"accountId": "0123456789abcdef0123456789abcdef", "tunnelId": "11111111-2222-3333-4444-555555555555", "credentialRef": {"name": "token"},
                "defaults": {"originService": "http://traefik.traefik.svc:80"}},
        }));
        Selected { tenant: std::sync::Arc::new(tenant.unwrap()), template: None, base: None }
    }

    fn state(synced: &str) -> State {
        let mut state = State::new("cfzt-apps-web", input().key);
        let settings = settings(&input(), &selected()).unwrap();
        state.hash = desired(&input(), &selected(), &settings, Some("z1"), None).unwrap().hash;
        state.footprint.zone_id = Some("z1".to_owned());
        state.last_sync_time = Some(synced.to_owned());
        state
    }

    fn warning(at: &str, reason: &str) -> Incident {
        Incident { at: at.parse().unwrap(), is_warning: true, reason: reason.to_owned(), message: "why".to_owned() }
    }

    fn view<'a>(
        state: Option<&'a State>,
        task: Option<&'a CloudflareTask>,
        incident: Option<&'a Incident>,
    ) -> RouteView<'a> {
        RouteView {
            input: input(),
            tenant: Some(selected().tenant),
            selected: Ok(selected()),
            tasks: task.into_iter().collect(),
            state,
            incident,
        }
    }

    #[test]
    fn a_route_with_a_state_and_nothing_under_way_is_ready() {
        assert_eq!(view(Some(&state("2026-01-01T00:00:00Z")), None, None).verdict().health, ObjectHealth::Ready);
        assert_eq!(view(None, None, None).verdict().health, ObjectHealth::Pending);
    }

    #[test]
    fn a_route_that_asks_for_something_else_by_now_is_not_ready_yet() {
        let state = state("2026-01-01T00:00:00Z");
        let mut view = view(Some(&state), None, None);
        view.input.inputs.insert("access.enabled".to_owned(), "true".to_owned());

        assert_eq!(view.verdict().health, ObjectHealth::Pending);
    }

    #[test]
    fn a_warning_counts_until_the_next_success() {
        let state = state("2026-01-01T00:00:00Z");
        let (old, new) =
            (warning("2025-12-31T00:00:00Z", "ZoneNotFound"), warning("2026-01-02T00:00:00Z", "ZoneNotFound"));
        let aside = warning("2026-01-02T00:00:00Z", "NoAccessPolicy");

        assert_eq!(view(Some(&state), None, Some(&old)).verdict().health, ObjectHealth::Ready);
        assert_eq!(view(Some(&state), None, Some(&new)).verdict().reason, "ZoneNotFound");
        assert_eq!(view(Some(&state), None, Some(&aside)).verdict().health, ObjectHealth::Ready);
    }

    #[test]
    fn a_task_says_how_far_it_came() {
        let task = |phase| {
            let mut task = CloudflareTask::new("cfzt-apps-web", CloudflareTaskSpec::default());
            task.status = Some(CloudflareTaskStatus {
                phase: Some(phase),
                message: Some("PolicyNotFound: staff".to_owned()),
                ..CloudflareTaskStatus::default()
            });
            task
        };

        assert_eq!(view(None, Some(&task(Phase::InProgress)), None).verdict().health, ObjectHealth::Pending);
        let mut waits = task(Phase::InProgress);
        waits.status.get_or_insert_default().message = Some("CloudflareAPIError: Rate limit exceeded: 429".to_owned());
        assert_eq!(view(None, Some(&waits), None).verdict().reason, "CloudflareAPIError");
        let failed = task(Phase::Failed);
        let verdict = view(None, Some(&failed), None).verdict();
        assert_eq!((verdict.health, verdict.reason.as_str()), (ObjectHealth::NotReady, "PolicyNotFound"));
        assert_eq!(verdict.message, "staff");
    }

    #[test]
    fn a_route_that_names_no_tenant_says_so_whatever_its_state() {
        let mut view = view(None, None, None);
        view.selected = Err(Problem::waiting("TenantNotFound", "there is no tenant"));

        assert_eq!(view.verdict().reason, "TenantNotFound");
    }
}
