use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Jobs;
use super::pods::{index_of, is_tracked};
use crate::common::object::{is_deleting, name, uid};
use crate::common::pod::{is_active, is_finished};
use crate::testing::World;
use crate::{Controller as _, Dependents, Failure, Name, Step, View as _};

fn named(name: &str) -> Name {
    Name { namespace: "shop".to_owned(), name: name.to_owned() }
}

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

fn world(spec: Value) -> World {
    let mut world = World::default();
    world.now = "2026-01-01T00:00:00Z".parse().unwrap();
    world.put("jobs.batch", job(spec));
    world.settle(&Jobs);
    world
}

fn live(world: &World) -> Value {
    (*world.get("jobs.batch", "shop", "sum").unwrap()).clone()
}

fn status(world: &World) -> Value {
    live(world)["status"].clone()
}

fn running(world: &World) -> Vec<String> {
    let pods = world.list("pods", "shop");
    pods.iter().filter(|pod| is_active(pod)).map(|pod| name(pod).to_owned()).collect()
}

fn exit(world: &mut World, pod: &str, code: i64) {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let ended = json!({"terminated": {"exitCode": code, "finishedAt": world.now.to_string()}});
    let containers = json!([{"name": "main", "state": ended}]);
    world.patch("pods", &named(pod), &json!({"status": {"phase": phase, "containerStatuses": containers}}));
}

fn end(world: &mut World, pod: &str, code: i64) {
    exit(world, pod, code);
    world.settle(&Jobs);
}

fn pass(world: &mut World, seconds: u64) {
    world.now += Duration::from_secs(seconds);
    world.settle(&Jobs);
}

fn conditions(world: &World) -> Vec<String> {
    let said = |condition: &Value| {
        let field = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
        format!("{}={} {}: {}", field("type"), field("status"), field("reason"), field("message"))
    };
    status(world)["conditions"].as_array().cloned().unwrap_or_default().iter().map(said).collect()
}

fn told(world: &World) -> Vec<String> {
    world.events.iter().map(|event| format!("{}: {}", event.reason, event.message)).collect()
}

fn of_index(world: &World, index: i64) -> String {
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
fn failed_pods_are_tried_again_with_growing_patience() {
    let mut world = world(json!({"completions": 1}));
    let pod = running(&world).remove(0);

    end(&mut world, &pod, 1);
    assert!(running(&world).is_empty());
    assert_eq!(Jobs.plan(&world, &live(&world)).again_after, Some(Duration::from_secs(10)));
    pass(&mut world, 10);
    let pod = running(&world).remove(0);
    end(&mut world, &pod, 1);
    pass(&mut world, 10);
    assert!(running(&world).is_empty());
    pass(&mut world, 10);

    assert_eq!(running(&world).len(), 1);
    assert_eq!(status(&world)["failed"], 2);
}

#[test]
fn too_many_failures_end_the_job_and_what_is_left_of_it() {
    let mut world = world(json!({"completions": 3, "parallelism": 3, "backoffLimit": 0}));
    let pods = running(&world);

    end(&mut world, &pods[0], 1);

    assert!(running(&world).is_empty());
    let why = "BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert_eq!(conditions(&world), [format!("FailureTarget=True {why}"), format!("Failed=True {why}")]);
    assert_eq!(status(&world)["failed"], 3);
    assert_eq!(told(&world).last().unwrap(), why);
    assert!(status(&world)["completionTime"].is_null());
}

#[test]
fn a_failed_job_waits_for_pods_that_still_terminate() {
    let mut world = world(json!({"completions": 2, "parallelism": 2, "backoffLimit": 0}));
    let pods = running(&world);
    let both = json!({"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking", "test/held"]}});
    world.patch("pods", &named(&pods[1]), &both);

    end(&mut world, &pods[0], 1);
    assert_eq!(conditions(&world).len(), 1);
    assert_eq!(status(&world)["terminating"], 1);
    world.remove("pods", &named(&pods[1]));
    world.settle(&Jobs);

    assert!(conditions(&world)[1].starts_with("Failed=True"));
    assert_eq!(status(&world)["terminating"], 0);
}

