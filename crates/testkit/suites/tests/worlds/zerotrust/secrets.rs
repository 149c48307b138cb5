//! Scenarios 71 and 72: secrets stand where they belong and nowhere else; annotations are no keys to other people's things.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault, Grant};
use portolan_testkit_suites::manifests::CANARY;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::manifests::PREFIX;
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, RouteManifest, token_secret};
use portolan_testkit_suites::{World, logged, manifests as m, paused};
use serde_json::json;

use super::{publish, settled};

fn with_token() -> RouteManifest {
    RouteManifest::to("api", "api.example.com").allowing("user@example.com").with("serviceToken", "true")
}

/// Everything that is done with tokens, and much that goes wrong with them.
async fn live_with_canaries(world: &World) {
    let cloudflare = &world.cloudflare.simulator;
    publish(world, with_token()).await;
    publish(world, with_token().with("serviceToken.rotate", "once")).await;
    world.cluster.delete("Secret/default/api-cfzt-service-token").await;
    world.settle().await;
    let message = format!("Invalid token {CANARY} in header Bearer {CANARY}");
    cloudflare.fault(Fault::on(
        "",
        "access|cfd_tunnel|dns_records",
        Effect::Status { status: 400, code: 9109, message },
    ));
    publish(world, with_token().allowing("other@example.com")).await;
    publish(
        world,
        RouteManifest::to("second", "second.example.com").allowing("user@example.com").with("serviceToken", "true"),
    )
    .await;
    cloudflare.clear_faults();
    cloudflare.fault(Fault::on("POST", "service_tokens", Effect::status(500)).after_write().times(1));
    publish(
        world,
        RouteManifest::to("third", "third.example.com").allowing("user@example.com").with("serviceToken", "true"),
    )
    .await;
    world.pass(Duration::from_secs(120)).await;
    cloudflare.revoke_token(CANARY);
    publish(world, with_token().allowing("last@example.com")).await;
    cloudflare.add_token("canary-rotated-token", Grant::all());
    world.cluster.apply(&token_secret("default", "cloudflare-api-token", "canary-rotated-token")).await;
    world.settle().await;
    world.cluster.delete("HTTPRoute/default/third").await;
    world.settle().await;
}

/// Everything that could be read by somebody who may not, and what it is.
async fn texts(world: &World) -> Vec<(String, String)> {
    let mut texts = vec![("the metrics".to_owned(), world.metrics().await)];
    for kind in [
        "Event",
        "ConfigMap",
        "Lease",
        "HTTPRoute",
        "CloudflareTask",
        "CloudflareZeroTrustTenant",
        "CloudflareZeroTrustTemplate",
    ] {
        texts.extend(world.cluster.list(kind).await.iter().map(|one| (m::id(one), one.to_string())));
    }
    texts.extend(world.plans().into_iter().map(|plan| ("a plan".to_owned(), plan)));
    for one in world.cloudflare.simulator.requests() {
        texts.push(("a request".to_owned(), format!("{} {} {}", one.path, one.query, one.body)));
    }
    texts.push(("the simulator's state".to_owned(), world.cloudflare.simulator.state().to_string()));
    texts
}

#[test]
fn scenario_71_no_token_and_no_client_secret_is_seen_anywhere() {
    let ((mut texts, told), log) = logged(|| {
        paused(async {
            let world = z::world().start().await;
            live_with_canaries(&world).await;
            (texts(&world).await, world.cloudflare.told_secrets())
        })
    });
    assert!(log.len() > 10_000, "something was logged");
    texts.push(("the log".to_owned(), log));
    assert!(told.len() >= 4, "tokens were made and rotated: {}", told.len());
    assert!(texts.len() > 20 && texts.iter().any(|(place, _)| place.starts_with("Event")));
    let holds = |text: &str| text.contains("canary-") || told.iter().any(|secret| text.contains(secret.as_str()));
    let seen: Vec<&String> = texts.iter().filter(|(_, text)| holds(text)).map(|(place, _)| place).collect();
    assert!(seen.is_empty(), "a secret stands in {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn scenario_72_an_id_in_an_annotation_opens_nobody_elses_application() {
    let world = settled([]).await;
    let theirs =
        json!({ "name": "theirs", "domain": "theirs.example.com", "type": "self_hosted", "session_duration": "1h" });
    let app = world.cloudflare.plant_in("access_apps", ACCOUNT, &theirs);
    let record = world.cloudflare.plant_foreign(
        "dns_records",
        &json!({ "type": "A", "name": "theirs.example.com", "content": "203.0.113.1", "ttl": 1 }),
    );
    let annotated = |route: RouteManifest| {
        route.with("accessAppId", &app).with("cnameRecordId", &record).with("serviceTokenId", &app)
    };

    publish(&world, annotated(RouteManifest::to("evil", "evil.example.com").allowing("user@example.com"))).await;
    assert_ne!(world.name("evil.example.com").app()["id"], json!(app));
    world.cluster.annotate("HTTPRoute/default/evil", &format!("{PREFIX}accessAppId"), &app).await;
    publish(&world, annotated(RouteManifest::to("evil", "evil.example.com").allowing("other@example.com"))).await;
    world.assert_sound("the foreign application stands").await;
    world.cluster.delete("HTTPRoute/default/evil").await;
    world.settle().await;

    assert!(world.name("evil.example.com").is_gone());
    world.assert_sound("scenario 72").await;
}
