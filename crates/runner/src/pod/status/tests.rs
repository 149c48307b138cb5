use serde_json::{Value, json};

use super::*;
use crate::pod::record::{HasHook, HookState, PodEnding, StartTrouble, VolumesState, exit_reason};
use crate::pod::testing::{at, pod};

fn facts(second: i64) -> StatusFacts {
    let limits = BackoffLimits::default();
    StatusFacts {
        host_address: "127.0.0.1".into(),
        pod_address: Some("127.77.0.2".into()),
        address_trouble: None,
        now: at(second),
        limits,
    }
}

fn seen() -> PodRecord {
    PodRecord { since: Some(at(0)), volumes: VolumesState::Ready, ..PodRecord::default() }
}

fn runs(record: &mut PodRecord, container: &str) {
    record.container_mut(container).starts(at(1), BackoffLimits::default());
    record.container_mut(container).started(format!("{container}-1"), at(1), HasHook::No);
}

fn exits(record: &mut PodRecord, container: &str, exit_code: i32, second: i64) {
    let reason = exit_reason(exit_code).to_owned();
    let id = format!("{container}-1");
    let end = Termination { id, exit_code, reason, message: None, started: Some(at(1)), ended: at(second) };
    record.container_mut(container).ended(end);
}

fn shown(pod: &Pod, record: &PodRecord, second: i64) -> Value {
    serde_json::to_value(pod_status(pod, record, &facts(second))).unwrap()
}

fn condition(status: &Value, name: &str) -> String {
    let conditions = status["conditions"].as_array().unwrap();
    let one = conditions.iter().find(|one| one["type"] == name).unwrap();
    let parts = ["status", "reason", "message"].map(|part| one[part].as_str().unwrap_or_default());
    parts.join(" ").trim_end().to_owned()
}

fn conditions(status: &Value) -> Vec<String> {
    ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"]
        .map(|name| format!("{name} {}", condition(status, name)))
        .into()
}

#[test]
fn a_pod_that_was_just_bound_is_pending_and_its_containers_are_being_created() {
    let status = shown(&pod(json!({"containers": [{"name": "a", "image": "busybox"}]})), &PodRecord::default(), 0);

    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["containerStatuses"][0]["state"], json!({"waiting": {"reason": "ContainerCreating"}}));
    assert_eq!(
        conditions(&status),
        [
            "PodScheduled True",
            "PodReadyToStartContainers False",
            "Initialized True",
            "ContainersReady False ContainersNotReady containers with unready status: [a]",
            "Ready False ContainersNotReady containers with unready status: [a]",
        ]
    );
}

#[test]
fn a_pod_whose_containers_run_is_running_and_ready() {
    let mut record = seen();
    runs(&mut record, "a");

    let status = shown(&pod(json!({"containers": [{"name": "a", "image": "busybox"}]})), &record, 2);

    assert_eq!(status["phase"], "Running");
    assert_eq!((&status["podIP"], &status["hostIP"]), (&json!("127.77.0.2"), &json!("127.0.0.1")));
    assert_eq!(status["startTime"], "1970-01-12T13:46:40Z");
    let expected = json!({"name": "a", "image": "busybox", "imageID": "", "containerID": "portolan://a-1", "ready": true,
        "started": true, "restartCount": 0, "state": {"running": {"startedAt": "1970-01-12T13:46:41Z"}}});
    assert_eq!(status["containerStatuses"][0], expected);
    assert_eq!(
        conditions(&status),
        [
            "PodScheduled True",
            "PodReadyToStartContainers True",
            "Initialized True",
            "ContainersReady True",
            "Ready True"
        ]
    );
}

#[test]
fn the_first_end_is_shown_and_later_ones_wait_in_a_crash_loop() {
    let pod = pod(json!({"containers": [{"name": "a"}]}));
    let mut record = seen();
    runs(&mut record, "a");
    exits(&mut record, "a", 7, 2);
    let first = shown(&pod, &record, 2);
    assert_eq!(first["containerStatuses"][0]["state"]["terminated"]["exitCode"], 7);
    assert_eq!(first["containerStatuses"][0]["state"]["terminated"]["reason"], "Error");
    assert_eq!(first["phase"], "Running");
    runs(&mut record, "a");
    exits(&mut record, "a", 7, 3);

    let second = shown(&pod, &record, 3);

    let status = &second["containerStatuses"][0];
    let message = "back-off 10s restarting failed container=a pod=web_harbour(u-1)";
    assert_eq!(status["state"], json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}}));
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 7);
    assert_eq!((&status["restartCount"], &status["ready"]), (&json!(1), &json!(false)));
    assert_eq!(second["phase"], "Running");
}

