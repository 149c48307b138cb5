//! Templates that change, and the history of them.

use serde_json::json;

use super::*;

#[test]
fn a_rolling_update_replaces_from_the_last_place_down() {
    let mut world = world(set(2));
    grow(&mut world);
    let old = status(&world)["updateRevision"].clone();

    change(&mut world, image("nginx:2"));
    let revisions = |world: &TestObjects| -> Vec<bool> {
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

    world.remove("pods", &in_shop("web-0"));
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
    world.remove("pods", &in_shop("web-0"));
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
    let mut there = TestObjects::default();
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
