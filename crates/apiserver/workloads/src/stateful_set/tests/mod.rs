//! Stateful sets in a world in memory: places are filled and emptied in their order.

mod claims;
mod histories;
mod revisions;

use serde_json::{Value, json};

use super::StatefulSets;
use super::identity::{ordinal, revision_of};
use crate::common::object::name;
use crate::testing::{TestObjects, in_shop, refusal};
use crate::{Controller as _, Step, View as _};

fn set(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    })
}

fn world(set: Value) -> TestObjects {
    let mut world = TestObjects::default();
    world.put("statefulsets.apps", set);
    world.settle(&StatefulSets);
    world
}

fn pods(world: &TestObjects) -> Vec<String> {
    world.list("pods", "shop").iter().map(|pod| name(pod).to_owned()).collect()
}

fn ready(world: &mut TestObjects, pod: &str) {
    world.make_ready(&in_shop(pod));
}

/// Makes every pod ready that the controller makes.
fn grow(world: &mut TestObjects) {
    for _ in 0..20 {
        world.settle(&StatefulSets);
        let waiting: Vec<String> = world
            .list("pods", "shop")
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Pending")
            .map(|pod| name(pod).to_owned())
            .collect();
        if waiting.is_empty() {
            return;
        }
        for pod in waiting {
            ready(world, &pod);
        }
    }
}

fn status(world: &TestObjects) -> Value {
    world.get("statefulsets.apps", "shop", "web").unwrap()["status"].clone()
}

fn change(world: &mut TestObjects, patch: Value) {
    world.patch("statefulsets.apps", &in_shop("web"), &patch);
    world.settle(&StatefulSets);
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

fn messages(world: &TestObjects) -> Vec<&str> {
    world.events.iter().map(|event| event.message.as_str()).collect()
}

#[test]
fn the_next_pod_waits_until_the_one_before_it_is_ready() {
    let mut world = world(set(3));
    assert_eq!(pods(&world), ["web-0"]);

    ready(&mut world, "web-0");
    world.settle(&StatefulSets);

    assert_eq!(pods(&world), ["web-0", "web-1"]);
    assert_eq!(
        messages(&world),
        ["Create Pod web-0 in StatefulSet web successful", "Create Pod web-1 in StatefulSet web successful"]
    );
    assert_eq!(status(&world)["replicas"], 2);
    assert_eq!(status(&world)["readyReplicas"], 1);
}

#[test]
fn parallel_sets_fill_all_places_at_once() {
    let mut parallel = set(3);
    parallel["spec"]["podManagementPolicy"] = json!("Parallel");

    assert_eq!(pods(&world(parallel)), ["web-0", "web-1", "web-2"]);
}

#[test]
fn a_pod_knows_its_place() {
    let world = world(set(1));

    let pod = world.get("pods", "shop", "web-0").unwrap();

    assert_eq!(pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"], "web-0");
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "0");
    assert_eq!(pod["spec"]["hostname"], "web-0");
    assert_eq!(pod["spec"]["subdomain"], "web");
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "StatefulSet");
    assert_eq!(json!(revision_of(&pod)), status(&world)["updateRevision"]);
}

#[test]
fn places_count_from_the_first_ordinal() {
    let mut later = set(2);
    later["spec"]["ordinals"] = json!({"start": 5});
    let mut world = world(later);

    grow(&mut world);

    assert_eq!(pods(&world), ["web-5", "web-6"]);
}

#[test]
fn the_last_places_are_emptied_first_and_one_at_a_time() {
    let mut world = world(set(3));
    grow(&mut world);
    world.patch("pods", &in_shop("web-2"), &json!({"metadata": {"finalizers": ["test/held"]}}));

    change(&mut world, json!({"spec": {"replicas": 1}}));
    assert_eq!(pods(&world), ["web-0", "web-1", "web-2"]);
    world.patch("pods", &in_shop("web-2"), &json!({"metadata": {"finalizers": null}}));
    world.settle(&StatefulSets);

    assert_eq!(pods(&world), ["web-0"]);
    let deleted: Vec<&str> = messages(&world).into_iter().filter(|message| message.starts_with("Delete")).collect();
    assert_eq!(
        deleted,
        ["Delete Pod web-2 in StatefulSet web successful", "Delete Pod web-1 in StatefulSet web successful"]
    );
}

#[test]
fn a_failed_pod_is_replaced_under_its_name() {
    let mut world = world(set(2));
    grow(&mut world);
    let before = world.get("pods", "shop", "web-0").unwrap()["metadata"]["uid"].clone();

    world.patch("pods", &in_shop("web-0"), &json!({"status": {"phase": "Failed"}}));
    world.settle(&StatefulSets);

    let after = world.get("pods", "shop", "web-0").unwrap();
    assert_ne!(after["metadata"]["uid"], before);
    assert_eq!(after["status"]["phase"], "Pending");
}