#[test]
fn a_container_that_cannot_be_started_says_why_and_the_pod_stays_pending() {
    let mut record = seen();
    let trouble = StartTrouble { reason: "NoLocalProgram".into(), message: "no program".into(), again: None };
    record.container_mut("a").not_started(trouble);

    let status = shown(&pod(json!({"containers": [{"name": "a"}]})), &record, 1);

    assert_eq!(status["phase"], "Pending");
    assert_eq!(
        status["containerStatuses"][0]["state"],
        json!({"waiting": {"reason": "NoLocalProgram", "message": "no program"}})
    );
}

#[test]
fn while_init_containers_run_the_pod_is_pending_and_not_initialized() {
    let pod = pod(json!({"initContainers": [{"name": "i"}, {"name": "j"}], "containers": [{"name": "a"}]}));
    let mut record = seen();
    runs(&mut record, "i");
    let status = shown(&pod, &record, 2);
    assert_eq!(status["phase"], "Pending");
    assert_eq!(
        condition(&status, "Initialized"),
        "False ContainersNotInitialized containers with incomplete status: [i j]"
    );
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
    exits(&mut record, "i", 0, 3);
    runs(&mut record, "j");
    exits(&mut record, "j", 0, 4);

    let status = shown(&pod, &record, 5);

    assert_eq!(condition(&status, "Initialized"), "True");
    assert_eq!(status["initContainerStatuses"][0]["ready"], true);
    assert_eq!(status["initContainerStatuses"][0]["state"]["terminated"]["reason"], "Completed");
    assert_eq!(status["phase"], "Pending");
}

#[test]
fn an_init_container_that_failed_for_good_fails_the_pod() {
    let pod = pod(json!({"restartPolicy": "Never", "initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}));
    let mut record = seen();
    runs(&mut record, "i");
    exits(&mut record, "i", 1, 2);

    let status = shown(&pod, &record, 2);

    assert_eq!((&status["phase"], condition(&status, "Ready").as_str()), (&json!("Failed"), "False PodFailed"));
}

#[test]
fn all_containers_that_ended_well_for_good_make_a_pod_that_succeeded() {
    let pod = pod(json!({"restartPolicy": "OnFailure", "containers": [{"name": "a"}, {"name": "b"}]}));
    let mut record = seen();
    for name in ["a", "b"] {
        runs(&mut record, name);
    }
    exits(&mut record, "a", 0, 2);
    assert_eq!(shown(&pod, &record, 2)["phase"], "Running");
    exits(&mut record, "b", 0, 3);

    let status = shown(&pod, &record, 3);

    assert_eq!(status["phase"], "Succeeded");
    assert_eq!(condition(&status, "Initialized"), "True PodCompleted");
    assert_eq!(condition(&status, "ContainersReady"), "False PodCompleted");
}

#[test]
fn one_container_that_failed_for_good_fails_the_pod_once_all_have_ended() {
    let pod = pod(json!({"restartPolicy": "Never", "containers": [{"name": "a"}, {"name": "b"}]}));
    let mut record = seen();
    for name in ["a", "b"] {
        runs(&mut record, name);
    }
    exits(&mut record, "a", 1, 2);
    assert_eq!(shown(&pod, &record, 2)["phase"], "Running");
    exits(&mut record, "b", 0, 3);

    assert_eq!(shown(&pod, &record, 3)["phase"], "Failed");
}

#[test]
fn a_deleted_pod_is_running_until_nothing_of_it_runs_and_then_says_how_it_ended() {
    let pod = pod(json!({"containers": [{"name": "a"}]}));
    let mut record = seen();
    runs(&mut record, "a");
    record.ending = Some(PodEnding { cause: EndingCause::Deleted, since: at(2), grace: 30 });
    assert_eq!(shown(&pod, &record, 2)["phase"], "Running");
    exits(&mut record, "a", 143, 3);
    record.is_over = true;

    let status = shown(&pod, &record, 3);

    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 143);
}

#[test]
fn a_pod_beyond_its_deadline_has_failed_before_its_containers_have_ended() {
    let mut record = seen();
    runs(&mut record, "a");
    record.ending = Some(PodEnding { cause: EndingCause::DeadlineExceeded, since: at(2), grace: 30 });

    let status = shown(&pod(json!({"containers": [{"name": "a"}]})), &record, 2);

    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("DeadlineExceeded")));
    assert_eq!(status["message"], "Pod was active on the node longer than the specified deadline");
}

#[test]
fn a_phase_that_is_final_stays() {
    let mut pod = pod(json!({"containers": [{"name": "a"}]}));
    pod.status = serde_json::from_value(json!({"phase": "Succeeded", "qosClass": "Burstable"})).unwrap();
    let mut record = seen();
    runs(&mut record, "a");

    let status = shown(&pod, &record, 2);

    assert_eq!((&status["phase"], &status["qosClass"]), (&json!("Succeeded"), &json!("Burstable")));
}

