use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;
use crate::common::object::name_of;
use crate::testing::{TestObjects, refusal};

fn set(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"namespace": "n", "name": "rs", "uid": "rs-uid"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": {
            "metadata": {"labels": {"app": "a", "extra": "x"}}, "spec": {"containers": [{"name": "c"}]}}},
    })
}

fn settled(replicas: i64) -> (TestObjects, ObjectName) {
    let mut world = TestObjects::default();
    let name = world.put(REPLICA_SETS, set(replicas));
    world.settle(&ReplicaSets);
    (world, name)
}

fn status(world: &TestObjects, name: &ObjectName) -> Value {
    world.get(REPLICA_SETS, &name.namespace, &name.name).unwrap()["status"].clone()
}

fn pods(world: &TestObjects) -> Vec<ObjectName> {
    world.list(PODS, "n").iter().map(|pod| name_of(pod)).collect()
}

#[test]
fn missing_pods_are_made_of_the_template_and_told() {
    let (world, set) = settled(2);

    let pods = world.list(PODS, "n");
    assert_eq!(pods.len(), 2);
    assert_eq!(pods[0]["metadata"]["generateName"], "rs-");
    assert_eq!(pods[0]["metadata"]["labels"], json!({"app": "a", "extra": "x"}));
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["uid"], "rs-uid");
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
    assert_eq!(world.events.len(), 2);
    assert_eq!(world.events[0].message, format!("Created pod: {}", name(&pods[0])));
    let expected = json!({"replicas": 2, "fullyLabeledReplicas": 2, "terminatingReplicas": 0, "observedGeneration": 1});
    assert_eq!(status(&world, &set), expected);
}

#[test]
fn a_pod_that_is_not_ready_goes_before_one_that_is() {
    let (mut world, name) = settled(3);
    let [first, second, third] = <[ObjectName; 3]>::try_from(pods(&world)).unwrap();
    world.make_ready(&first);
    world.make_ready(&third);

    world.patch(REPLICA_SETS, &name, &json!({"spec": {"replicas": 2}}));
    world.settle(&ReplicaSets);

    assert_eq!(pods(&world), [first, third]);
    assert_eq!(world.events.last().unwrap().message, format!("Deleted pod: {}", second.name));
}

#[test]
fn the_cost_of_deletion_decides_among_ready_pods() {
    let (mut world, name) = settled(2);
    let [first, second] = <[ObjectName; 2]>::try_from(pods(&world)).unwrap();
    world.make_ready(&first);
    world.make_ready(&second);
    let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}});
    world.patch(PODS, &second, &cost);

    world.patch(REPLICA_SETS, &name, &json!({"spec": {"replicas": 1}}));
    world.settle(&ReplicaSets);

    assert_eq!(pods(&world), [first]);
}

#[test]
fn a_matching_orphan_is_adopted_and_one_that_no_longer_matches_let_go() {
    let mut world = TestObjects::default();
    let orphan = world.put(PODS, json!({"metadata": {"namespace": "n", "name": "o", "labels": {"app": "a"}}}));
    let name = world.put(REPLICA_SETS, set(1));
    world.settle(&ReplicaSets);
    assert_eq!(pods(&world), std::slice::from_ref(&orphan));
    assert_eq!(status(&world, &name)["replicas"], 1);
    assert_eq!(status(&world, &name).get("fullyLabeledReplicas"), None);

    world.patch(PODS, &orphan, &json!({"metadata": {"labels": {"app": "b"}}}));
    world.settle(&ReplicaSets);

    assert_eq!(pods(&world).len(), 2);
    assert_eq!(world.get(PODS, "n", "o").unwrap()["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_set_that_goes_neither_makes_nor_adopts() {
    let mut world = TestObjects::default();
    world.put(PODS, json!({"metadata": {"namespace": "n", "name": "o", "labels": {"app": "a"}}}));
    let mut going = set(3);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.put(REPLICA_SETS, going);

    world.settle(&ReplicaSets);

    assert_eq!(world.list(PODS, "n").len(), 1);
    assert_eq!(world.get(PODS, "n", "o").unwrap()["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_failed_pod_is_replaced_and_one_that_terminates_counted_apart() {
    let (mut world, name) = settled(2);
    let there = pods(&world);
    world.patch(PODS, &there[0], &json!({"status": {"phase": "Failed"}}));
    world.patch(PODS, &there[1], &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));

    world.settle(&ReplicaSets);

    assert_eq!(pods(&world).len(), 4);
    assert_eq!(
        (&status(&world, &name)["replicas"], &status(&world, &name)["terminatingReplicas"]),
        (&json!(2), &json!(1))
    );
}

#[test]
fn a_ready_pod_is_available_when_it_has_been_ready_for_long_enough() {
    let (mut world, name) = settled(1);
    world.patch(REPLICA_SETS, &name, &json!({"spec": {"minReadySeconds": 30}}));
    let pod = pods(&world).remove(0);
    world.make_ready(&pod);
    world.settle(&ReplicaSets);
    assert_eq!(status(&world, &name).get("availableReplicas"), None);
    let plan = ReplicaSets.plan(&world, &world.get(REPLICA_SETS, "n", "rs").unwrap());
    assert_eq!(plan.again_after, Some(Duration::from_secs(30)));

    world.now = world.now.checked_add(SignedDuration::from_secs(30)).unwrap();
    world.settle(&ReplicaSets);

    assert_eq!(status(&world, &name)["availableReplicas"], 1);
}

#[test]
fn a_refused_pod_is_told_and_forgotten_once_it_is_made() {
    let mut world = TestObjects::default();
    let name = world.put(REPLICA_SETS, set(1));
    let object = world.get(REPLICA_SETS, "n", "rs").unwrap();
    let step = ReplicaSets.plan(&world, &object).steps.remove(0);

    let told = ReplicaSets.failed(&world, &object, &step, &refusal("Forbidden"));
    world.carry_out(told);

    assert_eq!((world.events[0].reason, world.events[0].message.as_str()), ("FailedCreate", "Error creating: no"));
    assert_eq!(status(&world, &name)["conditions"][0]["reason"], "FailedCreate");

    world.settle(&ReplicaSets);

    assert_eq!(status(&world, &name).get("conditions"), None);
}

#[test]
fn a_pod_concerns_its_owner_or_those_that_would_adopt_it() {
    let (world, name) = settled(1);
    let pod = world.list(PODS, "n").remove(0);
    let orphan = json!({"metadata": {"namespace": "n", "name": "o", "labels": {"app": "a"}}});
    let stranger = json!({"metadata": {"namespace": "n", "name": "o", "labels": {"app": "z"}}});

    assert_eq!(ReplicaSets.concerned(&world, PODS, &pod), std::slice::from_ref(&name));
    assert_eq!(ReplicaSets.concerned(&world, PODS, &orphan), [name]);
    assert_eq!(ReplicaSets.concerned(&world, PODS, &stranger), []);
}
