//! How many calls it takes: a thousand records, ten thousand, one bad one among many, fifty zones.

mod deletions;
mod drift;
mod limits;
mod lookups;
mod lost_tunnel;
mod pacing;
mod publish;
mod zones;

use std::time::Duration;

use portolan_testkit_suites::manifests::{self as m, ACCOUNT, ZONE};
use portolan_testkit_suites::{World, cloudflare_world, tell};
use serde_json::{Value, json};

fn records(count: usize) -> Vec<Value> {
    (0..count).map(|n| m::record(&format!("r{n}"), &format!("10.{}.{}.{}", n >> 16, (n >> 8) & 255, n & 255))).collect()
}

async fn not_ready(world: &World) -> Vec<String> {
    let all = world.cluster.list("DNSRecord").await;
    all.iter().filter(|one| portolan_testkit_suites::cluster::ready_of(one) != "True/Synced").map(m::id).collect()
}

/// A cold start with the objects present; answers the calls that it took.
async fn cold(count: usize, slowness: Duration) -> Vec<String> {
    let world = cloudflare_world().latency(Duration::from_millis(150)).asleep().start().await;
    world.failpoints.slow_cluster(slowness);
    world.cluster.create_all(&records(count)).await;

    world.restart().await;
    world.settle().await;

    assert_eq!(world.cloudflare.marked("dns_records").len(), count);
    assert_eq!(not_ready(&world).await, [""; 0]);
    let requests = world.cloudflare.take_requests();
    tell(&format!("scale: cold start with {count} records, {slowness:?} a cluster call: {} calls", requests.len()));
    if requests.len() <= 30 {
        println!("{requests:#?}");
    }
    requests
}

/// How often the account was read, and how often a zone, by itself or in a listing.
fn looks(requests: &[String]) -> (usize, usize) {
    let of = |what: &str| requests.iter().filter(|request| request.starts_with(what)).count();
    (of("GET accounts/"), of("GET zones"))
}

#[tokio::test(start_paused = true)]
async fn a_thousand_records_from_cold_take_at_most_ten_calls() {
    let requests = cold(1000, Duration::ZERO).await;

    assert!(requests.len() <= 10, "{requests:#?}");
    // A guard's finalizer on the Secret is no news, and a zone's plan is in the listing that it was found in.
    assert_eq!(looks(&requests), (1, 1), "{requests:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_cluster_makes_no_more_calls_of_a_cold_start() {
    let requests = cold(1000, Duration::from_millis(40)).await;

    assert!(requests.len() <= 10, "{requests:#?}");
    assert_eq!(looks(&requests), (1, 1), "{requests:#?}");
}

#[tokio::test(start_paused = true)]
async fn thousands_of_records_from_cold_take_eight_calls_a_thousand() {
    // What differs with the number shows with three thousand; a soak takes ten.
    let thousands = if std::env::var_os("PORTOLAN_SOAK").is_some() { 10 } else { 3 };

    assert!(cold(thousands * 1000, Duration::ZERO).await.len() <= thousands * 8);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_records_made_by_eight_clients_take_at_most_twenty_five_calls() {
    let world = cloudflare_world().latency(Duration::from_millis(150)).start().await;
    let all = records(1000);
    let clients = all.chunks(125).map(async |chunk| {
        for record in chunk {
            world.cluster.try_create(record).await.expect("the manifest is accepted");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });

    futures::future::join_all(clients).await;
    world.settle().await;

    let calls = world.cloudflare.take_requests();
    tell(&format!("scale: a thousand records by eight clients: {} calls", calls.len()));
    assert!(calls.len() <= 25, "{calls:#?}");
    assert_eq!(not_ready(&world).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_bad_record_among_five_hundred_fails_alone() {
    let world = cloudflare_world().asleep().start().await;
    world.cloudflare.plant_foreign(
        "dns_records",
        &json!({
            "type": "CNAME", "name": format!("r250.{ZONE}"), "content": "elsewhere.example.net", "ttl": 1,
        }),
    );
    world.cluster.create_all(&records(500)).await;

    world.restart().await;
    world.settle().await;

    assert_eq!(not_ready(&world).await, ["DNSRecord/apps/r250"]);
    let message = world.cluster.message("DNSRecord/apps/r250").await;
    assert!(message.contains(&format!("r250.{ZONE}")), "{message}");
    assert_eq!(world.cloudflare.marked("dns_records").len(), 499);
    // Whether what is in the way has gone is looked for from time to time.
    let evidence = portolan_testkit_suites::invariants::Evidence {
        late_writes: Vec::new(),
        ..portolan_testkit_suites::invariants::Evidence::of(&world).await
    };
    assert_eq!(portolan_testkit_suites::invariants::check(&evidence), []);
}

#[tokio::test(start_paused = true)]
async fn between_drift_passes_a_settled_world_makes_no_call() {
    let world = cloudflare_world().start().await;
    world.cluster.create_all(&records(100)).await;
    world.cluster.apply(&m::network("corp")).await;
    world.cluster.apply(&m::route("office", "10.1.0.0/16")).await;
    world.settle().await;
    world.forget();

    world.pass(Duration::from_secs(1800)).await;

    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
    assert_eq!(world.cluster_writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_drift_pass_over_fifty_zones_takes_at_most_sixty_calls() {
    let world = cloudflare_world().asleep().start().await;
    let mut all = Vec::new();
    for zone in 0..50 {
        let name = format!("zone{zone}.example");
        world.cloudflare.simulator.add_zone(&name, ACCOUNT, "enterprise").expect("the zone is new");
        world.cluster.apply(&m::domain(&name)).await;
        all.extend((0..100).map(|n| {
            let spec = json!({ "name": format!("r{n}.{name}"), "type": "A", "content": "192.0.2.1", "cloudflare": {} });
            m::object("DNSRecord", &format!("z{zone}-r{n}"), spec)
        }));
    }
    world.cluster.create_all(&all).await;
    world.restart().await;
    world.settle().await;
    assert_eq!(world.cloudflare.marked("dns_records").len(), 5000);
    world.forget();

    world.drift_pass().await;
    world.settle().await;

    let calls = world.cloudflare.take_requests().len();
    tell(&format!("scale: drift pass over 50 zones and 5,000 records: {calls} calls"));
    assert!(calls <= 60, "{calls}");
    assert_eq!(world.cluster_writes(), [""; 0]);
}
