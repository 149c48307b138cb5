//! Whether a task is to be carried out now, later, or not at all. Pure.

use std::time::Duration;

use jiff::Timestamp;
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus, Phase};

/// Who looks at the task, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskLook<'a> {
    /// The worker that looks.
    pub(crate) worker: &'a str,
    /// Whether something changed that the task failed for.
    pub(crate) nudged: bool,
    /// The time.
    pub(crate) now: Timestamp,
}

/// Who claimed a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    /// The worker.
    pub(crate) worker: String,
    /// Which of its lives; empty where it does not say.
    pub(crate) epoch: String,
}

/// What is to happen to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// It is carried out now.
    Now,
    /// It failed, and is tried again after this.
    Later(Duration),
    /// Another worker has it, or had it when it died.
    Held(Holder),
    /// There is nothing to do until it changes.
    Settled,
}

/// What is to happen to a task.
pub(crate) fn due(task: &CloudflareTask, look: TaskLook<'_>) -> Due {
    portolan_core::waypoint!();
    // What an older operator queued is queued anew by the route side, in a form that lost nothing.
    if task.metadata.deletion_timestamp.is_some() || task.is_older() {
        return Due::Settled;
    }
    let status = task.status.clone().unwrap_or_default();
    let current = task.is_current() && status.annotation_hash.as_deref() == task.hash();
    match task.phase() {
        Phase::InProgress => claimed(&status, look),
        Phase::Completed if current => Due::Settled,
        Phase::Failed if current && !look.nudged => retried(&status, look.now),
        Phase::Pending if current && !look.nudged => waiting(&status, look.now),
        Phase::Completed | Phase::Failed | Phase::Pending => Due::Now,
    }
}

/// A claim of our own, also from an earlier life, is resumed: one task has one pass at a time, so nobody is at it here.
fn claimed(status: &CloudflareTaskStatus, look: TaskLook<'_>) -> Due {
    match status.worker_pod.as_deref().filter(|worker| !worker.is_empty()) {
        Some(other) if other != look.worker => {
            Due::Held(Holder { worker: other.to_owned(), epoch: status.epoch.clone().unwrap_or_default() })
        }
        Some(_) | None => Due::Now,
    }
}

fn retried(status: &CloudflareTaskStatus, now: Timestamp) -> Due {
    match status.next_attempt_time {
        Some(_) => waiting(status, now),
        None => Due::Settled,
    }
}

fn waiting(status: &CloudflareTaskStatus, now: Timestamp) -> Due {
    let next = status.next_attempt_time.as_deref().and_then(|time| time.parse::<Timestamp>().ok());
    let left = next.map(|next| next.duration_since(now)).and_then(|left| Duration::try_from(left).ok());
    match left.filter(|left| !left.is_zero()) {
        Some(left) => Due::Later(left),
        None => Due::Now,
    }
}

#[cfg(test)]
mod tests {
    use portolan_zerotrust_model::{CloudflareTaskSpec, RouteRef};

    use super::*;

    const NOW: &str = "2026-11-16T06:00:00Z";

    fn task(status: CloudflareTaskStatus) -> CloudflareTask {
        let mut task = CloudflareTask::new("cfzt-shop-web", CloudflareTaskSpec::default());
        task.metadata.generation = Some(3);
        task.status =
            Some(CloudflareTaskStatus { observed_generation: status.observed_generation.or(Some(3)), ..status });
        task
    }

    fn phase(phase: Phase) -> CloudflareTaskStatus {
        CloudflareTaskStatus { phase: Some(phase), ..CloudflareTaskStatus::default() }
    }

    fn look() -> TaskLook<'static> {
        TaskLook { worker: "w1", nudged: false, now: NOW.parse().unwrap() }
    }

    fn seen(status: CloudflareTaskStatus) -> Due {
        due(&task(status), look())
    }

    fn held_by(worker: &str) -> CloudflareTaskStatus {
        CloudflareTaskStatus { worker_pod: Some(worker.to_owned()), ..phase(Phase::InProgress) }
    }

    fn failed(next: Option<&str>) -> CloudflareTaskStatus {
        CloudflareTaskStatus { next_attempt_time: next.map(str::to_owned), ..phase(Phase::Failed) }
    }

    #[test]
    fn a_task_that_nobody_looked_at_is_due() {
        let mut fresh = task(CloudflareTaskStatus::default());
        fresh.status = None;

        assert_eq!(due(&fresh, look()), Due::Now);
        assert_eq!(seen(phase(Phase::Pending)), Due::Now);
    }

    #[test]
    fn a_completed_task_rests_until_its_spec_or_its_hash_changes() {
        assert_eq!(seen(phase(Phase::Completed)), Due::Settled);

        let older = CloudflareTaskStatus { observed_generation: Some(2), ..phase(Phase::Completed) };
        let other = CloudflareTaskStatus { annotation_hash: Some("old".to_owned()), ..phase(Phase::Completed) };
        assert_eq!((seen(older), seen(other)), (Due::Now, Due::Now));
    }

    #[test]
    fn a_claim_of_another_worker_stands_as_long_as_that_life_does() {
        let claimed = CloudflareTaskStatus { epoch: Some("e1".to_owned()), ..held_by("w2") };

        assert_eq!(seen(claimed), Due::Held(Holder { worker: "w2".to_owned(), epoch: "e1".to_owned() }));
    }

    #[test]
    fn a_claim_of_our_own_or_of_nobody_is_resumed() {
        assert_eq!((seen(held_by("w1")), seen(held_by(""))), (Due::Now, Due::Now));
    }

    #[test]
    fn a_failed_task_waits_for_its_time_or_for_a_change() {
        let minute = Due::Later(Duration::from_secs(60));

        assert_eq!(seen(failed(Some("2026-11-16T06:01:00Z"))), minute);
        assert_eq!(seen(failed(Some(NOW))), Due::Now);
        assert_eq!(seen(failed(None)), Due::Settled);
        let older = CloudflareTaskStatus { observed_generation: Some(2), ..failed(None) };
        assert_eq!(seen(older), Due::Now);
    }

    #[test]
    fn a_failed_task_is_due_when_what_it_failed_for_changed() {
        let nudged = TaskLook { nudged: true, ..look() };

        assert_eq!(due(&task(failed(None)), nudged), Due::Now);
        assert_eq!(due(&task(failed(Some("2026-11-16T07:00:00Z"))), nudged), Due::Now);
    }

    #[test]
    fn a_task_of_an_older_operator_is_left_to_the_route_side_unless_it_names_no_route() {
        let mut older = task(phase(Phase::Pending));
        assert_eq!(due(&older, look()), Due::Now);

        older.spec.httproute_ref = Some(RouteRef { name: "web".to_owned(), ..RouteRef::default() });
        assert_eq!(due(&older, look()), Due::Settled);

        older.set_form();
        assert_eq!(due(&older, look()), Due::Now);
    }

    #[test]
    fn a_task_that_goes_is_left_alone() {
        let mut going = task(phase(Phase::Pending));
        going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(look().now));

        assert_eq!(due(&going, look()), Due::Settled);
    }
}
