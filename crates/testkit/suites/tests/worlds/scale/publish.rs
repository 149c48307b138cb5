//! How many calls publishing takes: a thousand plain routes, four hundred and fifty protected ones, one more when idle.

use std::time::Duration;

use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::{self as z, RouteManifest, TUNNEL};
use portolan_testkit_suites::{World, tell};
use serde_json::Value;

fn plain(count: usize) -> Vec<Value> {
    (0..count).map(|n| RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com")).into()).collect()
}

fn protected(count: usize) -> Vec<Value> {
    let route = |n: usize| {
        let emails = format!("user{n}@example.com,boss@example.com");
        RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com")).allowing(&emails).into()
    };
    (0..count).map(route).collect()
}

/// Everything that was asked for stands, and nothing is left to do.
async fn assert_all_published(world: &World, count: usize) {
    assert_eq!(world.tasks().await, Vec::<Value>::new());
    assert_eq!(world.cloudflare.all("dns_records").len(), count);
    let config = z::config(world, TUNNEL);
    assert_eq!(config["ingress"].as_array().map_or(0, Vec::len), count + 3);
    for n in [0, count / 2, count - 1] {
        let done = world.output(&format!("r{n}"), "cnameRecordId").await;
        assert!(done.is_some(), "r{n} has its outputs");
    }
}

fn told(world: &World, what: &str) -> usize {
    let calls = world.cloudflare.take_requests();
    tell(&format!("scale: {what}: {} calls", calls.len()));
    if calls.len() <= 60 {
        println!("{calls:#?}");
    }
    calls.len()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_plain_routes_from_cold_take_at_most_twenty_calls() {
    let world = z::world().latency(Duration::from_millis(150)).asleep().start().await;
    world.cluster.create_all(&plain(1000)).await;

    world.restart().await;
    world.settle().await;

    assert_all_published(&world, 1000).await;
    assert!(told(&world, "a thousand plain routes from cold") <= 20);
    world.pass(Duration::from_secs(1800)).await;
    assert_eq!(world.cloudflare.take_requests(), [""; 0], "settled it costs nothing");
    world.failpoints.take();
    world.pass(Duration::from_secs(1800)).await;
    assert_eq!(world.cluster_writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_plain_routes_by_eight_clients_take_at_most_forty_calls() {
    let world = z::world().latency(Duration::from_millis(150)).start().await;
    let all = plain(1000);
    let clients = all.chunks(125).map(async |chunk| {
        for route in chunk {
            world.cluster.try_create(route).await.expect("the manifest is accepted");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });

    futures::future::join_all(clients).await;
    world.settle().await;

    assert_all_published(&world, 1000).await;
    assert!(told(&world, "a thousand plain routes by eight clients") <= 40);
}

#[tokio::test(start_paused = true)]
async fn a_slow_cluster_makes_few_more_calls() {
    let world = z::world().latency(Duration::from_millis(150)).asleep().start().await;
    world.failpoints.slow_cluster(Duration::from_millis(40));
    world.cluster.create_all(&plain(1000)).await;

    world.restart().await;
    world.settle().await;

    assert_all_published(&world, 1000).await;
    assert!(told(&world, "a thousand plain routes from cold, 40 ms a cluster call") <= 40);
}

#[tokio::test(start_paused = true)]
async fn four_hundred_and_fifty_protected_routes_take_at_most_520_calls() {
    let world = z::world().latency(Duration::from_millis(150)).asleep().start().await;
    world.cluster.create_all(&protected(450)).await;

    world.restart().await;
    world.settle().await;
    let done =
        world.holds_within(Duration::from_secs(1200), async |world: &World| world.tasks().await.is_empty()).await;

    assert!(done);
    world.settle().await;
    assert_all_published(&world, 450).await;
    assert!((0..450).all(|n| !world.name(&format!("r{n}.example.com")).is_public()));
    assert!(told(&world, "450 routes with Access and e-mail lists") <= 520);
    world.pass(Duration::from_secs(1800)).await;
    assert_eq!(world.cloudflare.take_requests(), [""; 0], "settled it costs nothing");
}

#[tokio::test(start_paused = true)]
async fn one_route_more_takes_three_calls_and_four_with_access() {
    let world = z::world().latency(Duration::from_millis(150)).asleep().start().await;
    world.cluster.create_all(&plain(50)).await;
    world.restart().await;
    world.settle().await;
    world.pass(Duration::from_secs(3600)).await;
    world.forget();

    world.cluster.apply(RouteManifest::to("one", "one.example.com").manifest()).await;
    world.settle().await;
    assert!(world.name("one.example.com").is_public());
    assert!(told(&world, "one plain route more") <= 3);
    for name in ["first", "two"] {
        world.pass(Duration::from_secs(3600)).await;
        let hostname = format!("{name}.example.com");
        world.cluster.apply(RouteManifest::to(name, &hostname).allowing("user@example.com").manifest()).await;
        world.settle().await;
        assert!(world.name(&hostname).lets_in("user@example.com"));
        assert!(told(&world, &format!("one protected route more ({name})")) <= 4);
    }
}

async fn quota_events(world: &World, reason: &str) -> Vec<String> {
    let events = world.cluster.list("Event").await;
    let told = events.iter().filter(|event| event["reason"] == reason);
    told.map(|event| event["regarding"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn route_501_with_access_is_refused_by_cloudflare_and_others_are_told_without_a_call() {
    let world = z::world().rate_limit(None).asleep().start().await;
    world.cluster.create_all(&protected(500)).await;
    world.restart().await;
    world.settle().await;
    assert_all_published(&world, 500).await;
    assert_eq!(quota_events(&world, "QuotaNearlyReached").await.len(), 1, "who brings the limit near is told, once");
    assert!(world.metrics().await.contains("portolan_cloudflare_quota_left{collection=\"access_apps\""));
    world.forget();

    world.cluster.apply(RouteManifest::to("last", "last.example.com").allowing("user@example.com").manifest()).await;
    world.settle().await;
    let asked = world.cloudflare.take_writes();
    assert_eq!(asked, ["POST access/apps → 400"], "a known limit refuses nothing");
    for name in ["more", "further"] {
        let route = RouteManifest::to(name, &format!("{name}.example.com")).allowing("user@example.com");
        world.cluster.apply(route.manifest()).await;
    }
    world.pass(Duration::from_secs(240)).await;

    assert_eq!(world.cloudflare.take_requests(), [""; 0], "for minutes nobody asks again");
    for name in ["last", "more", "further"] {
        let events = world.cluster.told(&format!("HTTPRoute/default/{name}")).await;
        assert!(events.iter().any(|event| event.starts_with("QuotaExceeded")), "{events:?}");
        assert!(!world.name(&format!("{name}.example.com")).is_published());
    }

    world.pass(Duration::from_secs(600)).await;
    let asked = world.cloudflare.take_writes().len();
    assert!((1..=3).contains(&asked), "one tries for all of them, every five minutes: {asked}");
    world.cluster.delete("HTTPRoute/default/r7").await;
    world.settle().await;
    let published = async |world: &World| {
        let names = ["last", "more", "further"];
        names.iter().any(|name| world.name(&format!("{name}.example.com")).lets_in("user@example.com"))
    };
    assert!(world.holds_within(Duration::from_secs(1200), published).await, "it goes on when there is room");
}
