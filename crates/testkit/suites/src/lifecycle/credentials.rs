//! Who asks: missing, refused and rotated credentials.

use std::time::Duration;

use portolan_cloudflare_sim::Grant;
use serde_json::json;

use super::{remote, settled};
use crate::cloudflare::essence;
use crate::manifests::{self as m, CANARY, OPERATOR_NAMESPACE};
use crate::sample::Owned;
use crate::world::{Builder, World};

pub(super) async fn missing_credentials_are_waited_for(builder: &Builder, sample: &Owned) {
    let world = builder.clone().start().await;
    let mut manifest = (sample.manifest)();
    manifest["spec"]["cloudflare"]["credentialsRef"] = json!({ "name": "later" });

    world.cluster.apply(&manifest).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&sample.id()).await, "False/DependencyError", "{}", sample.label);
    assert!(world.cluster.message(&sample.id()).await.contains("later"), "the message names what is missing");
    assert_eq!(world.cloudflare.take_requests(), [""; 0], "{}", sample.label);

    world.cluster.apply(&m::credentials("later", "later-secret")).await;
    world.settle().await;
    assert!(world.cluster.message(&sample.id()).await.contains("later-secret"), "the message names the Secret");

    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "later-secret", CANARY)).await;
    world.until_ready_by_watch(&sample.id(), "True/Synced").await;
}

pub(super) async fn refused_credentials_are_asked_rarely_and_at_once_when_changed(builder: &Builder, sample: &Owned) {
    let world = builder.clone().start().await;
    world.cloudflare.simulator.revoke_token(CANARY);

    world.cluster.apply(&(sample.manifest)()).await;
    world.settle().await;

    let ready = world.cluster.ready(&sample.id()).await;
    assert!(ready.starts_with("False/"), "{}: {ready}", sample.label);
    world.forget();
    world.pass(Duration::from_secs(240)).await;
    let asked = world.cloudflare.take_requests();
    assert!(asked.len() <= 1, "{}: a refused token is asked rarely: {asked:?}", sample.label);

    world.cloudflare.simulator.add_token("canary-second", Grant::all());
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "cloudflare-api", "canary-second")).await;
    world.until_ready_by_watch(&sample.id(), "True/Synced").await;
}

pub(super) async fn a_rotated_token_is_used_at_once(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;
    let before = essence(&remote(&world, sample));
    world.cloudflare.simulator.add_token("canary-second", Grant::all());
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "cloudflare-api", "canary-second")).await;
    world.settle().await;
    world.cloudflare.simulator.revoke_token(CANARY);
    world.forget();

    world.cluster.apply(&sample.changed()).await;
    world.until_by_watch(async |world: &World| essence(&remote(world, sample)) != before).await;

    let refused: Vec<String> = world.cloudflare.take_requests().into_iter().filter(|text| text.contains('→')).collect();
    assert_eq!(refused, [""; 0], "{}: the new token alone is used", sample.label);
    world.until_ready(&sample.id(), "True/Synced").await;
}
