//! A pod, what is known of it and the time → the steps to take now, and when to look again
//! (`kuberuntime/kuberuntime_manager.go`, `computePodActions`; `kuberuntime_container.go`, `killContainer`).
//!
//! Steps that are taken must be noted in the record before the next look, or they are decided once more.

mod ending;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};

use super::backoff::BackoffLimits;
use super::containers::{ContainerRole, PodContainer, containers, grace_seconds};
use super::probes::ProbeKind;
use super::record::{
    ContainerRecord, ContainerRun, EndingCause, HasHook, HookState, PodRecord, RunningContainer, StopCause,
    VolumesState,
};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodStep {
    /// Make the pod's volumes.
    Mount,
    /// Start a container.
    Start {
        /// Its name.
        container: String,
    },
    /// Run its `postStart` hook.
    PostStart {
        /// Its name.
        container: String,
    },
    /// Probe it.
    Probe {
        /// Its name.
        container: String,
        /// What for.
        kind: ProbeKind,
    },
    /// Say that it is to end.
    Stop {
        /// Its name.
        container: String,
        /// Why.
        cause: StopCause,
        /// How long it may take, in seconds.
        grace: i64,
    },
    /// Run its `preStop` hook.
    PreStop {
        /// Its name.
        container: String,
    },
    /// Tell it to end: the signal that stops it.
    Tell {
        /// Its name.
        container: String,
    },
    /// Kill it, with everything that it started.
    Kill {
        /// Its name.
        container: String,
    },
    /// Let the pod end.
    End {
        /// Why.
        cause: EndingCause,
        /// How long its containers may take, in seconds.
        grace: i64,
    },
    /// Nothing of it runs any more: put its files away, and let the pod go where it was deleted.
    Finish,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodDecision {
    /// Now, in this order.
    pub steps: Vec<PodStep>,
    /// When to look again, if nothing happens before.
    pub look_again: Option<Timestamp>,
}

impl PodDecision {
    fn add(&mut self, step: PodStep) {
        self.steps.push(step);
    }

    fn look_at(&mut self, time: Timestamp) {
        self.look_again = Some(self.look_again.map_or(time, |known| known.min(time)));
    }

    /// The step where its time has come, else a look when it has.
    fn at(&mut self, time: Timestamp, now: Timestamp, step: impl FnOnce() -> PodStep) {
        if now >= time { self.add(step()) } else { self.look_at(time) }
    }
}

/// What to do about a pod.
pub fn decide(pod: &Pod, record: &PodRecord, now: Timestamp, limits: BackoffLimits) -> PodDecision {
    let mut look = PodLook { pod, record, now, limits, decision: PodDecision::default() };
    if !record.is_over {
        look.at_pod();
    }
    look.decision
}

/// Some seconds later.
fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds)).expect("a span of seconds")
}

/// Whether a container has a hook of that sort.
pub fn hook(handler: Option<&LifecycleHandler>) -> HasHook {
    if handler.is_some() { HasHook::Yes } else { HasHook::No }
}

/// The container's hook before it is told to end.
pub fn pre_stop(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.pre_stop.as_ref()
}

/// The container's hook after it was started.
pub fn post_start(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.post_start.as_ref()
}

/// How far a container is, for those that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContainerProgress {
    /// The next one may begin.
    Passed,
    /// Not yet.
    Pending,
    /// It never will: the pod has failed.
    Lost,
}

/// One look at a pod.
struct PodLook<'a> {
    pod: &'a Pod,
    record: &'a PodRecord,
    now: Timestamp,
    limits: BackoffLimits,
    decision: PodDecision,
}

