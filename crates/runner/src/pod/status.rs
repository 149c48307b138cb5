//! A pod and what is known of it → the status that a kubelet reports (`kubelet_pods.go`, `generateAPIPodStatus`).

mod conditions;
mod phase;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, HostIP,
    Pod, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backoff::BackoffLimits;
use super::containers::{ContainerRole, PodContainer, containers, full_name};
use super::lifecycle::has_started;
use super::record::{ContainerRecord, ContainerRun, EndingCause, PodRecord, RunningContainer, Termination};

/// The reason in the status of a pod that is Ready without running.
pub const SIMULATED: &str = "Simulated";

/// What a status says beside what is known of the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusFacts {
    /// The node's address.
    pub host_address: String,
    /// The pod's address, where it has one.
    pub pod_address: Option<String>,
    /// When this is.
    pub now: Timestamp,
    /// How restarts are spaced.
    pub limits: BackoffLimits,
}

/// The phase of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// Something of it never ran yet.
    Pending,
    /// Something of it runs, or will again.
    Running,
    /// All ended well.
    Succeeded,
    /// Something did not.
    Failed,
}

impl PodPhase {
    /// As a status has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether a pod stays in it.
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Succeeded | Self::Failed => true,
        }
    }

    fn read(text: Option<&str>) -> Option<Self> {
        [Self::Pending, Self::Running, Self::Succeeded, Self::Failed].into_iter().find(|one| text == Some(one.as_str()))
    }
}

/// The status to report. What others wrote into the pod's own status stays: their conditions, and its class of quality.
pub fn pod_status(pod: &Pod, record: &PodRecord, facts: &StatusFacts) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    let views: Vec<ContainerView<'_>> =
        containers(pod).into_iter().map(|container| ContainerView::of(pod, container, record, facts)).collect();
    let phase = final_phase(&before, record).unwrap_or_else(|| phase::phase(&views, record));
    let (reason, message) = why(&before, record, phase);
    let conditions = conditions::conditions(pod, &before, record, &views, phase, facts.now);
    let (main, initial): (Vec<_>, Vec<_>) = views.into_iter().partition(|one| one.role == ContainerRole::Main);
    let initial: Vec<ContainerStatus> = initial.into_iter().map(|view| view.status).collect();
    let address = facts.pod_address.clone();
    PodStatus {
        phase: Some(phase.as_str().to_owned()),
        reason,
        message,
        conditions: Some(conditions),
        container_statuses: Some(main.into_iter().map(|view| view.status).collect()),
        init_container_statuses: (!initial.is_empty()).then_some(initial),
        host_ip: Some(facts.host_address.clone()),
        host_ips: Some(vec![HostIP { ip: facts.host_address.clone() }]),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        start_time: record.since.map(whole_seconds),
        observed_generation: pod.metadata.generation,
        ..before
    }
}

/// A pod does not leave the phase in which it ended; one that the runner ends has failed at once.
fn final_phase(before: &PodStatus, record: &PodRecord) -> Option<PodPhase> {
    let reported = PodPhase::read(before.phase.as_deref()).filter(|phase| phase.is_final());
    let ended = record.ending.as_ref().and_then(|ending| match ending.cause {
        EndingCause::DeadlineExceeded | EndingCause::Evicted { .. } => Some(PodPhase::Failed),
        EndingCause::Deleted | EndingCause::Completed => None,
    });
    reported.or(ended)
}

/// Reason and message belong to the phase, and stay as long as it does.
fn why(before: &PodStatus, record: &PodRecord, phase: PodPhase) -> (Option<String>, Option<String>) {
    let own_end = record.ending.as_ref().map(|ending| &ending.cause);
    let is_ended = matches!(own_end, Some(EndingCause::DeadlineExceeded | EndingCause::Evicted { .. }));
    if !record.simulated.is_empty() && !is_ended {
        return simulated(record);
    }
    // What an earlier runner simulated this one may run.
    if before.reason.as_deref() == Some(SIMULATED) && !phase.is_final() {
        return (None, None);
    }
    match own_end {
        Some(EndingCause::DeadlineExceeded) => {
            let message = "Pod was active on the node longer than the specified deadline";
            (Some("DeadlineExceeded".to_owned()), Some(message.to_owned()))
        }
        Some(EndingCause::Evicted { reason, message }) => (Some(reason.clone()), Some(message.clone())),
        Some(EndingCause::Deleted | EndingCause::Completed) | None
            if before.phase.as_deref() == Some(phase.as_str()) =>
        {
            (before.reason.clone(), before.message.clone())
        }
        Some(EndingCause::Deleted | EndingCause::Completed) | None => (None, None),
    }
}

/// The mark of pods that are Ready without running.
fn simulated(record: &PodRecord) -> (Option<String>, Option<String>) {
    let images: Vec<String> = record.simulated.iter().map(|image| format!("{image:?}")).collect();
    let message = format!("No program of this machine stands for {}: nothing of it runs", images.join(", "));
    (Some(SIMULATED.to_owned()), Some(message))
}

fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// A container, and its status.
struct ContainerView<'a> {
    role: ContainerRole,
    container: PodContainer<'a>,
    status: ContainerStatus,
}

impl<'a> ContainerView<'a> {
    fn of(pod: &Pod, container: PodContainer<'a>, record: &PodRecord, facts: &StatusFacts) -> Self {
        let known = record.container(&container.spec.name);
        let is_ending = record.ending.is_some();
        let state = state(pod, &container, &known, facts, is_ending);
        let started = known.running().is_some_and(|running| has_started(container.spec, running));
        let ready = is_ready(&container, &known);
        let last = if state.terminated.is_some() { known.previous.as_ref() } else { last_end(&known) };
        let status = ContainerStatus {
            name: container.spec.name.clone(),
            image: container.spec.image.clone().unwrap_or_default(),
            image_id: String::new(),
            container_id: run_id(&known).map(|id| format!("portolan://{id}")),
            ready,
            started: Some(started),
            restart_count: known.restarts,
            last_state: last.map(ended),
            state: Some(state),
            ..ContainerStatus::default()
        };
        Self { role: container.role, container, status }
    }
}

/// The last run that ended before what the container does now.
fn last_end(known: &ContainerRecord) -> Option<&Termination> {
    known.termination().or(known.previous.as_ref())
}

fn run_id(known: &ContainerRecord) -> Option<&str> {
    match &known.run {
        ContainerRun::Running(running) => Some(&running.id),
        ContainerRun::Ended(end) => Some(&end.id),
        ContainerRun::Waiting | ContainerRun::Starting => known.previous.as_ref().map(|end| end.id.as_str()),
    }
}

fn is_ready(container: &PodContainer<'_>, known: &ContainerRecord) -> bool {
    match (container.role, &known.run) {
        (ContainerRole::Init, ContainerRun::Ended(end)) => end.exit_code == 0,
        (ContainerRole::Sidecar | ContainerRole::Main, ContainerRun::Running(running)) => {
            has_started(container.spec, running) && running.probes.is_ready(container.spec)
        }
        (ContainerRole::Init | ContainerRole::Sidecar | ContainerRole::Main, _) => false,
    }
}

/// What a container is shown to do.
fn state(
    pod: &Pod,
    container: &PodContainer<'_>,
    known: &ContainerRecord,
    facts: &StatusFacts,
    is_ending: bool,
) -> ContainerState {
    if let (Some(trouble), false) = (&known.trouble, known.is_alive() || is_ending) {
        return waiting(&trouble.reason, Some(trouble.message.clone()));
    }
    match &known.run {
        ContainerRun::Running(running) => shown_running(pod, running),
        ContainerRun::Waiting | ContainerRun::Starting => waiting(first_reason(pod), None),
        ContainerRun::Ended(end) if is_ending || !container.restart.restarts_after(end.exit_code) => ended(end),
        ContainerRun::Ended(end) => match known.backoff.wait_after(end.ended, facts.limits) {
            None => ended(end),
            Some(wait) => {
                let (name, pod) = (&container.spec.name, full_name(pod));
                let text = format!("back-off {} restarting failed container={name} pod={pod}", go_duration(wait));
                waiting("CrashLoopBackOff", Some(text))
            }
        },
    }
}

/// It is not shown as running before its `postStart` hook is done.
fn shown_running(pod: &Pod, running: &RunningContainer) -> ContainerState {
    use super::record::HookState;
    match running.post_start {
        HookState::Due | HookState::Running => waiting(first_reason(pod), None),
        HookState::None | HookState::Done | HookState::Failed => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(whole_seconds(running.since)) }),
            ..ContainerState::default()
        },
    }
}

/// Why a container waits that never ran.
fn first_reason(pod: &Pod) -> &'static str {
    let has_init = pod.spec.as_ref().is_some_and(|spec| spec.init_containers.iter().flatten().next().is_some());
    if has_init { "PodInitializing" } else { "ContainerCreating" }
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn ended(end: &Termination) -> ContainerState {
    let terminated = ContainerStateTerminated {
        container_id: Some(format!("portolan://{}", end.id)),
        exit_code: end.exit_code,
        reason: Some(end.reason.clone()),
        message: end.message.clone(),
        started_at: end.started.map(whole_seconds),
        finished_at: Some(whole_seconds(end.ended)),
        signal: None,
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// `10s`, `1m20s`, `500ms`: a span as Go prints it.
fn go_duration(span: jiff::SignedDuration) -> String {
    let (minutes, seconds) = (span.as_secs() / 60, span.as_secs() % 60);
    match (minutes, seconds) {
        (0, 0) => format!("{}ms", span.as_millis()),
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests;
