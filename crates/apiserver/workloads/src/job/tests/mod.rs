//! Jobs in a world in memory: pods end, and the Job with them.

mod failures;
mod histories;
mod indexed;

use std::time::Duration;

use serde_json::{Value, json};

use super::Jobs;
use super::pods::{index_of, is_tracked};
use crate::common::object::name;
use crate::common::pod::is_active;
use crate::testing::{TestObjects, in_shop};
use crate::{Controller as _, Dependents, Step, View as _};

fn job(spec: Value) -> Value {
    let labels = json!({"batch.kubernetes.io/controller-uid": "uid-job", "batch.kubernetes.io/job-name": "sum"});
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "shop", "uid": "uid-job"},
        "spec": {
            "parallelism": 1,
            "completionMode": "NonIndexed",
            "backoffLimit": 6,
            "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-job"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "sum:1"}]},
            },
        },
    });
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

fn world(spec: Value) -> TestObjects {
    let mut world = TestObjects::default();
    world.now = "2026-01-01T00:00:00Z".parse().unwrap();
    world.put("jobs.batch", job(spec));
    world.settle(&Jobs);
    world
}

fn live(world: &TestObjects) -> Value {
    (*world.get("jobs.batch", "shop", "sum").unwrap()).clone()
}

fn status(world: &TestObjects) -> Value {
    live(world)["status"].clone()
}

fn running(world: &TestObjects) -> Vec<String> {
    let pods = world.list("pods", "shop");
    pods.iter().filter(|pod| is_active(pod)).map(|pod| name(pod).to_owned()).collect()
}

fn exit(world: &mut TestObjects, pod: &str, code: i64) {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let ended = json!({"terminated": {"exitCode": code, "finishedAt": world.now.to_string()}});
    let containers = json!([{"name": "main", "state": ended}]);
    world.patch("pods", &in_shop(pod), &json!({"status": {"phase": phase, "containerStatuses": containers}}));
}

fn end(world: &mut TestObjects, pod: &str, code: i64) {
    exit(world, pod, code);
    world.settle(&Jobs);
}

fn pass(world: &mut TestObjects, seconds: u64) {
    world.now += Duration::from_secs(seconds);
    world.settle(&Jobs);
}

fn conditions(world: &TestObjects) -> Vec<String> {
    let said = |condition: &Value| {
        let field = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
        format!("{}={} {}: {}", field("type"), field("status"), field("reason"), field("message"))
    };
    status(world)["conditions"].as_array().cloned().unwrap_or_default().iter().map(said).collect()
}

fn told(world: &TestObjects) -> Vec<String> {
    world.events.iter().map(|event| format!("{}: {}", event.reason, event.message)).collect()
}

fn of_index(world: &TestObjects, index: i64) -> String {
    let pods = world.list("pods", "shop");
    name(pods.iter().find(|pod| is_active(pod) && index_of(pod) == Some(index)).unwrap()).to_owned()
}

#[test]
fn a_job_is_complete_when_its_pod_has_succeeded() {
    let mut world = world(json!({"completions": 1}));
    let pod = running(&world).remove(0);
    assert!(pod.starts_with("sum-") && pod.len() == 9, "{pod}");
    assert_eq!((&status(&world)["active"], &status(&world)["ready"]), (&json!(1), &json!(0)));
    assert_eq!(status(&world)["startTime"], "2026-01-01T00:00:00Z");

    world.now += Duration::from_secs(5);
    end(&mut world, &pod, 0);

    let expected = json!({
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:00:05Z",
        "succeeded": 1,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "conditions": status(&world)["conditions"],
    });
    assert_eq!(status(&world), expected);
    let why = "CompletionsReached: Reached expected number of succeeded pods";
    assert_eq!(conditions(&world), [format!("SuccessCriteriaMet=True {why}"), format!("Complete=True {why}")]);
    assert_eq!(told(&world), [format!("SuccessfulCreate: Created pod: {pod}"), "Completed: Job completed".to_owned()]);
    assert!(!is_tracked(&world.get("pods", "shop", &pod).unwrap()));
}

#[test]
fn no_more_pods_run_than_may_or_are_needed() {
    let mut world = world(json!({"completions": 3, "parallelism": 2}));
    assert_eq!(running(&world).len(), 2);

    let pod = running(&world).remove(0);
    end(&mut world, &pod, 0);
    assert_eq!(running(&world).len(), 2);
    let pod = running(&world).remove(0);
    end(&mut world, &pod, 0);

    assert_eq!(running(&world).len(), 1);
    assert_eq!(status(&world)["succeeded"], 2);
}

#[test]
fn without_completions_the_first_success_ends_the_work() {
    let mut world = world(json!({"parallelism": 3}));
    let pods = running(&world);

    end(&mut world, &pods[0], 0);
    assert_eq!(running(&world).len(), 2);
    end(&mut world, &pods[1], 0);
    end(&mut world, &pods[2], 1);

    assert_eq!((&status(&world)["succeeded"], &status(&world)["failed"]), (&json!(2), &json!(1)));
    assert!(conditions(&world)[1].starts_with("Complete=True"));
}

