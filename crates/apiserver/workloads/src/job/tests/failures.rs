//! Pods that fail, are deleted or refused, and what that does to their Job.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::testing::refusal;

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
    world.patch("pods", &in_shop(&pods[1]), &both);

    end(&mut world, &pods[0], 1);
    assert_eq!(conditions(&world).len(), 1);
    assert_eq!(status(&world)["terminating"], 1);
    world.remove("pods", &in_shop(&pods[1]));
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
    world.patch("pods", &in_shop(&pod), &json!({"status": restarted}));
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
    world.patch("pods", &in_shop(&pod), &disrupted);

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
fn a_deleted_pod_counts_as_failed_unless_only_failed_ones_are_replaced() {
    for (policy, failed, active) in [("TerminatingOrFailed", json!(1), 0), ("Failed", Value::Null, 0)] {
        let mut world = world(json!({"completions": 1, "podReplacementPolicy": policy}));
        let pod = running(&world).remove(0);
        let held = json!({"metadata": {
            "finalizers": ["batch.kubernetes.io/job-tracking", "test/held"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        }});

        world.patch("pods", &in_shop(&pod), &held);
        world.settle(&Jobs);

        assert_eq!((&status(&world)["failed"], &status(&world)["terminating"]), (&failed, &json!(1)), "{policy}");
        assert_eq!(running(&world).len(), active, "{policy}");
    }
}

#[test]
fn a_pod_that_goes_with_its_job_has_not_failed_and_is_let_go() {
    let mut world = world(json!({"completions": 1}));
    let pod = in_shop(&running(&world).remove(0));
    let going = |finalizers: Value| json!({"metadata": {"finalizers": finalizers, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.patch("jobs.batch", &in_shop("sum"), &going(json!(["foregroundDeletion"])));
    world.patch("pods", &pod, &going(json!(["batch.kubernetes.io/job-tracking", "test/held"])));

    world.settle(&Jobs);

    assert_eq!(status(&world)["failed"], Value::Null);
    assert_eq!(world.get("pods", "shop", &pod.name).unwrap()["metadata"]["finalizers"], json!(["test/held"]));
}

/// Carries out what follows when the first pod that the Job makes is refused.
fn refuse_pod(world: &mut TestObjects) {
    let job = live(world);
    let steps = Jobs.plan(world, &job).steps;
    let create = steps.iter().find(|step| matches!(step, Step::Create { .. })).unwrap();
    let plan = Jobs.failed(world, &job, create, &refusal("Forbidden"));
    world.carry_out(plan);
}

#[test]
fn a_job_whose_pods_are_refused_says_so_and_has_started() {
    let mut world = TestObjects::default();
    world.now = "2026-01-01T00:00:00Z".parse().unwrap();
    world.put("jobs.batch", job(json!({"completions": 2, "parallelism": 2})));

    refuse_pod(&mut world);

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

    refuse_pod(&mut world);

    assert_eq!((&status(&world)["succeeded"], &status(&world)["active"]), (&json!(1), &json!(1)));
    assert!(!is_tracked(&world.get("pods", "shop", &pod).unwrap()));
}

/// Kubernetes waits ten seconds here too, because its controller remembers; this one only knows what is left.
#[test]
fn a_pod_that_left_no_trace_is_replaced_at_once() {
    let mut world = world(json!({"completions": 1}));
    let pod = running(&world).remove(0);

    world.delete("pods", &in_shop(&pod));
    world.settle(&Jobs);

    assert_eq!(running(&world).len(), 1);
    assert_eq!((&status(&world)["failed"], &status(&world)["active"]), (&json!(1), &json!(1)));
}