#[test]
fn a_readiness_probe_keeps_the_pod_from_being_ready() {
    let pod = pod(json!({"containers": [{"name": "a", "readinessProbe": {}}, {"name": "b"}]}));
    let mut record = seen();
    for name in ["a", "b"] {
        runs(&mut record, name);
    }

    let status = shown(&pod, &record, 2);

    assert_eq!(status["containerStatuses"][0]["started"], true);
    assert_eq!(condition(&status, "Ready"), "False ContainersNotReady containers with unready status: [a]");
}

#[test]
fn a_startup_probe_keeps_the_container_from_having_started() {
    let mut record = seen();
    runs(&mut record, "a");

    let status = shown(&pod(json!({"containers": [{"name": "a", "startupProbe": {}}]})), &record, 2);

    assert_eq!(status["containerStatuses"][0]["started"], false);
    assert_eq!(status["phase"], "Running");
}

#[test]
fn a_container_is_not_shown_as_running_before_its_post_start_hook_is_done() {
    let mut record = seen();
    runs(&mut record, "a");
    record.container_mut("a").running_mut().unwrap().post_start = HookState::Running;

    let status = shown(&pod(json!({"containers": [{"name": "a"}]})), &record, 2);

    assert_eq!(status["containerStatuses"][0]["state"], json!({"waiting": {"reason": "ContainerCreating"}}));
}

#[test]
fn readiness_gates_are_conditions_of_others_that_must_be_true() {
    let mut pod = pod(json!({"readinessGates": [{"conditionType": "example.com/lit"}], "containers": [{"name": "a"}]}));
    let mut record = seen();
    runs(&mut record, "a");
    let without = shown(&pod, &record, 2);
    let told = "False ReadinessGatesNotReady corresponding condition of pod readiness gate \"example.com/lit\" does not exist.";
    assert_eq!(condition(&without, "Ready"), told);
    assert_eq!(condition(&without, "ContainersReady"), "True");
    pod.status =
        serde_json::from_value(json!({"conditions": [{"type": "example.com/lit", "status": "True"}]})).unwrap();

    let with = shown(&pod, &record, 2);

    assert_eq!((condition(&with, "Ready").as_str(), condition(&with, "example.com/lit").as_str()), ("True", "True"));
}

#[test]
fn a_condition_keeps_its_time_as_long_as_it_says_the_same() {
    let mut pod = pod(json!({"containers": [{"name": "a"}]}));
    let mut record = seen();
    pod.status = Some(pod_status(&pod, &record, &facts(1)));
    runs(&mut record, "a");
    let time = |status: &Value, name: &str| {
        let all = status["conditions"].as_array().unwrap();
        all.iter().find(|one| one["type"] == name).unwrap()["lastTransitionTime"].as_str().unwrap().to_owned()
    };

    let status = shown(&pod, &record, 5);

    assert_eq!(time(&status, "PodScheduled"), "1970-01-12T13:46:41Z");
    assert_eq!(time(&status, "Ready"), "1970-01-12T13:46:45Z");
}

#[test]
fn the_same_knowledge_gives_the_same_status_later() {
    let mut pod = pod(json!({"containers": [{"name": "a"}]}));
    let mut record = seen();
    runs(&mut record, "a");
    let status = pod_status(&pod, &record, &facts(2));
    pod.status = Some(status.clone());

    assert_eq!(pod_status(&pod, &record, &facts(500)), status);
}

#[test]
fn spans_are_written_as_go_writes_them() {
    let of = |seconds| go_duration(jiff::SignedDuration::from_secs(seconds));

    assert_eq!([10, 20, 40, 80, 160, 300].map(of), ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s"]);
}

#[test]
fn an_address_that_is_not_carried_is_told_with_what_helps_and_only_as_long_as_that_is_so() {
    let mut record = seen();
    runs(&mut record, "a");
    let mut pod = pod(json!({"containers": [{"name": "a", "image": "busybox"}]}));
    let trouble = StatusFacts { address_trouble: Some("run `sudo this`".into()), ..facts(2) };
    let told = |pod: &Pod, facts: &StatusFacts| {
        let conditions = pod_status(pod, &record, facts).conditions.unwrap();
        conditions
            .into_iter()
            .find(|one| one.type_ == "portolan.dev/AddressCarried")
            .map(|one| (one.status, one.message))
    };

    assert_eq!(told(&pod, &trouble), Some(("False".to_owned(), Some("run `sudo this`".to_owned()))));
    pod.status = Some(pod_status(&pod, &record, &trouble));
    assert_eq!(told(&pod, &facts(3)), None);
}
