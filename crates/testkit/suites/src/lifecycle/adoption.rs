//! What exists already, and whose it is.

use serde_json::json;

use super::{CheckOutcome, remote};
use crate::cloudflare::essence;
use crate::manifests::annotated;
use crate::sample::Owned;
use crate::world::Builder;

const ADOPT: &str = "cloudflare-operator.io/adopt";

pub(super) async fn the_same_made_by_hand_is_taken_over_and_released(builder: &Builder, sample: &Owned) {
    let world = builder.clone().start().await;
    let twin = world.cloudflare.plant(sample.collection, &(sample.twin)(&world));
    let before = world.cloudflare.one(sample.collection, |one| one["id"] == twin);

    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;

    let adopted = remote(&world, sample);
    assert_eq!(adopted["id"], twin, "{}: taken over, not doubled", sample.label);
    assert!(world.cluster.events(&sample.id()).await.contains(&"Adopted".to_owned()));

    world.cluster.delete(&sample.id()).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&sample.id()).await, "gone");
    let released = world.cloudflare.one(sample.collection, |one| one["id"] == twin);
    assert!(!released["comment"].as_str().unwrap_or_default().contains("[managed"), "{released}");
    let without_comment = |object: &serde_json::Value| {
        let mut object = essence(object);
        object["comment"] = json!(null);
        object
    };
    assert_eq!(without_comment(&released), without_comment(&before), "{}", sample.label);
}

pub(super) async fn something_else_is_left_alone_until_adopted(builder: &Builder, sample: &Owned) -> CheckOutcome {
    let Some(other_twin) = sample.other_twin else { return CheckOutcome::Nothing };
    let world = builder.clone().start().await;
    let twin = world.cloudflare.plant(sample.collection, &other_twin(&world));
    let before = world.cloudflare.one(sample.collection, |one| one["id"] == twin);

    world.cluster.apply(&(sample.manifest)()).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&sample.id()).await, "False/ConflictError", "{}", sample.label);
    assert!(world.cluster.message(&sample.id()).await.contains("adopt"), "the message says what to do");
    assert_eq!(world.cloudflare.one(sample.collection, |one| one["id"] == twin), before);
    assert_eq!(world.writes(), [""; 0]);

    world.cluster.apply(&annotated((sample.manifest)(), ADOPT, "true")).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;

    assert_eq!(remote(&world, sample)["id"], twin, "{}", sample.label);

    world.cluster.delete(&sample.id()).await;
    world.settle().await;
    let released = world.cloudflare.one(sample.collection, |one| one["id"] == twin);
    assert!(!released["comment"].as_str().unwrap_or_default().contains("[managed"), "{released}");
    CheckOutcome::Ran
}

pub(super) async fn foreign_marks_are_respected(builder: &Builder, sample: &Owned) -> CheckOutcome {
    if !sample.is_marked() {
        return CheckOutcome::Nothing;
    }
    let same_of_another_cluster = format!("[managed:{}#00000000]", sample.id());
    for mark in
        ["[managed:DNSRecord/elsewhere/other]", "[managed-by:NetworkRoute/other] theirs", &same_of_another_cluster]
    {
        let world = builder.clone().start().await;
        let mut twin = (sample.twin)(&world);
        twin["comment"] = json!(mark);
        let twin = world.cloudflare.plant(sample.collection, &twin);
        let before = world.cloudflare.one(sample.collection, |one| one["id"] == twin);

        world.cluster.apply(&annotated((sample.manifest)(), ADOPT, "true")).await;
        world.settle().await;

        assert_eq!(world.cluster.ready(&sample.id()).await, "False/ConflictError", "{}", sample.label);
        assert!(world.cluster.events(&sample.id()).await.contains(&"AdoptionConflict".to_owned()));
        assert_eq!(world.writes(), [""; 0], "{}", sample.label);

        world.cluster.delete(&sample.id()).await;
        world.settle().await;

        assert_eq!(world.cluster.ready(&sample.id()).await, "gone", "{}: nothing of its own holds it", sample.label);
        assert_eq!(world.cloudflare.one(sample.collection, |one| one["id"] == twin), before);
    }
    CheckOutcome::Ran
}

pub(super) async fn of_two_that_want_the_same_the_older_has_it(builder: &Builder, sample: &Owned) {
    let world = super::settled(builder, sample).await;
    // Ages are told in whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let mut rival = (sample.manifest)();
    // A name by which the second would come first, were it not for its age.
    rival["metadata"]["name"] = json!("a-second");
    let called = (sample.manifest)()["metadata"]["name"].clone();
    if remote(&world, sample)["name"] == called {
        rival["spec"]["name"] = called;
    }
    let rival_id = crate::manifests::id(&rival);

    world.cluster.apply(&rival).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&rival_id).await, "False/ConflictError", "{}", sample.label);
    assert_eq!(world.cluster.ready(&sample.id()).await, "True/Synced");
    assert_eq!(world.writes(), [""; 0], "{}", sample.label);

    world.cluster.delete(&sample.id()).await;
    world.until_ready(&rival_id, "True/Synced").await;
    // Its finalizer leaves last, after the rival was told.
    world.until_ready(&sample.id(), "gone").await;
}
