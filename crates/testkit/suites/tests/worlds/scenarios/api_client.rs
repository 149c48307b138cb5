//! Scenarios 153–159: the client, seen through whole worlds.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};
use portolan_testkit_suites::cloudflare_world;
use portolan_testkit_suites::manifests::{self as m, ACCOUNT, ZONE};
use serde_json::Value;

#[tokio::test(start_paused = true)]
async fn scenario_153_three_hundred_objects_from_cold_stay_within_the_limit() {
    let world = cloudflare_world().asleep().start().await;
    let routes: Vec<Value> =
        (0..300).map(|n| m::route(&format!("r{n}"), &format!("10.{}.{}.0/24", n / 256, n % 256))).collect();
    world.cluster.create_all(&routes).await;

    world.restart().await;
    world.pass(Duration::from_secs(600)).await;
    world.settle().await;

    let requests = world.cloudflare.simulator.take_requests();
    assert!(requests.iter().all(|request| request.status != 429), "no request was one too many");
    let all = world.cluster.list("NetworkRoute").await;
    assert!(all.iter().all(|one| portolan_testkit_suites::cluster::ready_of(one) == "True/Synced"));
    assert!(requests.len() <= 320, "{} calls for 300 routes", requests.len());
}

#[tokio::test(start_paused = true)]
async fn scenario_154_after_a_refusal_nobody_calls_before_the_time_it_named() {
    let world = cloudflare_world().start().await;
    world.cloudflare.fault(Fault::on("", "", Effect::status(429)).times(1).retry_after(Duration::from_secs(90)));

    for n in 0..20 {
        world.cluster.apply(&m::record(&format!("r{n}"), "192.0.2.1")).await;
    }
    world.cluster.apply(&m::network("corp")).await;
    world.pass(Duration::from_secs(85)).await;

    assert_eq!(world.cloudflare.simulator.request_count(), 1, "{:?}", world.cloudflare.take_requests());
    world.until_ready("VirtualNetwork/corp", "True/Synced").await;
    world.until_ready("DNSRecord/apps/r7", "True/Synced").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_157_a_creation_that_timed_out_is_looked_for_first() {
    for kind in ["record", "network", "route"] {
        let world = cloudflare_world().start().await;
        world.cloudflare.fault(Fault::on("POST", "", Effect::Timeout).after_write().times(1));
        let manifest = match kind {
            "record" => m::record("www", "192.0.2.1"),
            "network" => m::network("corp"),
            _ => m::route("office", "10.1.0.0/16"),
        };

        world.cluster.apply(&manifest).await;
        world.until_ready(&m::id(&manifest), "True/Synced").await;
        world.settle().await;

        let posts = world.writes().iter().filter(|write| write.starts_with("POST")).count();
        assert_eq!(posts, 1, "{kind}: one creation");
        portolan_testkit_suites::invariants::assert_all(&world, kind).await;
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_158_what_is_on_the_last_page_is_found() {
    let world = cloudflare_world().asleep().start().await;
    for n in 0..120 {
        world.cloudflare.simulator.add_zone(&format!("z{n}.example"), ACCOUNT, "free").expect("the zone is new");
    }
    world.cluster.apply(&m::domain("z119.example")).await;
    world.cluster.apply(&m::domain("z0.example")).await;

    world.restart().await;
    world.settle().await;

    assert_eq!(world.cluster.ready("CloudflareDomain/z119-example").await, "True/Verified");
    assert_eq!(world.cluster.ready("CloudflareDomain/z0-example").await, "True/Verified");
}

#[tokio::test(start_paused = true)]
async fn scenario_159_an_hour_of_a_hundred_settled_objects_costs_a_few_calls_a_minute() {
    let world = cloudflare_world().drift(portolan_cloudflare::Drift::Every(Duration::from_secs(60))).start().await;
    let records: Vec<Value> = (0..90).map(|n| m::record(&format!("r{n}"), "192.0.2.1")).collect();
    world.cluster.create_all(&records).await;
    for n in 0..10 {
        world.cluster.apply(&m::route(&format!("r{n}"), &format!("10.{n}.0.0/16"))).await;
    }
    world.settle().await;
    world.forget();

    world.pass(Duration::from_secs(3600)).await;

    let requests = world.cloudflare.take_requests();
    println!("a settled hour of a hundred objects: {} calls", requests.len());
    assert!(requests.iter().all(|text| text.starts_with("GET")), "{requests:?}");
    // The older operator asked for each object by itself, every ten minutes.
    assert!(requests.len() <= 600 / 3, "{}", requests.len());
    assert!(
        world
            .cloudflare
            .all("dns_records")
            .iter()
            .all(|one| one["name"].as_str().is_some_and(|name| name.ends_with(ZONE)))
    );
    assert_eq!(world.cluster_writes(), [""; 0]);
}
