//! Objects that change what there is one of: a document of the account.

use portolan_cloudflare_sim::{Effect, Fault, Grant, RecordedRequest};
use serde_json::json;

use super::ten_passes_write_nothing;
use crate::cloudflare::essence;
use crate::crash::{Tried, at_every_step};
use crate::manifests::{self as m, ACCOUNT, CANARY, OPERATOR_NAMESPACE};
use crate::sample::Single;
use crate::world::{Builder, World};

async fn settled(builder: &Builder, sample: &Single) -> World {
    let world = builder.clone().start().await;
    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;
    world.forget();
    world
}

/// The document as it stands, without what differs between two runs.
fn document(world: &World, sample: &Single) -> serde_json::Value {
    essence(&world.cloudflare.one(sample.document, |_| true))
}

pub(super) async fn only_what_is_mentioned_is_written(builder: &Builder, sample: &Single) {
    let world = builder.clone().start().await;

    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;

    let written: Vec<_> =
        world.cloudflare.simulator.take_requests().into_iter().filter(RecordedRequest::is_write).collect();
    assert_eq!(written.len(), 1, "{}", sample.kind);
    assert_eq!(written[0].method, "PATCH");
    let groups = |value: &serde_json::Value| value.as_object().map_or(0, serde_json::Map::len);
    assert_eq!(groups(&written[0].body["settings"]), sample.groups, "{}", written[0].body);
    assert!(groups(&document(&world, sample)["settings"]) > sample.groups, "what others said stays");
    assert!(world.cluster.events(&sample.id()).await.contains(&"Updated".to_owned()));
}

pub(super) async fn at_rest_it_costs_no_write_over_ten_passes(builder: &Builder, sample: &Single) {
    let world = settled(builder, sample).await;

    ten_passes_write_nothing(&world, &sample.id(), sample.kind).await;
}

pub(super) async fn drift_is_put_right_with_one_write(builder: &Builder, sample: &Single) {
    let world = settled(builder, sample).await;
    let before = document(&world, sample);
    world.cloudflare.edit(sample.document, ACCOUNT, sample.drift);

    world.drift_pass().await;
    world.settle().await;

    assert_eq!(world.writes().len(), 1, "{}", sample.kind);
    assert_eq!(document(&world, sample), before);
}

pub(super) async fn what_is_not_mentioned_is_left_as_others_make_it(builder: &Builder, sample: &Single) {
    let world = settled(builder, sample).await;
    world.cloudflare.edit(sample.document, ACCOUNT, sample.aside);
    let theirs = document(&world, sample);

    world.drift_pass().await;
    world.settle().await;
    assert_eq!(world.writes(), [""; 0], "{}", sample.kind);

    world.cluster.apply(&sample.changed()).await;
    world.settle().await;

    assert_eq!(world.writes().len(), 1, "{}", sample.kind);
    let mut changed = document(&world, sample);
    assert_ne!(changed, theirs, "{}: the change is made", sample.kind);
    for group in sample.mentioned {
        for (member, value) in theirs["settings"][group].as_object().into_iter().flatten() {
            assert_eq!(changed["settings"][group][member], *value, "{group}.{member}");
        }
        changed["settings"][group] = theirs["settings"][group].clone();
    }
    assert_eq!(changed, theirs, "{}: and nothing else", sample.kind);
}

pub(super) async fn of_two_the_older_has_it(builder: &Builder, sample: &Single) {
    let world = settled(builder, sample).await;
    // Ages are told in whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    for (name, cloudflare) in [("a-second", json!({})), ("b-third", json!({ "accountId": ACCOUNT }))] {
        let mut rival = m::with(sample.changed(), "cloudflare", cloudflare);
        rival["metadata"]["name"] = json!(name);
        world.cluster.apply(&rival).await;
        world.settle().await;

        let rival = m::id(&rival);
        assert_eq!(world.cluster.ready(&rival).await, "False/ConflictError", "{rival}");
        assert_eq!(world.writes(), [""; 0], "{rival}");
        world.cluster.delete(&rival).await;
        world.until_ready(&rival, "gone").await;
    }
    assert_eq!(world.cluster.ready(&sample.id()).await, "True/Synced");
}

pub(super) async fn the_younger_has_it_once_the_older_is_gone(builder: &Builder, sample: &Single) {
    let world = settled(builder, sample).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let mut rival = sample.changed();
    rival["metadata"]["name"] = json!("a-second");
    world.cluster.apply(&rival).await;
    world.settle().await;

    world.cluster.delete(&sample.id()).await;

    world.until_ready(&m::id(&rival), "True/Synced").await;
}

pub(super) async fn deletion_leaves_it_as_it_is(builder: &Builder, sample: &Single) {
    let world = settled(builder, sample).await;
    let before = document(&world, sample);

    world.cluster.delete(&sample.id()).await;
    world.until_ready(&sample.id(), "gone").await;
    world.settle().await;

    assert_eq!(world.writes(), [""; 0], "{}", sample.kind);
    assert_eq!(document(&world, sample), before);
}

pub(super) async fn faults_pass(builder: &Builder, sample: &Single) {
    let world = builder.clone().start().await;
    world.cloudflare.fault(Fault::on("GET", &sample.path(), Effect::status(500)).times(1));
    world.cloudflare.fault(Fault::on("PATCH", &sample.path(), Effect::Reset).after_write().times(1));

    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;

    let expected = document(&settled(builder, sample).await, sample);
    assert_eq!(document(&world, sample), expected);
}

pub(super) async fn forbidden_it_says_so_and_goes_on_when_allowed(builder: &Builder, sample: &Single) {
    let world = builder.clone().start().await;
    world.cloudflare.simulator.revoke_token(CANARY);
    world.cluster.apply(&(sample.manifest)()).await;
    world.settle().await;
    let ready = world.cluster.ready(&sample.id()).await;
    assert!(ready.starts_with("False/"), "{}: {ready}", sample.kind);

    world.cloudflare.simulator.add_token("canary-second", Grant::all());
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "cloudflare-api", "canary-second")).await;
    world.until_ready_by_watch(&sample.id(), "True/Synced").await;
}

/// Kills the operator before and after every step of writing what is mentioned first, and of changing it.
pub async fn single_crash_points(builder: &Builder, sample: &Single) -> Tried {
    let nothing = async |_: &World| {};
    let create = async |world: &World| drop(world.cluster.apply(&(sample.manifest)()).await);
    let settle = async |world: &World| {
        world.cluster.apply(&(sample.manifest)()).await;
        world.until_ready(&sample.id(), "True/Synced").await;
    };
    let change = async |world: &World| drop(world.cluster.apply(&sample.changed()).await);
    let mut tried = at_every_step(&format!("Create of {}", sample.kind), builder, nothing, create).await;
    tried += at_every_step(&format!("Update of {}", sample.kind), builder, settle, change).await;
    tried
}