impl PodLook<'_> {
    fn at_pod(&mut self) {
        if let Some(ending) = &self.record.ending {
            return self.at_ending(ending);
        }
        if self.pod.metadata.deletion_timestamp.is_some() {
            return self.end(EndingCause::Deleted);
        }
        if self.is_beyond_deadline() {
            return self.end(EndingCause::DeadlineExceeded);
        }
        match &self.record.volumes {
            VolumesState::Absent => self.decision.add(PodStep::Mount),
            VolumesState::Failed { again } => self.decision.at(*again, self.now, || PodStep::Mount),
            VolumesState::Ready => self.at_containers(),
        }
    }

    fn end(&mut self, cause: EndingCause) {
        self.decision.add(PodStep::End { cause, grace: grace_seconds(self.pod) });
    }

    /// `activeDeadlineSeconds`, counted from when the pod was first seen; looks again when it is over.
    fn is_beyond_deadline(&mut self) -> bool {
        let allowed = self.pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
        let Some(deadline) = self.record.since.zip(allowed).map(|(since, allowed)| after(since, allowed)) else {
            return false;
        };
        if self.now < deadline {
            self.decision.look_at(deadline);
        }
        self.now >= deadline
    }

    fn at_containers(&mut self) {
        let all = containers(self.pod);
        let (main, initial): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.role == ContainerRole::Main);
        if self.has_begun(&main) {
            // Sidecars go on beside the main containers; the others before them are done.
            if self.at_main(&main) {
                return self.end(EndingCause::Completed);
            }
            for sidecar in initial.iter().filter(|one| one.role == ContainerRole::Sidecar) {
                self.at_container(sidecar);
            }
            return;
        }
        match self.at_initial(&initial) {
            ContainerProgress::Passed => {
                self.at_main(&main);
            }
            ContainerProgress::Pending => {}
            ContainerProgress::Lost => self.end(EndingCause::Completed),
        }
    }

    /// Whether a main container ever ran: the pod is initialized then, and stays so.
    fn has_begun(&self, main: &[PodContainer<'_>]) -> bool {
        main.iter().any(|one| match self.known(one) {
            Some(record) => !matches!(record.run, ContainerRun::Waiting) || record.trouble.is_some(),
            None => false,
        })
    }

    fn known(&self, container: &PodContainer<'_>) -> Option<&ContainerRecord> {
        self.record.containers.get(&container.spec.name)
    }

    /// Whether all main containers are done for good. One that never ran waits for the `postStart` hooks of those before it.
    fn at_main(&mut self, main: &[PodContainer<'_>]) -> bool {
        let (mut is_done, mut is_held_up) = (true, false);
        for container in main {
            is_done &= self.is_done(container);
            if !(is_held_up && self.never_ran(container)) {
                self.at_container(container);
            }
            is_held_up |= self.holds_up_others(container);
        }
        is_done
    }

    fn never_ran(&self, container: &PodContainer<'_>) -> bool {
        self.known(container).is_none_or(|record| matches!(record.run, ContainerRun::Waiting))
    }

    /// Whether its `postStart` hook is yet to come, or under way. One that cannot be started holds up nobody.
    fn holds_up_others(&self, container: &PodContainer<'_>) -> bool {
        let Some(record) = self.known(container) else { return post_start(container.spec).is_some() };
        match &record.run {
            ContainerRun::Waiting => post_start(container.spec).is_some() && record.trouble.is_none(),
            ContainerRun::Starting => post_start(container.spec).is_some(),
            ContainerRun::Running(running) => matches!(running.post_start, HookState::Due | HookState::Running),
            ContainerRun::Ended(_) => false,
        }
    }

    fn is_done(&self, container: &PodContainer<'_>) -> bool {
        let termination = self.known(container).and_then(ContainerRecord::termination);
        termination.is_some_and(|termination| !container.restart.restarts_after(termination.exit_code))
    }

    /// Init containers one after the other; sidecars before the one whose turn it is go on.
    fn at_initial(&mut self, initial: &[PodContainer<'_>]) -> ContainerProgress {
        for container in initial {
            self.at_container(container);
            match self.progress(container) {
                ContainerProgress::Passed => {}
                other => return other,
            }
        }
        ContainerProgress::Passed
    }

    fn progress(&self, container: &PodContainer<'_>) -> ContainerProgress {
        let Some(record) = self.known(container) else { return ContainerProgress::Pending };
        match (container.role, &record.run) {
            (ContainerRole::Init, ContainerRun::Ended(end)) if end.exit_code == 0 => ContainerProgress::Passed,
            (ContainerRole::Init, ContainerRun::Ended(end)) if !container.restart.restarts_after(end.exit_code) => {
                ContainerProgress::Lost
            }
            (ContainerRole::Sidecar, ContainerRun::Running(running)) if has_started(container.spec, running) => {
                ContainerProgress::Passed
            }
            (ContainerRole::Init | ContainerRole::Sidecar | ContainerRole::Main, _) => ContainerProgress::Pending,
        }
    }

    fn at_container(&mut self, container: &PodContainer<'_>) {
        let name = || container.spec.name.clone();
        let Some(record) = self.known(container).cloned() else {
            return self.decision.add(PodStep::Start { container: name() });
        };
        match &record.run {
            ContainerRun::Waiting => self.start_unless_troubled(container, &record),
            ContainerRun::Starting => {}
            ContainerRun::Running(running) => self.at_running(container, running),
            ContainerRun::Ended(end) => {
                if !container.restart.restarts_after(end.exit_code) {
                    return;
                }
                let due = record.backoff.wait_after(end.ended, self.limits).unwrap_or_default();
                let due = end.ended.saturating_add(due).expect("a span of seconds");
                if self.now >= due {
                    self.start_unless_troubled(container, &record);
                } else {
                    self.decision.look_at(due);
                }
            }
        }
    }

    fn start_unless_troubled(&mut self, container: &PodContainer<'_>, record: &ContainerRecord) {
        let start = || PodStep::Start { container: container.spec.name.clone() };
        match &record.trouble {
            None => self.decision.add(start()),
            Some(trouble) => {
                if let Some(again) = trouble.again {
                    self.decision.at(again, self.now, start);
                }
            }
        }
    }

    fn at_running(&mut self, container: &PodContainer<'_>, running: &RunningContainer) {
        let name = || container.spec.name.clone();
        if let Some(stop) = &running.stop {
            return self.at_stop(container, stop);
        }
        match running.post_start {
            HookState::Due => return self.decision.add(PodStep::PostStart { container: name() }),
            HookState::Running => return,
            HookState::Failed => return self.stop(container, StopCause::PostStart, None),
            HookState::None | HookState::Done => {}
        }
        if let Some(kind) = running.probes.condemned_by(container.spec) {
            let cause = if kind == ProbeKind::Liveness { StopCause::Liveness } else { StopCause::Startup };
            // A probe may give less time than the pod.
            let own = kind.of(container.spec).and_then(|probe| probe.termination_grace_period_seconds);
            return self.stop(container, cause, own);
        }
        for (kind, due) in running.probes.due(container.spec, running.since) {
            self.decision.at(due, self.now, || PodStep::Probe { container: name(), kind });
        }
    }

    fn stop(&mut self, container: &PodContainer<'_>, cause: StopCause, grace: Option<i64>) {
        let grace = grace.unwrap_or_else(|| grace_seconds(self.pod));
        self.decision.add(PodStep::Stop { container: container.spec.name.clone(), cause, grace });
    }
}

/// Whether a container counts as started: its hook is done, and so is its startup probe.
pub fn has_started(container: &Container, running: &RunningContainer) -> bool {
    matches!(running.post_start, HookState::None | HookState::Done) && running.probes.has_started(container)
}

#[cfg(test)]
mod tests;
