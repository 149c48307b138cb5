//! A pod or a container that is to end → hooks, the signal, the time that is left, and the kill.

use jiff::Timestamp;

use super::super::containers::{ContainerRole, PodContainer, containers};
use super::super::record::{ContainerRecord, ContainerStop, HookState, PodEnding, StopCause};
use super::{PodLook, PodStep, after};

/// What a container is given at least between the signal and the kill (`kuberuntime/kuberuntime_manager.go`,
/// `minimumGracePeriodInSeconds`).
const LEAST_GRACE: i64 = 2;

impl PodLook<'_> {
    /// All containers end: main ones side by side, then sidecars in the opposite of their order.
    pub(super) fn at_ending(&mut self, ending: &PodEnding) {
        let alive: Vec<PodContainer<'_>> = containers(self.pod).into_iter().filter(|one| self.is_alive(one)).collect();
        if alive.is_empty() {
            return self.decision.add(PodStep::Finish);
        }
        for container in alive {
            let running = self.known(&container).and_then(ContainerRecord::running);
            match running.map(|running| running.stop.clone()) {
                // It is being started: it is stopped as soon as it runs.
                None => {}
                Some(None) => self.stop_with_pod(&container, ending),
                Some(Some(stop)) => self.at_stop(&container, &stop),
            }
        }
    }

    fn is_alive(&self, container: &PodContainer<'_>) -> bool {
        self.known(container).is_some_and(ContainerRecord::is_alive)
    }

    fn stop_with_pod(&mut self, container: &PodContainer<'_>, ending: &PodEnding) {
        let step =
            PodStep::Stop { container: container.spec.name.clone(), cause: StopCause::PodEnds, grace: ending.grace };
        self.decision.add(step);
    }

    /// The next step of a container that is to end: its hook, the signal, the kill.
    pub(super) fn at_stop(&mut self, container: &PodContainer<'_>, stop: &ContainerStop) {
        let name = || container.spec.name.clone();
        let out_of_time = after(stop.since, self.grace_of(stop));
        match (&stop.pre_stop, stop.told) {
            (_, Some(told)) => self.at_told(container, stop, told),
            (HookState::Due, None) => self.decision.add(PodStep::PreStop { container: name() }),
            // A hook that takes all the time is not waited for.
            (HookState::Running, None) => {
                self.decision.at(out_of_time, self.now, || PodStep::Tell { container: name() });
            }
            (HookState::None | HookState::Done | HookState::Failed, None) => {
                if self.has_its_turn(container, stop) {
                    self.decision.add(PodStep::Tell { container: name() });
                } else {
                    self.decision.at(out_of_time, self.now, || PodStep::Tell { container: name() });
                }
            }
        }
    }

    /// The grace of a stop; a deletion that was asked for again with less time shortens it.
    fn grace_of(&self, stop: &ContainerStop) -> i64 {
        let ending = self.record.ending.as_ref().filter(|_| stop.cause == StopCause::PodEnds);
        ending.map_or(stop.grace, |ending| ending.grace.min(stop.grace))
    }

    fn at_told(&mut self, container: &PodContainer<'_>, stop: &ContainerStop, told: Timestamp) {
        if stop.is_killed {
            return;
        }
        let left = after(stop.since, self.grace_of(stop)).max(after(told, LEAST_GRACE));
        self.decision.at(left, self.now, || PodStep::Kill { container: container.spec.name.clone() });
    }

    /// A sidecar is told once all that came after it have ended (`kuberuntime/kuberuntime_termination_order.go`).
    fn has_its_turn(&self, container: &PodContainer<'_>, stop: &ContainerStop) -> bool {
        if container.role != ContainerRole::Sidecar || stop.cause != StopCause::PodEnds {
            return true;
        }
        let all = containers(self.pod);
        let later = all.iter().skip_while(|one| one.spec.name != container.spec.name).skip(1);
        !later.into_iter().any(|one| self.is_alive(one))
    }
}
