use proptest::prelude::*;
use serde_json::{Value, json};

use super::StatefulSets;
use super::identity::{ordinal, revision_of};
use crate::common::object::name;
use crate::testing::World;
use crate::{Controller as _, Failure, Name, Step, View as _};

fn named(name: &str) -> Name {
    Name { namespace: "shop".to_owned(), name: name.to_owned() }
}

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

fn claimed(replicas: i64) -> Value {
    let mut set = set(replicas);
    set["spec"]["volumeClaimTemplates"] = json!([{
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Pending"},
    }]);
    set
}

fn world(set: Value) -> World {
    let mut world = World::default();
    world.put("statefulsets.apps", set);
    world.settle(&StatefulSets);
    world
}

fn pods(world: &World) -> Vec<String> {
    world.list("pods", "shop").iter().map(|pod| name(pod).to_owned()).collect()
}

fn ready(world: &mut World, pod: &str) {
    let since = json!(world.now.to_string());
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
    world.patch("pods", &named(pod), &json!({"status": {"phase": "Running", "conditions": [ready]}}));
}

/// Makes every pod ready that the controller makes.
fn grow(world: &mut World) {
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

fn status(world: &World) -> Value {
    world.get("statefulsets.apps", "shop", "web").unwrap()["status"].clone()
}

fn change(world: &mut World, patch: Value) {
    world.patch("statefulsets.apps", &named("web"), &patch);
    world.settle(&StatefulSets);
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

fn messages(world: &World) -> Vec<&str> {
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
    world.patch("pods", &named("web-2"), &json!({"metadata": {"finalizers": ["test/held"]}}));

    change(&mut world, json!({"spec": {"replicas": 1}}));
    assert_eq!(pods(&world), ["web-0", "web-1", "web-2"]);
    world.patch("pods", &named("web-2"), &json!({"metadata": {"finalizers": null}}));
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

    world.patch("pods", &named("web-0"), &json!({"status": {"phase": "Failed"}}));
    world.settle(&StatefulSets);

    let after = world.get("pods", "shop", "web-0").unwrap();
    assert_ne!(after["metadata"]["uid"], before);
    assert_eq!(after["status"]["phase"], "Pending");
}

#[test]
fn a_rolling_update_replaces_from_the_last_place_down() {
    let mut world = world(set(2));
    grow(&mut world);
    let old = status(&world)["updateRevision"].clone();

    change(&mut world, image("nginx:2"));
    let revisions = |world: &World| -> Vec<bool> {
        world.list("pods", "shop").iter().map(|pod| json!(revision_of(pod)) == old).collect()
    };
    assert_eq!(revisions(&world), [true, false]);
    assert_eq!(status(&world)["currentRevision"], old);
    assert_ne!(status(&world)["updateRevision"], old);
    grow(&mut world);

    assert_eq!(revisions(&world), [false, false]);
    assert_eq!(status(&world)["currentRevision"], status(&world)["updateRevision"]);
    assert_eq!(status(&world)["currentReplicas"], 2);
}

#[test]
fn places_below_the_partition_keep_the_revision_of_before() {
    let mut partitioned = set(3);
    partitioned["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(2);
    let mut world = world(partitioned);
    grow(&mut world);
    let old = status(&world)["currentRevision"].clone();
    change(&mut world, image("nginx:2"));
    grow(&mut world);

    world.remove("pods", &named("web-0"));
    grow(&mut world);

    let kept = |place: &str| json!(revision_of(&world.get("pods", "shop", place).unwrap())) == old;
    assert_eq!([kept("web-0"), kept("web-1"), kept("web-2")], [true, true, false]);
    assert_eq!(status(&world)["currentReplicas"], 2);
    assert_eq!(status(&world)["updatedReplicas"], 1);
}

#[test]
fn on_delete_waits_for_someone_to_delete() {
    let mut manual = set(1);
    manual["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    let mut world = world(manual);
    grow(&mut world);
    let before = revision_of(&world.get("pods", "shop", "web-0").unwrap()).to_owned();

    change(&mut world, image("nginx:2"));
    assert_eq!(revision_of(&world.get("pods", "shop", "web-0").unwrap()), before);
    world.remove("pods", &named("web-0"));
    grow(&mut world);

    assert_ne!(revision_of(&world.get("pods", "shop", "web-0").unwrap()), before);
}

#[test]
fn going_back_takes_the_old_revision_up_again() {
    let mut world = world(set(1));
    grow(&mut world);
    let first = status(&world)["updateRevision"].clone();
    change(&mut world, image("nginx:2"));
    grow(&mut world);

    change(&mut world, image("nginx:1"));
    grow(&mut world);

    assert_eq!(status(&world)["updateRevision"], first);
    let revisions = world.list("controllerrevisions.apps", "shop");
    assert_eq!(revisions.len(), 2);
    let revision = revisions.iter().find(|one| first == name(one)).unwrap();
    assert_eq!(revision["revision"], 3);
}

#[test]
fn history_beyond_the_limit_is_forgotten() {
    let mut short = set(1);
    short["spec"]["revisionHistoryLimit"] = json!(1);
    let mut world = world(short);
    for version in 2..6 {
        grow(&mut world);
        change(&mut world, image(&format!("nginx:{version}")));
    }

    grow(&mut world);

    let revisions = world.list("controllerrevisions.apps", "shop");
    let mut kept: Vec<i64> = revisions.iter().map(|one| one["revision"].as_i64().unwrap()).collect();
    kept.sort_unstable();
    assert_eq!(kept, [4, 5]);
}

#[test]
fn a_name_that_another_state_has_counts_as_a_collision() {
    let mut there = World::default();
    there.put("statefulsets.apps", set(1));
    let web = there.get("statefulsets.apps", "shop", "web").unwrap();
    let plan = StatefulSets.plan(&there, &web);
    let Step::Create { object, .. } = &plan.steps[0] else { panic!("{plan:?}") };
    let mut other = object.clone();
    other["metadata"]["ownerReferences"] = json!([]);
    other["metadata"]["labels"] = json!({});
    other["data"] = json!({"spec": {}});
    there.put("controllerrevisions.apps", other);

    there.settle(&StatefulSets);

    assert_eq!(status(&there)["collisionCount"], 1);
    assert_ne!(status(&there)["updateRevision"], object["metadata"]["name"]);
}

#[test]
fn every_place_has_claims_of_its_own() {
    let mut world = world(claimed(2));
    grow(&mut world);

    let claims: Vec<String> =
        world.list("persistentvolumeclaims", "shop").iter().map(|claim| name(claim).to_owned()).collect();
    assert_eq!(claims, ["data-web-0", "data-web-1"]);
    let claim = world.get("persistentvolumeclaims", "shop", "data-web-1").unwrap();
    assert_eq!(claim["metadata"]["labels"], json!({"app": "web"}));
    assert!(claim["metadata"]["ownerReferences"].is_null());
    let pod = world.get("pods", "shop", "web-1").unwrap();
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]));
    assert_eq!(messages(&world)[0], "Create Claim data-web-0 Pod web-0 in StatefulSet web success");
}

#[test]
fn a_pod_waits_while_its_claim_is_being_deleted() {
    let mut world = World::default();
    world.put("statefulsets.apps", claimed(1));
    let leaving = json!({"metadata": {
        "name": "data-web-0", "namespace": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"],
    }});
    world.put("persistentvolumeclaims", leaving);

    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    world.carry_out(StatefulSets.plan(&world, &web));

    assert!(pods(&world).is_empty());
    let expected = "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted";
    assert_eq!(messages(&world), [expected]);
}

#[test]
fn claims_go_with_the_set_or_with_the_place_where_the_policy_says_so() {
    let mut going = claimed(2);
    going["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let mut world = world(going);
    grow(&mut world);
    let owners = |world: &World, claim: &str| -> Vec<String> {
        let claim = world.get("persistentvolumeclaims", "shop", claim).unwrap();
        let owners = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners
            .iter()
            .map(|owner| format!("{}/{}", owner["kind"].as_str().unwrap(), owner["name"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(owners(&world, "data-web-1"), ["StatefulSet/web"]);
    world.patch("pods", &named("web-1"), &json!({"metadata": {"finalizers": ["test/held"]}}));

    change(&mut world, json!({"spec": {"replicas": 1}}));

    assert_eq!(owners(&world, "data-web-0"), ["StatefulSet/web"]);
    assert_eq!(owners(&world, "data-web-1"), ["Pod/web-1"]);
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
    world.patch("pods", &named("web-0"), &json!({"metadata": {"ownerReferences": null}}));
    world.settle(&StatefulSets);
    let owner = world.get("pods", "shop", "web-0").unwrap()["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["name"], "web");

    world.patch("pods", &named("web-0"), &json!({"metadata": {"labels": {"app": "other"}}}));
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
        &named("web"),
        &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    world.remove("pods", &named("web-0"));

    world.settle(&StatefulSets);

    assert_eq!(pods(&world), ["web-1"]);
    assert_eq!(status(&world)["replicas"], 1);
}

#[test]
fn changes_concern_the_set_that_owns_or_selects() {
    let world = world(claimed(1));
    let pod = world.get("pods", "shop", "web-0").unwrap();
    let stray = json!({"metadata": {"name": "x", "namespace": "shop", "labels": {"app": "web"}}});
    let foreign = json!({"metadata": {"name": "x", "namespace": "shop", "labels": {"app": "other"}}});
    let claim = json!({"metadata": {"name": "data-web-7", "namespace": "shop"}});

    assert_eq!(StatefulSets.concerned(&world, "pods", &pod), [named("web")]);
    assert_eq!(StatefulSets.concerned(&world, "pods", &stray), [named("web")]);
    assert_eq!(StatefulSets.concerned(&world, "pods", &foreign), []);
    assert_eq!(StatefulSets.concerned(&world, "persistentvolumeclaims", &claim), [named("web")]);
}

fn refused(world: &World, collection: &str, reason: &str) -> Vec<String> {
    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    let steps = StatefulSets.plan(world, &web).steps;
    let made = |step: &&Step| matches!(step, Step::Create { collection: into, .. } if *into == collection);
    let failure = Failure { reason: reason.to_owned(), message: "no".to_owned() };
    let plan = StatefulSets.failed(world, &web, steps.iter().find(made).unwrap(), &failure);
    let told = |step: &Step| match step {
        Step::Event(event) => format!("{}: {}", event.reason, event.message),
        _ => panic!("{step:?}"),
    };
    plan.steps.iter().map(told).collect()
}

#[test]
fn a_refused_pod_is_told() {
    let mut world = World::default();
    world.put("statefulsets.apps", set(1));

    let told = ["FailedCreate: Create Pod web-0 in StatefulSet web failed error: no"];
    assert_eq!(refused(&world, "pods", "Forbidden"), told);
}

#[test]
fn a_pod_whose_name_is_taken_is_not_told() {
    let mut world = World::default();
    world.put("statefulsets.apps", set(1));

    assert!(refused(&world, "pods", "AlreadyExists").is_empty());
}

#[test]
fn a_claim_whose_name_is_taken_is_told_of_its_pod_only() {
    let mut world = World::default();
    world.put("statefulsets.apps", claimed(1));

    let of_pod = "FailedCreate: Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: no";
    assert_eq!(refused(&world, "persistentvolumeclaims", "AlreadyExists"), [of_pod]);
    let of_claim = "FailedCreate: Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: no";
    assert_eq!(refused(&world, "persistentvolumeclaims", "Forbidden"), [of_claim, of_pod]);
}

#[test]
fn a_claim_that_was_left_is_owned_once_when_its_pod_is_made() {
    let mut parallel = claimed(1);
    parallel["spec"]["podManagementPolicy"] = json!("Parallel");
    parallel["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
    let mut world = World::default();
    world.put("statefulsets.apps", parallel);
    world.put("persistentvolumeclaims", json!({"metadata": {"name": "data-web-0", "namespace": "shop"}}));

    world.settle(&StatefulSets);

    let claim = world.get("persistentvolumeclaims", "shop", "data-web-0").unwrap();
    assert_eq!(claim["metadata"]["ownerReferences"][0]["name"], "web");
    assert_eq!(messages(&world), ["Create Pod web-0 in StatefulSet web successful"]);
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

#[derive(Clone, Debug)]
enum Happening {
    Scale(i64),
    Image(u8),
    Partition(i64),
    Ready(usize),
    Sick(usize),
    Failed(usize),
    Lost(usize),
    Leaving(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..5_i64).prop_map(Happening::Scale),
        (0..3_u8).prop_map(Happening::Image),
        (0..4_i64).prop_map(Happening::Partition),
        (0..5_usize).prop_map(Happening::Ready),
        (0..5_usize).prop_map(Happening::Ready),
        (0..5_usize).prop_map(Happening::Sick),
        (0..5_usize).prop_map(Happening::Failed),
        (0..5_usize).prop_map(Happening::Lost),
        (0..5_usize).prop_map(Happening::Leaving),
    ]
}

fn happens(world: &mut World, happening: &Happening) {
    let web = named("web");
    let at = |index: &usize| pods(world).get(*index).map(|pod| named(pod));
    match happening {
        Happening::Scale(replicas) => world.patch("statefulsets.apps", &web, &json!({"spec": {"replicas": replicas}})),
        Happening::Image(tag) => world.patch("statefulsets.apps", &web, &image(&format!("nginx:{tag}"))),
        Happening::Partition(partition) => {
            let patch = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}});
            world.patch("statefulsets.apps", &web, &patch);
        }
        Happening::Ready(index) => {
            if let Some(pod) = at(index) {
                ready(world, &pod.name);
            }
        }
        Happening::Sick(index) => {
            if let Some(pod) = at(index) {
                world.patch("pods", &pod, &json!({"status": {"conditions": []}}));
            }
        }
        Happening::Failed(index) => {
            if let Some(pod) = at(index) {
                world.patch("pods", &pod, &json!({"status": {"phase": "Failed", "conditions": []}}));
            }
        }
        Happening::Lost(index) => {
            if let Some(pod) = at(index) {
                world.remove("pods", &pod);
            }
        }
        Happening::Leaving(index) => {
            if let Some(pod) = at(index) {
                world.patch("pods", &pod, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
            }
        }
    }
}

/// One plan never fills two places of an ordered set, nor fills one while an earlier one is empty or not ready.
fn respects_order(world: &World) -> Result<(), TestCaseError> {
    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    let plan = StatefulSets.plan(world, &web);
    let made: Vec<&Value> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Create { collection: "pods", object } => Some(object),
            _ => None,
        })
        .collect();
    prop_assert!(made.len() <= 1, "{made:?}");
    for pod in made {
        for place in 0..ordinal(pod).unwrap() {
            let before = world.get("pods", "shop", &format!("web-{place}"));
            prop_assert!(before.is_some_and(|pod| crate::common::pod::is_ready(&pod)), "{place} before {}", name(pod));
        }
        prop_assert!(world.get("pods", "shop", name(pod)).is_none());
    }
    let deleted =
        plan.steps.iter().filter(|step| matches!(step, Step::Delete { target, .. } if target.collection == "pods"));
    prop_assert!(deleted.count() <= 1);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_keeps_the_order_and_comes_to_the_wanted_places(
        history in prop::collection::vec(happening(), 0..30),
    ) {
        let mut world = world(set(3));
        for one in &history {
            happens(&mut world, one);
            respects_order(&world)?;
            // One plan, not all: what happens next finds things half done.
            let web = world.get("statefulsets.apps", "shop", "web").unwrap();
            world.carry_out(StatefulSets.plan(&world, &web));
        }

        for pod in pods(&world) {
            let leaving = !world.get("pods", "shop", &pod).unwrap()["metadata"]["deletionTimestamp"].is_null();
            if leaving {
                world.remove("pods", &named(&pod));
            } else {
                ready(&mut world, &pod);
            }
        }
        world.patch("statefulsets.apps", &named("web"), &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}));
        grow(&mut world);

        let wanted = world.get("statefulsets.apps", "shop", "web").unwrap()["spec"]["replicas"].as_i64().unwrap();
        let names: Vec<String> = (0..wanted).map(|place| format!("web-{place}")).collect();
        prop_assert_eq!(pods(&world), names);
        let status = status(&world);
        prop_assert_eq!(&status["currentRevision"], &status["updateRevision"]);
        prop_assert_eq!(status["updatedReplicas"].as_i64().unwrap_or(0), wanted);
    }
}
