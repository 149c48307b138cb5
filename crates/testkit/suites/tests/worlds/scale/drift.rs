//! How soon drift is put right, and which part of the budget looking for it takes: small accounts, and ones with more
//! zones than a minute's share can list.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};
use portolan_engine::Drift;
use portolan_testkit_suites::manifests::{self as m, ACCOUNT};
use portolan_testkit_suites::zerotrust::{self as z, RouteManifest, TUNNEL};
use portolan_testkit_suites::{World, cloudflare_world, tell};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(90);

fn content(world: &World, name: &str) -> Value {
    world.cloudflare.one("dns_records", |record| record["name"] == name)["content"].clone()
}

/// Somebody changes a record at the dashboard.
fn edit_record(world: &World, name: &str) {
    let record = world.cloudflare.one("dns_records", |record| record["name"] == name);
    world.cloudflare.edit("dns_records", record["id"].as_str().unwrap_or_default(), |record| {
        record["content"] = json!("203.0.113.99");
    });
}

/// Zones with a record each.
async fn with_zones(world: &World, count: usize) {
    let mut records = Vec::new();
    for number in 0..count {
        let name = format!("zone{number}.example");
        world.cloudflare.simulator.add_zone(&name, ACCOUNT, "enterprise").expect("the zone is new");
        world.cluster.apply(&m::domain(&name)).await;
        let spec = json!({ "name": format!("r.{name}"), "type": "A", "content": "192.0.2.1", "cloudflare": {} });
        records.push(m::object("DNSRecord", &format!("z{number}"), spec));
    }
    world.cluster.create_all(&records).await;
    world.restart().await;
    world.settle().await;
    assert_eq!(world.cloudflare.marked("dns_records").len(), count);
}

/// Calls of each of so many minutes.
async fn minutes(world: &World, count: usize) -> Vec<usize> {
    let mut calls = Vec::new();
    world.forget();
    for _ in 0..count {
        world.pass(MINUTE).await;
        calls.push(world.cloudflare.take_requests().len());
    }
    calls
}

/// The most calls of any five minutes.
fn in_five_minutes(calls: &[usize]) -> usize {
    calls.windows(5).map(|window| window.iter().sum()).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn a_record_that_somebody_edits_is_put_right_within_ninety_seconds() {
    let world = cloudflare_world().drift(Drift::default()).start().await;
    let records: Vec<Value> = (0..20).map(|n| m::record(&format!("r{n}"), "192.0.2.1")).collect();
    world.cluster.create_all(&records).await;
    world.settle().await;
    let name = world.cloudflare.all("dns_records")[7]["name"].as_str().unwrap_or_default().to_owned();

    edit_record(&world, &name);

    let right = async |world: &World| content(world, &name) == "192.0.2.1";
    assert!(!right(&world).await);
    assert!(world.holds_within(SOON, right).await);
}

#[tokio::test(start_paused = true)]
async fn a_route_whose_record_or_application_goes_is_put_right_within_ninety_seconds() {
    let world = z::world().drift(Drift::default()).start().await;
    let route = RouteManifest::to("app", "app.example.com").with("access.enabled", "true");
    world.cluster.apply(&route.with("access.allowEmails", "owner@example.com").into()).await;
    world.settle().await;
    for collection in ["dns_records", "access_apps"] {
        let ours = |world: &World| world.cloudflare.all(collection).len();
        assert_eq!(ours(&world), 1, "{collection}");
        let id = world.cloudflare.all(collection)[0]["id"].as_str().unwrap_or_default().to_owned();

        world.cloudflare.remove(collection, &id);

        assert!(world.holds_within(SOON, async |world| ours(world) == 1).await, "{collection}");
        world.settle().await;
    }
    assert_eq!(z::rules(&world, TUNNEL, "app.example.com").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fifty_zones_are_compared_every_minute_with_less_than_thirty_percent_of_the_budget() {
    let world = cloudflare_world().drift(Drift::default()).asleep().start().await;
    with_zones(&world, 50).await;

    let calls = minutes(&world, 10).await;

    tell(&format!("scale: drift of 50 zones, calls a minute: {calls:?}"));
    assert!(in_five_minutes(&calls) <= 360, "{calls:?}");
    assert!(calls.iter().sum::<usize>() >= 9 * 50, "{calls:?}");
    assert_eq!(world.cluster_writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn more_zones_than_fit_take_turns_within_thirty_percent_and_a_changed_one_comes_first() {
    // 30 % of 400 are 120, so that 150 zones are too many for a window; with the usual limit more than 360 would be.
    let limit = Some((400, Duration::from_secs(300)));
    let world = cloudflare_world().rate_limit(limit).drift(Drift::default()).asleep().start().await;
    with_zones(&world, 150).await;

    let calls = minutes(&world, 15).await;

    tell(&format!("scale: drift of 150 zones with a budget of 400, calls a minute: {calls:?}"));
    assert!(in_five_minutes(&calls) <= 120, "{calls:?}");
    // In its turn a zone is compared once in about eight minutes.
    for zone in [3, 77, 149] {
        let name = format!("r.zone{zone}.example");
        edit_record(&world, &name);
        let right = async |world: &World| content(world, &name) == "192.0.2.1";
        assert!(world.holds_within(Duration::from_secs(130), right).await, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_right_to_the_audit_log_every_zone_has_its_turn() {
    let limit = Some((400, Duration::from_secs(300)));
    let world = cloudflare_world().rate_limit(limit).drift(Drift::default()).asleep().start().await;
    world.cloudflare.fault(Fault::on("GET", "/accounts/{account_id}/audit_logs", Effect::status(403)));
    with_zones(&world, 60).await;

    edit_record(&world, "r.zone59.example");

    let right = async |world: &World| content(world, "r.zone59.example") == "192.0.2.1";
    assert!(world.holds_within(MINUTE * 8, right).await);
}
