//! A token that is planted in every Secret appears nowhere else: not in logs, events, objects, plans, metrics, recordings.

use portolan_cloudflare_sim::{Effect, Fault, Grant};
use portolan_testkit_suites::manifests::{self as m, CANARY, NAMESPACE, OPERATOR_NAMESPACE};
use portolan_testkit_suites::{World, cloudflare_world, logged, paused};
use serde_json::json;

/// Everything that users do with tokens, and everything that goes wrong with them.
async fn live_with_canaries(world: &World) {
    let cloudflare = &world.cloudflare.simulator;
    cloudflare.add_token("canary-inline-token", Grant::all());
    world.cluster.apply(&m::token_secret(NAMESPACE, "inline", "canary-inline-token")).await;
    let mut inline = m::record("inline", "192.0.2.1");
    inline["spec"]["cloudflare"] = json!({ "secret": "inline" });
    world.cluster.apply(&inline).await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.cluster.apply(&m::network("corp")).await;
    world.cluster.apply(&m::route("office", "10.1.0.0/16")).await;
    world.settle().await;
    // An API that repeats the token in its answers.
    let echo = |token: &str| {
        let message = format!("Invalid token {token} in header Bearer {token}");
        Fault::on("", "dns_records|teamnet|accounts", Effect::Status { status: 400, code: 9109, message })
    };
    cloudflare.fault(echo(CANARY));
    world.cluster.apply(&m::record("www", "192.0.2.2")).await;
    world.cluster.delete("NetworkRoute/office").await;
    world.settle().await;
    cloudflare.clear_faults();
    cloudflare.fault(echo("canary-inline-token"));
    inline["spec"]["content"] = json!("192.0.2.3");
    world.cluster.apply(&inline).await;
    world.settle().await;
    cloudflare.clear_faults();
    cloudflare.revoke_token(CANARY);
    world.cluster.apply(&m::record("late", "192.0.2.2")).await;
    world.settle().await;
    cloudflare.add_token("canary-rotated-token", Grant::all());
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "cloudflare-api", "canary-rotated-token")).await;
    world.settle().await;
}

#[test]
fn a_canary_in_every_secret_is_seen_nowhere() {
    let (mut texts, log) = logged(|| {
        paused(async {
            let world = cloudflare_world().start().await;
            live_with_canaries(&world).await;
            let mut texts: Vec<(String, String)> = vec![("metrics".to_owned(), world.metrics().await)];
            for kind in [
                "Event",
                "ConfigMap",
                "DNSRecord",
                "VirtualNetwork",
                "NetworkRoute",
                "CloudflareCredentials",
                "CloudflareDomain",
            ] {
                texts.extend(world.cluster.list(kind).await.iter().map(|one| (m::id(one), one.to_string())));
            }
            texts.extend(world.plans().into_iter().map(|plan| ("a plan".to_owned(), plan)));
            let requests = world.cloudflare.simulator.requests();
            let bodies =
                requests.iter().map(|one| ("a request".to_owned(), format!("{} {} {}", one.path, one.query, one.body)));
            texts.extend(bodies);
            texts
        })
    });
    assert!(log.len() > 1000, "something was logged");
    texts.push(("the log".to_owned(), log));
    let places: Vec<&String> = texts.iter().map(|(place, _)| place).collect();
    assert!(
        texts.len() > 10 && places.iter().any(|place| place.starts_with("Event")),
        "there is something to search: {places:?}"
    );
    let seen: Vec<&String> =
        texts.iter().filter(|(_, text)| text.contains("canary-")).map(|(place, _)| place).collect();
    assert!(seen.is_empty(), "a canary stands in {seen:?}");
}
