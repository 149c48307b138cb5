//! The status that an earlier runner reported → what is known of the pod when a new one begins with it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

use super::record::{ContainerRecord, ContainerRun, PodRecord, Termination};

/// What is known of a pod that this runner did not start: what ran has ended with its runner.
pub fn resumed_record(pod: &Pod, now: Timestamp) -> PodRecord {
    let status = pod.status.clone().unwrap_or_default();
    let since = status.start_time.map_or(now, |time| time.0);
    let all = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    let containers = all.map(|one| (one.name.clone(), resumed_container(one, now))).collect();
    PodRecord { since: Some(since), containers, ..PodRecord::default() }
}

fn resumed_container(status: &ContainerStatus, now: Timestamp) -> ContainerRecord {
    let state = status.state.clone().unwrap_or_default();
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref()).map(|end| termination(end, now));
    let ended = match (&state.running, &state.terminated) {
        (Some(running), _) => Some(Termination {
            id: run_id(status.container_id.as_deref()),
            exit_code: 137,
            reason: "Error".to_owned(),
            message: Some("The runner was stopped while the container ran".to_owned()),
            started: running.started_at.as_ref().map(|time| time.0),
            ended: now,
        }),
        (None, Some(end)) => Some(termination(end, now)),
        // It waits: for its first start, or for its next.
        (None, None) => None,
    };
    let (run, previous) = match (ended, last) {
        (Some(end), last) => (ContainerRun::Ended(end), last),
        (None, Some(last)) => (ContainerRun::Ended(last), None),
        (None, None) => (ContainerRun::Waiting, None),
    };
    ContainerRecord { run, restarts: status.restart_count, previous, ..ContainerRecord::default() }
}

fn termination(end: &ContainerStateTerminated, now: Timestamp) -> Termination {
    Termination {
        id: run_id(end.container_id.as_deref()),
        exit_code: end.exit_code,
        reason: end.reason.clone().unwrap_or_default(),
        message: end.message.clone(),
        started: end.started_at.as_ref().map(|time| time.0),
        ended: end.finished_at.as_ref().map_or(now, |time| time.0),
    }
}

fn run_id(container_id: Option<&str>) -> String {
    let id = container_id.unwrap_or_default();
    id.strip_prefix("portolan://").unwrap_or(id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::backoff::BackoffLimits;
    use crate::pod::lifecycle::{PodStep, decide};
    use crate::pod::record::VolumesState;
    use crate::pod::testing::{at, pod};
    use serde_json::{Value, json};

    fn resumed(spec: Value, status: Value) -> (Pod, PodRecord) {
        let mut pod = pod(spec);
        pod.status = serde_json::from_value(status).unwrap();
        let mut record = resumed_record(&pod, at(0));
        record.volumes = VolumesState::Ready;
        (pod, record)
    }

    fn steps(pod: &Pod, record: &PodRecord) -> Vec<PodStep> {
        decide(pod, record, at(0), BackoffLimits::default()).steps
    }

    fn running(name: &str, restarts: i32) -> Value {
        json!({"name": name, "image": "a", "imageID": "", "ready": true, "restartCount": restarts,
            "containerID": "portolan://x", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
    }

    #[test]
    fn what_ran_is_started_again_and_its_restarts_are_counted_on() {
        let status = json!({"startTime": "2026-01-01T00:00:00Z", "containerStatuses": [running("a", 3)]});

        let (pod, record) = resumed(json!({"containers": [{"name": "a"}]}), status);

        assert_eq!(steps(&pod, &record), [PodStep::Start { container: "a".into() }]);
        let known = &record.containers["a"];
        assert_eq!((known.restarts, known.termination().map(|end| end.exit_code)), (3, Some(137)));
        assert_eq!(record.since.map(|time| time.to_string()), Some("2026-01-01T00:00:00Z".to_owned()));
    }

    #[test]
    fn what_ran_in_a_pod_that_never_restarts_has_failed() {
        let status = json!({"containerStatuses": [running("a", 0)]});

        let (pod, record) = resumed(json!({"restartPolicy": "Never", "containers": [{"name": "a"}]}), status);

        assert!(matches!(steps(&pod, &record)[..], [PodStep::End { .. }]), "{:?}", steps(&pod, &record));
    }

    #[test]
    fn init_containers_that_are_done_stay_so() {
        let done = json!({"name": "i", "image": "a", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:00Z"}}});
        let status = json!({"initContainerStatuses": [done], "containerStatuses": [running("a", 0)]});

        let (pod, record) = resumed(json!({"initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}), status);

        assert_eq!(steps(&pod, &record), [PodStep::Start { container: "a".into() }]);
    }

    #[test]
    fn a_pod_without_a_status_begins_from_the_start() {
        let (pod, record) = resumed(json!({"containers": [{"name": "a"}]}), Value::Null);

        assert_eq!(record.since, Some(at(0)));
        assert_eq!(steps(&pod, &record), [PodStep::Start { container: "a".into() }]);
    }
}
