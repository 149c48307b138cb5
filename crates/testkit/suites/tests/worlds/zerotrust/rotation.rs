//! Service tokens in time: rotation on request with an overlap, lost Secrets, expiry.

use std::time::Duration;

use portolan_testkit_suites::World;
use portolan_testkit_suites::zerotrust::RouteManifest;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use serde_json::{Value, json};

use super::{publish, settled};

fn with_token() -> RouteManifest {
    RouteManifest::to("api", "api.example.com").allowing("user@example.com").with("serviceToken", "true")
}

fn opens(world: &World, (id, secret): &(String, String)) -> bool {
    world.name("api.example.com").opens(&[("CF-Access-Client-Id", id), ("CF-Access-Client-Secret", secret)])
}

#[tokio::test(start_paused = true)]
async fn a_requested_rotation_lets_the_old_secret_live_for_its_overlap() {
    let world = settled([with_token()]).await;
    let old = world.token_secret("api").await.expect("the Secret is there");

    publish(&world, with_token().with("serviceToken.rotate", "2026-01").with("serviceToken.rotateOverlap", "30m"))
        .await;

    let new = world.token_secret("api").await.expect("the Secret is there");
    assert_ne!(new.1, old.1);
    assert_eq!(world.cloudflare.all("service_tokens").len(), 1);
    assert!(opens(&world, &new) && opens(&world, &old), "both open during the overlap");
    world.pass(Duration::from_secs(31 * 60)).await;
    assert!(opens(&world, &new) && !opens(&world, &old), "the new one alone afterwards");
    world.forget();
    world.crash().await;
    world.restart().await;
    world.settle().await;
    assert_eq!(world.writes(), [""; 0], "one request is one rotation");
    world.assert_sound("after a rotation").await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_secret_is_replaced_by_rotation_not_by_a_second_token() {
    let world = settled([with_token()]).await;
    let token = world.cloudflare.all("service_tokens").remove(0)["id"].clone();

    world.cluster.delete("Secret/default/api-cfzt-service-token").await;
    world.settle().await;

    let tokens = world.cloudflare.all("service_tokens");
    assert_eq!(tokens.iter().map(|one| one["id"].clone()).collect::<Vec<_>>(), [token]);
    assert!(world.name("api.example.com").opens_with_token_of("api").await);
    world.assert_sound("after a lost Secret").await;
}

#[tokio::test(start_paused = true)]
async fn a_token_that_expires_soon_is_refreshed() {
    let world = settled([with_token().with("serviceToken.duration", "1440h")]).await;
    let expiry = |world: &World| world.cloudflare.all("service_tokens").remove(0)["expires_at"].clone();
    let before = expiry(&world);

    world.pass(Duration::from_secs(45 * 24 * 3600)).await;
    world.drift_pass().await;
    world.settle().await;

    assert_ne!(expiry(&world), before);
    world.pass(Duration::from_secs(30 * 24 * 3600)).await;
    assert!(world.name("api.example.com").opens_with_token_of("api").await, "it still opens after its first expiry");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_else_is_not_overwritten_and_nothing_is_made() {
    let world = settled([]).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "api-cfzt-service-token", "namespace": "default" }, "stringData": { "mine": "yes" },
    });
    world.cluster.apply(&secret).await;

    publish(&world, with_token()).await;

    assert!(world.cluster.events("HTTPRoute/default/api").await.contains(&"SecretConflict".to_owned()));
    assert_eq!(world.writes(), [""; 0]);
    let kept = world.cluster.get("Secret/default/api-cfzt-service-token").await.expect("it stays");
    assert_eq!(
        kept["data"].as_object().map(|data| data.keys().cloned().collect::<Vec<_>>()),
        Some(vec!["mine".to_owned()])
    );
    world.cluster.delete("Secret/default/api-cfzt-service-token").await;
    let free = world.holds_within(Duration::from_secs(900), async |world: &World| {
        world.name("api.example.com").opens_with_token_of("api").await
    });
    assert!(free.await, "it goes on when the name is free");
    world.settle().await;
    assert_eq!(world.tasks().await, Vec::<Value>::new());
}