#[test]
fn a_ready_pod_counts_as_available_after_a_while() {
    let mut slow = set(2);
    slow["spec"]["minReadySeconds"] = json!(30);
    let mut world = world(slow);
    ready(&mut world, "web-0");
    world.settle(&StatefulSets);
    assert_eq!(pods(&world), ["web-0"]);
    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    let wait = StatefulSets.plan(&world, &web).again_after.unwrap();
    assert_eq!(wait.as_secs(), 30);
    assert_eq!((&web["status"]["readyReplicas"], &web["status"]["availableReplicas"]), (&json!(1), &json!(0)));

    world.now += wait;
    world.settle(&StatefulSets);

    assert_eq!(pods(&world), ["web-0", "web-1"]);
    assert_eq!(status(&world)["availableReplicas"], 1);
}

#[test]
fn strays_are_adopted_and_those_of_other_labels_let_go() {
    let mut world = world(set(1));
    grow(&mut world);
    world.patch("pods", &in_shop("web-0"), &json!({"metadata": {"ownerReferences": null}}));
    world.settle(&StatefulSets);
    let owner = world.get("pods", "shop", "web-0").unwrap()["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["name"], "web");

    world.patch("pods", &in_shop("web-0"), &json!({"metadata": {"labels": {"app": "other"}}}));
    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    let plan = StatefulSets.plan(&world, &web);

    let Step::Patch { patch, .. } = &plan.steps[0] else { panic!("{plan:?}") };
    assert_eq!(*patch, json!({"metadata": {"ownerReferences": null}}));
}

#[test]
fn a_set_that_goes_only_counts() {
    let mut world = world(set(2));
    grow(&mut world);
    world.patch(
        "statefulsets.apps",
        &in_shop("web"),
        &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    world.remove("pods", &in_shop("web-0"));

    world.settle(&StatefulSets);

    assert_eq!(pods(&world), ["web-1"]);
    assert_eq!(status(&world)["replicas"], 1);
}

fn refused(world: &TestObjects, collection: &str, reason: &str) -> Vec<String> {
    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    let steps = StatefulSets.plan(world, &web).steps;
    let made = |step: &&Step| matches!(step, Step::Create { collection: into, .. } if *into == collection);
    let failure = refusal(reason);
    let plan = StatefulSets.failed(world, &web, steps.iter().find(made).unwrap(), &failure);
    let told = |step: &Step| match step {
        Step::Event(event) => format!("{}: {}", event.reason, event.message),
        _ => panic!("{step:?}"),
    };
    plan.steps.iter().map(told).collect()
}

#[test]
fn a_refused_pod_is_told() {
    let mut world = TestObjects::default();
    world.put("statefulsets.apps", set(1));

    let told = ["FailedCreate: Create Pod web-0 in StatefulSet web failed error: no"];
    assert_eq!(refused(&world, "pods", "Forbidden"), told);
}

#[test]
fn a_pod_whose_name_is_taken_is_not_told() {
    let mut world = TestObjects::default();
    world.put("statefulsets.apps", set(1));

    assert!(refused(&world, "pods", "AlreadyExists").is_empty());
}

#[test]
fn a_set_whose_selector_cannot_be_read_keeps_its_pods() {
    let mut world = world(set(1));
    let unknown = json!({"matchExpressions": [{"key": "app", "operator": "Near"}], "matchLabels": null});

    change(&mut world, json!({"spec": {"selector": unknown}}));

    let pod = world.get("pods", "shop", "web-0").unwrap();
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "web");
}

/// What kube-controller-manager 1.36.3 wrote for the same sets and pods.
#[test]
fn statuses_are_those_of_kubernetes() {
    let mut world = world(set(2));
    let first = status(&world)["updateRevision"].clone();
    let expected = json!({
        "availableReplicas": 0, "collisionCount": 0, "currentReplicas": 1, "currentRevision": first,
        "observedGeneration": 1, "replicas": 1, "updateRevision": first, "updatedReplicas": 1,
    });
    assert_eq!(status(&world), expected);

    grow(&mut world);
    let expected = json!({
        "availableReplicas": 2, "collisionCount": 0, "currentReplicas": 2, "currentRevision": first,
        "observedGeneration": 1, "readyReplicas": 2, "replicas": 2, "updateRevision": first, "updatedReplicas": 2,
    });
    assert_eq!(status(&world), expected);

    change(&mut world, image("nginx:2"));
    let second = status(&world)["updateRevision"].clone();
    let expected = json!({
        "availableReplicas": 1, "collisionCount": 0, "currentReplicas": 1, "currentRevision": first,
        "observedGeneration": 2, "readyReplicas": 1, "replicas": 2, "updateRevision": second, "updatedReplicas": 1,
    });
    assert_eq!(status(&world), expected);
}