#[test]
fn a_suspended_job_loses_its_pods_and_starts_again_when_resumed() {
    let mut world = world(json!({"completions": 2, "parallelism": 2}));

    world.patch("jobs.batch", &in_shop("sum"), &json!({"spec": {"suspend": true}}));
    world.settle(&Jobs);
    assert!(world.list("pods", "shop").is_empty());
    assert_eq!(conditions(&world), ["Suspended=True JobSuspended: Job suspended"]);
    assert!(status(&world)["startTime"].is_null() && status(&world)["failed"].is_null());
    world.now += Duration::from_secs(60);
    world.patch("jobs.batch", &in_shop("sum"), &json!({"spec": {"suspend": false}}));
    world.settle(&Jobs);

    assert_eq!(running(&world).len(), 2);
    assert_eq!(conditions(&world), ["Suspended=False JobResumed: Job resumed"]);
    assert_eq!(status(&world)["startTime"], "2026-01-01T00:01:00Z");
    let told = told(&world);
    assert!(told.contains(&"Suspended: Job suspended".to_owned()) && told.contains(&"Resumed: Job resumed".to_owned()));
}

#[test]
fn fewer_pods_at_once_deletes_those_that_did_least() {
    let mut world = world(json!({"completions": 5, "parallelism": 3}));
    let pods = running(&world);
    world.patch("pods", &in_shop(&pods[1]), &json!({"status": {"phase": "Running"}}));

    world.patch("jobs.batch", &in_shop("sum"), &json!({"spec": {"parallelism": 1}}));
    world.settle(&Jobs);

    assert_eq!(running(&world), [pods[1].as_str()]);
    assert_eq!(status(&world)["failed"], Value::Null);
}

#[test]
fn a_finished_job_is_deleted_after_its_time() {
    let mut world = world(json!({"completions": 1, "ttlSecondsAfterFinished": 60}));
    let pod = running(&world).remove(0);
    end(&mut world, &pod, 0);
    assert_eq!(Jobs.plan(&world, &live(&world)).again_after, Some(Duration::from_secs(60)));

    world.now += Duration::from_secs(60);
    let plan = Jobs.plan(&world, &live(&world));

    let [Step::Delete { target, dependents }] = &plan.steps[..] else { panic!("{plan:?}") };
    assert_eq!((target.name.as_str(), *dependents), ("sum", Dependents::Before));
}

#[test]
fn pods_of_a_job_that_is_gone_are_let_go() {
    let mut world = world(json!({"completions": 2, "parallelism": 2}));
    world.remove("jobs.batch", &in_shop("sum"));

    let plan = Jobs.gone(&world, &in_shop("sum"));
    world.carry_out(plan);

    assert!(world.list("pods", "shop").iter().all(|pod| !is_tracked(pod)));
}

#[test]
fn a_job_that_another_controller_manages_is_left_alone() {
    let world = world(json!({"completions": 1, "managedBy": "example.com/queue"}));

    assert!(world.list("pods", "shop").is_empty());
    assert!(status(&world).is_null());
}

/// The status without its times.
fn timeless(world: &TestObjects) -> Value {
    let mut status = status(world);
    for field in ["startTime", "completionTime"] {
        status.as_object_mut().unwrap().remove(field);
    }
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let fields = condition.as_object_mut().unwrap();
        fields.retain(|field, _| !field.ends_with("Time"));
    }
    if status["conditions"].is_null() {
        status.as_object_mut().unwrap().remove("conditions");
    }
    status
}

fn condition(kind: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": reason, "message": message})
}

/// What kube-controller-manager 1.36.3 wrote for the same jobs and pods.
#[test]
fn statuses_are_those_of_kubernetes() {
    let quiet = |more: Value| {
        let mut status = json!({"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        status
    };

    let mut queue = world(json!({"parallelism": 3}));
    let pods = running(&queue);
    end(&mut queue, &pods[0], 0);
    assert_eq!(timeless(&queue), quiet(json!({"active": 2, "succeeded": 1})));

    let mut indexed = world(json!({"completions": 5, "parallelism": 5, "completionMode": "Indexed"}));
    for index in [0, 1, 2, 4] {
        let pod = of_index(&indexed, index);
        end(&mut indexed, &pod, 0);
    }
    assert_eq!(timeless(&indexed), quiet(json!({"active": 1, "succeeded": 4, "completedIndexes": "0-2,4"})));

    let spec = json!({
        "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 0,
        "maxFailedIndexes": 1, "backoffLimit": i32::MAX,
    });
    let mut alone = world(spec);
    let (bad, good) = (of_index(&alone, 0), of_index(&alone, 1));
    end(&mut alone, &bad, 1);
    assert_eq!(timeless(&alone), quiet(json!({"active": 1, "failed": 1, "failedIndexes": "0"})));
    end(&mut alone, &good, 0);
    let why = ["FailedIndexes", "Job has failed indexes"];
    let ended = [condition("FailureTarget", why[0], why[1]), condition("Failed", why[0], why[1])];
    let expected = json!({
        "succeeded": 1, "failed": 1, "completedIndexes": "1", "failedIndexes": "0", "conditions": ended,
    });
    assert_eq!(timeless(&alone), quiet(expected));

    let suspended = world(json!({"completions": 1, "suspend": true}));
    let expected = [condition("Suspended", "JobSuspended", "Job suspended")];
    assert_eq!(timeless(&suspended), quiet(json!({"conditions": expected})));
}
