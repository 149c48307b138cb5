//! What the containers do → the conditions that a kubelet owns (`status/generate.go`).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};

use super::super::containers::ContainerRole;
use super::super::record::{PodRecord, VolumesState};
use super::{ContainerView, PodPhase, StatusFacts, whole_seconds};

/// Those that a kubelet owns, in the order in which it writes them.
const OWN: [&str; 5] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// Whether the loopback interface carries the pod's address. It is there only where it does not.
const ADDRESS_CARRIED: &str = "portolan.dev/AddressCarried";

/// What a condition says.
struct Statement {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Statement {
    fn holds() -> Self {
        Self { holds: true, reason: None, message: None }
    }

    fn fails(reason: &'static str, message: Option<String>) -> Self {
        Self { holds: false, reason: Some(reason), message }
    }
}

/// All conditions of the pod: those of others as they are, then our own.
pub(super) fn conditions(
    pod: &Pod,
    before: &PodStatus,
    record: &PodRecord,
    views: &[ContainerView<'_>],
    phase: PodPhase,
    facts: &StatusFacts,
) -> Vec<PodCondition> {
    let stood: &[PodCondition] = before.conditions.as_deref().unwrap_or_default();
    let is_own = |one: &&PodCondition| OWN.contains(&one.type_.as_str()) || one.type_ == ADDRESS_CARRIED;
    let mut all: Vec<PodCondition> = stood.iter().filter(|one| !is_own(one)).cloned().collect();
    let containers_ready = containers_ready(views, phase);
    let ready = if containers_ready.holds { gates(pod, stood) } else { copied(&containers_ready) };
    let can_start = if record.volumes == VolumesState::Ready && !record.is_over {
        Statement::holds()
    } else {
        Statement { holds: false, reason: None, message: None }
    };
    let statements = [can_start, initialized(views, phase), ready, containers_ready, Statement::holds()];
    let generation = pod.metadata.generation;
    all.extend(OWN.iter().zip(statements).map(|(name, said)| condition(name, said, stood, generation, facts.now)));
    let trouble = facts.address_trouble.clone().map(|trouble| Statement::fails("NotAllowed", Some(trouble)));
    all.extend(trouble.map(|said| condition(ADDRESS_CARRIED, said, stood, generation, facts.now)));
    all
}

fn copied(statement: &Statement) -> Statement {
    Statement { holds: statement.holds, reason: statement.reason, message: statement.message.clone() }
}

/// A condition keeps the time of its last change as long as it says the same.
fn condition(
    name: &str,
    said: Statement,
    stood: &[PodCondition],
    generation: Option<i64>,
    now: Timestamp,
) -> PodCondition {
    let status = if said.holds { "True" } else { "False" };
    let same = stood.iter().find(|one| one.type_ == name && one.status == status);
    let changed = same.and_then(|one| one.last_transition_time.clone()).unwrap_or_else(|| whole_seconds(now));
    PodCondition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: said.reason.map(str::to_owned),
        message: said.message,
        last_transition_time: Some(changed),
        last_probe_time: None,
        observed_generation: generation,
    }
}

fn containers_ready(views: &[ContainerView<'_>], phase: PodPhase) -> Statement {
    match phase {
        PodPhase::Succeeded => return Statement::fails("PodCompleted", None),
        PodPhase::Failed => return Statement::fails("PodFailed", None),
        PodPhase::Pending | PodPhase::Running => {}
    }
    let lasting = views.iter().filter(|view| view.role != ContainerRole::Init);
    let unready: Vec<&str> = lasting.filter(|view| !view.status.ready).map(|view| view.status.name.as_str()).collect();
    if unready.is_empty() {
        return Statement::holds();
    }
    Statement::fails("ContainersNotReady", Some(format!("containers with unready status: [{}]", unready.join(" "))))
}

fn initialized(views: &[ContainerView<'_>], phase: PodPhase) -> Statement {
    if phase == PodPhase::Succeeded {
        return Statement { holds: true, reason: Some("PodCompleted"), message: None };
    }
    let is_main_begun = views.iter().any(|view| {
        view.role == ContainerRole::Main
            && (view.status.started == Some(true) || view.status.last_state.is_some() || view.status.restart_count > 0)
    });
    let incomplete: Vec<&str> =
        views.iter().filter(|view| !is_initialized(view)).map(|view| view.status.name.as_str()).collect();
    if incomplete.is_empty() || is_main_begun {
        return Statement::holds();
    }
    let message = format!("containers with incomplete status: [{}]", incomplete.join(" "));
    Statement::fails("ContainersNotInitialized", Some(message))
}

fn is_initialized(view: &ContainerView<'_>) -> bool {
    match view.role {
        ContainerRole::Init => view.status.ready,
        ContainerRole::Sidecar => view.status.started == Some(true),
        ContainerRole::Main => true,
    }
}

/// Whether the conditions that the pod waits for are true; others set them.
fn gates(pod: &Pod, stood: &[PodCondition]) -> Statement {
    let gates = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let unready: Vec<String> = gates.filter_map(|gate| unready_gate(&gate.condition_type, stood)).collect();
    if unready.is_empty() {
        Statement::holds()
    } else {
        Statement::fails("ReadinessGatesNotReady", Some(unready.join(", ")))
    }
}

fn unready_gate(name: &str, stood: &[PodCondition]) -> Option<String> {
    match stood.iter().find(|one| one.type_ == name) {
        None => Some(format!("corresponding condition of pod readiness gate {name:?} does not exist.")),
        Some(condition) if condition.status == "True" => None,
        Some(condition) => {
            Some(format!("the status of pod readiness gate {name:?} is not \"True\", but {}", condition.status))
        }
    }
}
