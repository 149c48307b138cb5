//! What the containers do → the pod's phase (`kubelet_pods.go`, `getPhase`).

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated};

use super::super::containers::{ContainerRole, RestartRule};
use super::super::record::PodRecord;
use super::{ContainerView, PodPhase};

/// How many containers do what.
#[derive(Default)]
struct Tally {
    /// Init containers that did not end yet, and sidecars that did not start.
    initializing: usize,
    /// Init containers that failed for good.
    lost: usize,
    running: usize,
    /// Those that never ran.
    waiting: usize,
    stopped: usize,
    /// Of these, those that are not started again.
    stopped_for_good: usize,
    succeeded: usize,
}

/// The phase. `Running` is also what waits for its next start.
pub(super) fn phase(views: &[ContainerView<'_>], record: &PodRecord) -> PodPhase {
    let mut tally = Tally::default();
    for view in views {
        tally.count(view);
    }
    let has_begun = views.iter().any(|view| view.role == ContainerRole::Main && has_run(view));
    if tally.lost > 0 {
        return PodPhase::Failed;
    }
    let is_initializing = tally.initializing > 0 && !has_begun;
    if is_initializing || tally.waiting > 0 {
        // Deleted before it ran: it never will.
        return if record.is_over { PodPhase::Failed } else { PodPhase::Pending };
    }
    if tally.running > 0 {
        return PodPhase::Running;
    }
    match (record.is_over || tally.stopped == tally.stopped_for_good, tally.stopped == tally.succeeded) {
        (false, _) => PodPhase::Running,
        (true, true) => PodPhase::Succeeded,
        (true, false) => PodPhase::Failed,
    }
}

fn has_run(view: &ContainerView<'_>) -> bool {
    last_end(view).is_some() || view.status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// How it ended: it is shown as ended, or waits for its next start.
fn last_end<'v>(view: &'v ContainerView<'_>) -> Option<&'v ContainerStateTerminated> {
    let of = |state: &'v Option<ContainerState>| state.as_ref()?.terminated.as_ref();
    of(&view.status.state).or_else(|| of(&view.status.last_state))
}

impl Tally {
    fn count(&mut self, view: &ContainerView<'_>) {
        let is_running = view.status.state.as_ref().is_some_and(|state| state.running.is_some());
        match view.role {
            ContainerRole::Init => self.count_init(view, is_running),
            ContainerRole::Sidecar => self.count_sidecar(view, is_running),
            ContainerRole::Main => self.count_main(view, is_running),
        }
    }

    fn count_init(&mut self, view: &ContainerView<'_>, is_running: bool) {
        match last_end(view) {
            Some(end) if !is_running && end.exit_code == 0 => {}
            Some(end) if !is_running && view.container.restart == RestartRule::Never && end.exit_code != 0 => {
                self.lost += 1;
            }
            Some(_) | None => self.initializing += 1,
        }
    }

    /// A sidecar that has ended counts for nothing.
    fn count_sidecar(&mut self, view: &ContainerView<'_>, is_running: bool) {
        if is_running {
            self.running += 1;
        }
        if view.status.started != Some(true) && last_end(view).is_none() {
            self.initializing += 1;
        }
    }

    fn count_main(&mut self, view: &ContainerView<'_>, is_running: bool) {
        match last_end(view) {
            _ if is_running => self.running += 1,
            None => self.waiting += 1,
            Some(end) => {
                self.stopped += 1;
                self.stopped_for_good += usize::from(!view.container.restart.restarts_after(end.exit_code));
                self.succeeded += usize::from(end.exit_code == 0);
            }
        }
    }
}
