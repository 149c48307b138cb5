//! How many calls changes take that come one after the other.

use std::time::Duration;

use portolan_testkit_suites::manifests::{self as m};
use portolan_testkit_suites::zerotrust::{self as z, RouteManifest, TUNNEL};
use portolan_testkit_suites::{World, cloudflare_world, tell};
use serde_json::Value;

const LATENCY: Duration = Duration::from_millis(150);

/// Makes objects evenly over so long.
async fn over(world: &World, time: Duration, objects: &[Value]) {
    let start = tokio::time::Instant::now();
    for (n, object) in (0_u32..).zip(objects) {
        let share = time * n / u32::try_from(objects.len()).expect("few objects");
        tokio::time::sleep_until(start + share).await;
        world.cluster.try_create(object).await.expect("the manifest is accepted");
    }
}

fn told(world: &World, what: &str) -> usize {
    let calls = world.cloudflare.take_requests();
    tell(&format!("scale: {what}: {} calls", calls.len()));
    if calls.len() <= 100 {
        println!("{calls:#?}");
    }
    calls.len()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_records_that_come_within_twenty_seconds_take_at_most_forty_calls() {
    let world = cloudflare_world().latency(LATENCY).start().await;
    let address = |n: usize| format!("10.0.{}.{}", n >> 8, n & 255);
    let records: Vec<Value> = (0..1000).map(|n| m::record(&format!("r{n}"), &address(n))).collect();

    over(&world, Duration::from_secs(20), &records).await;
    world.settle().await;

    assert_eq!(world.cloudflare.marked("dns_records").len(), 1000);
    assert!(told(&world, "a thousand records within 20 s") <= 40);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_plain_routes_that_come_within_twenty_seconds_take_at_most_eighty_calls() {
    let world = z::world().latency(LATENCY).start().await;
    let routes: Vec<Value> =
        (0..1000).map(|n| RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com")).into()).collect();

    over(&world, Duration::from_secs(20), &routes).await;
    world.settle().await;

    assert_eq!(world.cloudflare.all("dns_records").len(), 1000);
    assert_eq!(z::config(&world, TUNNEL)["ingress"].as_array().map_or(0, Vec::len), 1003);
    assert!(told(&world, "a thousand plain routes within 20 s") <= 80);
}

#[tokio::test(start_paused = true)]
async fn a_single_change_goes_out_at_once_when_nothing_was_written_for_a_while() {
    let world = cloudflare_world().latency(LATENCY).start().await;
    for name in ["a", "b"] {
        world.cluster.apply(&m::record(name, "192.0.2.1")).await;
        world.settle().await;
        let began = tokio::time::Instant::now();

        world.cluster.apply(&m::record(name, "192.0.2.2")).await;

        let written = async |world: &World| {
            world.cloudflare.all("dns_records").iter().any(|one| {
                one["name"].as_str().is_some_and(|full| full.starts_with(&format!("{name}.")))
                    && one["content"] == "192.0.2.2"
            })
        };
        assert!(world.holds_within(Duration::from_secs(5), written).await);
        // One request, and nothing before it.
        let took = began.elapsed();
        tell(&format!("scale: a single change of a record took {took:?} at {LATENCY:?} a call"));
        assert!(took < LATENCY * 2, "{took:?}");
    }
}