#[test]
fn restarts_in_place_count_as_failures() {
    let template = json!({
        "metadata": {"labels": {"batch.kubernetes.io/controller-uid": "uid-job"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "sum:1"}]},
    });
    let mut world = world(json!({"completions": 1, "backoffLimit": 2, "template": template}));
    let pod = running(&world).remove(0);

    let restarted = json!({"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": 2}]});
    world.patch("pods", &named(&pod), &json!({"status": restarted}));
    world.settle(&Jobs);

    assert!(conditions(&world)[0].starts_with("FailureTarget=True BackoffLimitExceeded"));
}

#[test]
fn a_job_fails_at_its_deadline() {
    let mut world = world(json!({"completions": 1, "activeDeadlineSeconds": 30}));
    assert_eq!(Jobs.plan(&world, &live(&world)).again_after, Some(Duration::from_secs(30)));

    pass(&mut world, 30);

    let why = "DeadlineExceeded: Job was active longer than specified deadline";
    assert_eq!(conditions(&world)[1], format!("Failed=True {why}"));
    assert_eq!(status(&world)["failed"], 1);
}

#[test]
fn a_suspended_job_loses_its_pods_and_starts_again_when_resumed() {
    let mut world = world(json!({"completions": 2, "parallelism": 2}));

    world.patch("jobs.batch", &named("sum"), &json!({"spec": {"suspend": true}}));
    world.settle(&Jobs);
    assert!(world.list("pods", "shop").is_empty());
    assert_eq!(conditions(&world), ["Suspended=True JobSuspended: Job suspended"]);
    assert!(status(&world)["startTime"].is_null() && status(&world)["failed"].is_null());
    world.now += Duration::from_secs(60);
    world.patch("jobs.batch", &named("sum"), &json!({"spec": {"suspend": false}}));
    world.settle(&Jobs);

    assert_eq!(running(&world).len(), 2);
    assert_eq!(conditions(&world), ["Suspended=False JobResumed: Job resumed"]);
    assert_eq!(status(&world)["startTime"], "2026-01-01T00:01:00Z");
    let told = told(&world);
    assert!(told.contains(&"Suspended: Job suspended".to_owned()) && told.contains(&"Resumed: Job resumed".to_owned()));
}

#[test]
fn every_index_has_a_pod_that_knows_it() {
    let world = world(json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed"}));

    let pod = world.get("pods", "shop", &of_index(&world, 1)).unwrap();

    assert_eq!(running(&world).len(), 2);
    assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], "1");
    assert_eq!(pod["metadata"]["generateName"], "sum-1-");
    assert_eq!(pod["spec"]["hostname"], "sum-1");
    let field = "metadata.labels['batch.kubernetes.io/job-completion-index']";
    let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": field}}});
    assert_eq!(pod["spec"]["containers"][0]["env"], json!([variable]));
    assert!(pod["spec"].get("initContainers").is_none());
}

#[test]
fn completed_indexes_are_written_as_ranges() {
    let mut world = world(json!({"completions": 6, "parallelism": 6, "completionMode": "Indexed"}));

    for index in [0, 1, 2, 4] {
        let pod = of_index(&world, index);
        exit(&mut world, &pod, 0);
    }
    world.settle(&Jobs);

    assert_eq!(status(&world)["completedIndexes"], "0-2,4");
    assert_eq!((&status(&world)["succeeded"], &status(&world)["active"]), (&json!(4), &json!(2)));
}

