//! Objects that only look at something at Cloudflare.

use portolan_cloudflare_sim::Grant;

use super::ten_passes_write_nothing;
use crate::manifests::{self as m, CANARY, OPERATOR_NAMESPACE};
use crate::sample::Observed;
use crate::world::{Builder, World};

async fn settled(builder: &Builder, sample: &Observed) -> World {
    let world = builder.clone().start().await;
    (sample.appear)(&world);
    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), sample.ready).await;
    world.settle().await;
    world.forget();
    world
}

pub(super) async fn it_is_ready_once_what_it_looks_for_is_there(builder: &Builder, sample: &Observed) {
    let world = builder.clone().start().await;
    world.cluster.apply(&(sample.manifest)()).await;
    world.settle().await;
    let ready = world.cluster.ready(&sample.id()).await;
    assert!(ready.starts_with("False/"), "{}: {ready}", sample.kind);
    assert!(!world.cluster.message(&sample.id()).await.is_empty(), "{}: the message says why", sample.kind);

    (sample.appear)(&world);
    world.until_ready(&sample.id(), sample.ready).await;

    assert_eq!(world.writes(), [""; 0], "{}: nothing is written to Cloudflare", sample.kind);
}

pub(super) async fn at_rest_it_costs_no_write_over_ten_passes(builder: &Builder, sample: &Observed) {
    let world = settled(builder, sample).await;

    ten_passes_write_nothing(&world, &sample.id(), sample.kind).await;
}

pub(super) async fn deleting_it_changes_nothing_at_cloudflare(builder: &Builder, sample: &Observed) {
    let world = settled(builder, sample).await;

    world.cluster.delete(&sample.id()).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&sample.id()).await, "gone");
    assert_eq!(world.writes(), [""; 0], "{}", sample.kind);
}

pub(super) async fn refused_credentials_are_said_and_forgotten_when_changed(builder: &Builder, sample: &Observed) {
    let world = builder.clone().start().await;
    (sample.appear)(&world);
    world.cloudflare.simulator.revoke_token(CANARY);
    world.cluster.apply(&(sample.manifest)()).await;
    world.settle().await;
    let ready = world.cluster.ready(&sample.id()).await;
    assert!(ready.starts_with("False/"), "{}: {ready}", sample.kind);

    world.cloudflare.simulator.add_token("canary-second", Grant::all());
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "cloudflare-api", "canary-second")).await;
    world.until_ready_by_watch(&sample.id(), sample.ready).await;
}
