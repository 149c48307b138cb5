//! How many calls it takes to wait: names whose tunnel is gone.

use std::time::Duration;

use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::{self as z, RouteManifest, TUNNEL};
use portolan_testkit_suites::{World, tell};
use serde_json::{Value, json};

const MINUTES: Duration = Duration::from_secs(300);

fn routes(count: usize, origin: &str) -> Vec<Value> {
    let route =
        |n: usize| RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com")).with("originService", origin);
    (0..count).map(|n| route(n).into()).collect()
}

fn lose_the_tunnel(world: &World) {
    world.cloudflare.edit("cfd_tunnel", TUNNEL, |tunnel| tunnel["deleted_at"] = json!("2024-01-01T00:00:00Z"));
}

fn told(world: &World, what: &str) -> usize {
    let calls = world.cloudflare.take_requests();
    tell(&format!("scale: {what}: {} calls in five minutes", calls.len()));
    println!("{calls:#?}");
    calls.len()
}

#[tokio::test(start_paused = true)]
async fn sixty_routes_to_a_tunnel_that_is_gone_take_at_most_forty_calls_in_five_minutes() {
    let world = z::world().latency(Duration::from_millis(150)).asleep().start().await;
    lose_the_tunnel(&world);
    world.cluster.create_all(&routes(60, "http://one:80")).await;

    world.restart().await;
    world.pass(MINUTES).await;

    assert!(told(&world, "60 routes to a deleted tunnel") <= 40);
    let events = world.cluster.told("HTTPRoute/default/r7").await;
    assert!(events.iter().any(|event| event.starts_with("TunnelNotFound")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn sixty_names_that_change_after_their_tunnel_went_take_at_most_forty_calls_in_five_minutes() {
    let world = z::world().latency(Duration::from_millis(150)).start().await;
    world.cluster.create_all(&routes(60, "http://one:80")).await;
    world.settle().await;
    assert_eq!(world.cloudflare.all("dns_records").len(), 60);
    lose_the_tunnel(&world);
    world.forget();

    for route in routes(60, "http://two:80") {
        world.cluster.apply(&route).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    world.pass(Duration::from_secs(258)).await;

    assert!(told(&world, "60 changed names of a deleted tunnel") <= 40);
    assert_eq!(world.tasks().await.len(), 60);
}

#[tokio::test(start_paused = true)]
async fn names_go_on_within_a_minute_where_their_tunnel_was_managed_by_a_file_for_a_moment() {
    let world = z::world().asleep().start().await;
    world.cloudflare.edit("cfd_tunnel", TUNNEL, |tunnel| tunnel["config_src"] = json!("local"));
    world.cluster.create_all(&routes(20, "http://one:80")).await;
    world.restart().await;
    world.settle().await;
    let events = world.cluster.told("HTTPRoute/default/r7").await;
    assert!(events.iter().any(|event| event.starts_with("TunnelLocallyManaged")), "{events:?}");

    world.cloudflare.edit("cfd_tunnel", TUNNEL, |tunnel| tunnel["config_src"] = json!("cloudflare"));

    let done = async |world: &World| world.cloudflare.all("dns_records").len() == 20;
    assert!(world.holds_within(Duration::from_secs(60), done).await);
}