#[test]
fn an_index_that_fails_too_often_fails_alone() {
    let spec = json!({
        "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
        "backoffLimit": i32::MAX,
    });
    let mut world = world(spec);
    let (good, bad) = (of_index(&world, 0), of_index(&world, 1));

    end(&mut world, &bad, 1);
    assert!(is_tracked(&world.get("pods", "shop", &bad).unwrap()), "it stays until its replacement is there");
    pass(&mut world, 10);
    let again = of_index(&world, 1);
    let annotations = world.get("pods", "shop", &again).unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations["batch.kubernetes.io/job-index-failure-count"], "1");
    end(&mut world, &again, 1);
    assert_eq!(status(&world)["failedIndexes"], "1");
    assert!(conditions(&world).is_empty());
    end(&mut world, &good, 0);

    assert_eq!(conditions(&world)[1], "Failed=True FailedIndexes: Job has failed indexes");
    assert_eq!((&status(&world)["failed"], &status(&world)["completedIndexes"]), (&json!(2), &json!("0")));
}

#[test]
fn a_failure_policy_can_ignore_a_failure_or_fail_the_job() {
    let rules = json!([
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]);
    let mut world = world(
        json!({"completions": 1, "backoffLimit": 0, "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": rules}}),
    );
    let pod = running(&world).remove(0);
    let disrupted = json!({"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}});
    world.patch("pods", &named(&pod), &disrupted);

    end(&mut world, &pod, 1);
    assert!(conditions(&world).is_empty() && status(&world)["failed"].is_null());
    pass(&mut world, 10);
    let pod = running(&world).remove(0);
    end(&mut world, &pod, 42);

    let why = format!("Container main for pod shop/{pod} failed with exit code 42 matching FailJob rule at index 1");
    assert_eq!(conditions(&world)[1], format!("Failed=True PodFailurePolicy: {why}"));
    assert_eq!(status(&world)["failed"], 1);
}

#[test]
fn a_success_policy_ends_a_job_before_all_indexes_have() {
    let rules = json!([{"succeededIndexes": "1-2", "succeededCount": 1}]);
    let spec = json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": {"rules": rules},
    });
    let mut world = world(spec);

    let pod = of_index(&world, 0);
    end(&mut world, &pod, 0);
    assert!(conditions(&world).is_empty());
    let pod = of_index(&world, 2);
    end(&mut world, &pod, 0);

    assert!(running(&world).is_empty());
    assert_eq!(conditions(&world)[1], "Complete=True SuccessPolicy: Matched rules at index 0");
    assert_eq!((&status(&world)["succeeded"], &status(&world)["failed"]), (&json!(2), &Value::Null));
}

#[test]
fn a_deleted_pod_counts_as_failed_unless_only_failed_ones_are_replaced() {
    for (policy, failed, active) in [("TerminatingOrFailed", json!(1), 0), ("Failed", Value::Null, 0)] {
        let mut world = world(json!({"completions": 1, "podReplacementPolicy": policy}));
        let pod = running(&world).remove(0);
        let held = json!({"metadata": {
            "finalizers": ["batch.kubernetes.io/job-tracking", "test/held"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        }});

        world.patch("pods", &named(&pod), &held);
        world.settle(&Jobs);

        assert_eq!((&status(&world)["failed"], &status(&world)["terminating"]), (&failed, &json!(1)), "{policy}");
        assert_eq!(running(&world).len(), active, "{policy}");
    }
}

#[test]
fn fewer_pods_at_once_deletes_those_that_did_least() {
    let mut world = world(json!({"completions": 5, "parallelism": 3}));
    let pods = running(&world);
    world.patch("pods", &named(&pods[1]), &json!({"status": {"phase": "Running"}}));

    world.patch("jobs.batch", &named("sum"), &json!({"spec": {"parallelism": 1}}));
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
fn a_job_whose_pods_are_refused_says_so_and_has_started() {
    let mut world = World::default();
    world.now = "2026-01-01T00:00:00Z".parse().unwrap();
    world.put("jobs.batch", job(json!({"completions": 2, "parallelism": 2})));
    let job = live(&world);
    let steps = Jobs.plan(&world, &job).steps;
    let create = steps.iter().find(|step| matches!(step, Step::Create { .. })).unwrap();
    let failure = Failure { reason: "Forbidden".to_owned(), message: "no".to_owned() };

    let plan = Jobs.failed(&world, &job, create, &failure);
    world.carry_out(plan);

    assert_eq!(told(&world), ["FailedCreate: Error creating: no"]);
    let expected = json!({
        "startTime": "2026-01-01T00:00:00Z", "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
    });
    assert_eq!(status(&world), expected);
}

#[test]
fn pods_that_ended_are_counted_though_others_are_refused() {
    let mut world = world(json!({"completions": 3, "parallelism": 2}));
    let pod = running(&world).remove(0);
    exit(&mut world, &pod, 0);
    let job = live(&world);
    let steps = Jobs.plan(&world, &job).steps;
    let create = steps.iter().find(|step| matches!(step, Step::Create { .. })).unwrap();
    let failure = Failure { reason: "Forbidden".to_owned(), message: "no".to_owned() };

    let plan = Jobs.failed(&world, &job, create, &failure);
    world.carry_out(plan);

    assert_eq!((&status(&world)["succeeded"], &status(&world)["active"]), (&json!(1), &json!(1)));
    assert!(!is_tracked(&world.get("pods", "shop", &pod).unwrap()));
}

#[test]
fn pods_of_a_job_that_is_gone_are_let_go() {
    let mut world = world(json!({"completions": 2, "parallelism": 2}));
    world.remove("jobs.batch", &named("sum"));

    let plan = Jobs.gone(&world, &named("sum"));
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
fn timeless(world: &World) -> Value {
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

/// Kubernetes waits ten seconds here too, because its controller remembers; this one only knows what is left.
#[test]
fn a_pod_that_left_no_trace_is_replaced_at_once() {
    let mut world = world(json!({"completions": 1}));
    let pod = running(&world).remove(0);

    world.delete("pods", &named(&pod));
    world.settle(&Jobs);

    assert_eq!(running(&world).len(), 1);
    assert_eq!((&status(&world)["failed"], &status(&world)["active"]), (&json!(1), &json!(1)));
}

#[test]
fn a_pod_that_fails_after_it_was_let_go_is_not_counted() {
    let mut world = world(json!({"completions": 1}));
    let pod = running(&world).remove(0);
    world.patch("jobs.batch", &named("sum"), &json!({"spec": {"suspend": true}}));
    // The finalizer is taken; the deletion after it does not happen.
    carry_out_some(&mut world, 1);

    end(&mut world, &pod, 1);

    assert_eq!(status(&world)["failed"], Value::Null);
}

#[derive(Clone, Debug)]
enum Happening {
    Succeed(usize),
    Fail(usize),
    Delete(usize),
    Vanish(usize),
    Ready(usize),
    Parallelism(i64),
    Suspend(bool),
    Pass(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (0..4_usize).prop_map(Happening::Succeed),
        2 => (0..4_usize).prop_map(Happening::Fail),
        1 => (0..4_usize).prop_map(Happening::Delete),
        1 => (0..4_usize).prop_map(Happening::Vanish),
        1 => (0..4_usize).prop_map(Happening::Ready),
        1 => (0..4_i64).prop_map(Happening::Parallelism),
        1 => any::<bool>().prop_map(Happening::Suspend),
        3 => (1..700_u64).prop_map(Happening::Pass),
    ]
}

fn happens(world: &mut World, happening: &Happening) {
    let at = |index: usize| running(world).get(index).cloned().map(|pod| named(&pod));
    let ended = |index: usize| {
        world.list("pods", "shop").iter().filter(|pod| is_finished(pod)).nth(index).map(|pod| named(name(pod)))
    };
    let sum = named("sum");
    match happening {
        Happening::Succeed(index) => at(*index).map_or((), |pod| exit(world, &pod.name, 0)),
        Happening::Fail(index) => at(*index).map_or((), |pod| exit(world, &pod.name, 1)),
        Happening::Delete(index) => at(*index).map_or((), |pod| world.delete("pods", &pod)),
        Happening::Vanish(index) => ended(*index).map_or((), |pod| world.delete("pods", &pod)),
        Happening::Ready(index) => {
            let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
            if let Some(pod) = at(*index) {
                world.patch("pods", &pod, &ready);
            }
        }
        Happening::Parallelism(count) => world.patch("jobs.batch", &sum, &json!({"spec": {"parallelism": count}})),
        Happening::Suspend(suspend) => world.patch("jobs.batch", &sum, &json!({"spec": {"suspend": suspend}})),
        Happening::Pass(seconds) => world.now += Duration::from_secs(*seconds),
    }
}

/// The uids of all pods that ever ended as pods of the Job, by how. One that was let go before it ended is not counted,
/// neither here nor by Kubernetes.
#[derive(Default)]
struct Ends {
    succeeded: BTreeSet<String>,
    failed: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

impl Ends {
    fn see(&mut self, world: &World) {
        for pod in world.list("pods", "shop").iter().filter(|pod| is_tracked(pod)) {
            let ends = match pod["status"]["phase"].as_str() {
                Some("Succeeded") => &mut self.succeeded,
                Some("Failed") => &mut self.failed,
                _ if is_deleting(pod) => &mut self.deleted,
                _ => continue,
            };
            ends.insert(uid(pod).to_owned());
        }
    }
}

/// Steps one by one, so that what happens next finds things half done: a crash between any two steps.
fn carry_out_some(world: &mut World, most: usize) {
    if world.get("jobs.batch", "shop", "sum").is_none() {
        return;
    }
    let mut plan = Jobs.plan(world, &live(world));
    plan.steps.truncate(most);
    world.carry_out(plan);
}

fn holds(world: &World, ends: &Ends) -> Result<(), TestCaseError> {
    let job = live(world);
    let count = |field: &str| usize::try_from(job["status"][field].as_i64().unwrap_or(0)).unwrap();
    prop_assert!(count("succeeded") <= ends.succeeded.len(), "{} of {:?}", count("succeeded"), ends.succeeded);
    let parallelism = usize::try_from(job["spec"]["parallelism"].as_i64().unwrap()).unwrap();
    let plan = Jobs.plan(world, &job);
    let made = plan.steps.iter().filter(|step| matches!(step, Step::Create { .. })).count();
    prop_assert!(made == 0 || running(world).len() + made <= parallelism);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_counts_every_pod_once_and_never_runs_too_many(
        history in prop::collection::vec((happening(), 0..12_usize), 0..40),
        indexed in any::<bool>(),
    ) {
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let mut world = world(json!({"completions": 4, "parallelism": 2, "completionMode": mode}));
        let mut ends = Ends::default();
        for (one, most) in &history {
            happens(&mut world, one);
            ends.see(&world);
            holds(&world, &ends)?;
            carry_out_some(&mut world, *most);
            ends.see(&world);
        }

        world.patch("jobs.batch", &named("sum"), &json!({"spec": {"parallelism": 2, "suspend": false}}));
        for _ in 0..100 {
            world.settle(&Jobs);
            holds(&world, &ends)?;
            if conditions(&world).iter().any(|one| one.starts_with("Complete=True") || one.starts_with("Failed=True")) {
                break;
            }
            let Some(pod) = running(&world).pop() else {
                world.now += Duration::from_secs(600);
                continue;
            };
            exit(&mut world, &pod, 0);
            ends.see(&world);
        }

        let status = status(&world);
        let count = |field: &str| usize::try_from(status[field].as_i64().unwrap_or(0)).unwrap();
        prop_assert!(conditions(&world).iter().any(|one| one.starts_with("Complete=True") || one.starts_with("Failed=True")));
        if !indexed {
            prop_assert_eq!(count("succeeded"), ends.succeeded.len());
        }
        prop_assert!(count("failed") >= ends.failed.len());
        if status["completionTime"].is_string() {
            prop_assert!(count("failed") <= ends.failed.union(&ends.deleted).count());
        }
        prop_assert_eq!(&status["uncountedTerminatedPods"], &json!({}));
        prop_assert!(world.list("pods", "shop").iter().all(|pod| !is_tracked(pod)));
    }
}
