//! Scenarios 13–20: domains and zones.

use std::time::Duration;

use portolan_testkit_suites::manifests::{self as m, ACCOUNT, ZONE_ID, with};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::json;

fn named(object: &str, name: &str) -> serde_json::Value {
    m::object("DNSRecord", object, json!({ "name": name, "type": "A", "content": "192.0.2.1", "cloudflare": {} }))
}

async fn world_with_zone(zone: &str) -> (World, String) {
    let world = cloudflare_world().start().await;
    let id = world.cloudflare.simulator.add_zone(zone, ACCOUNT, "free").expect("the zone is new");
    world.cluster.apply(&m::domain(zone)).await;
    world.until_ready(&m::id(&m::domain(zone)), "True/Verified").await;
    world.settle().await;
    (world, id)
}

async fn zone_of(world: &World, id: &str) -> String {
    let object = world.cluster.get(id).await.expect("it exists");
    object["status"]["zoneId"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn scenario_13_the_longest_domain_wins_on_a_label_boundary() {
    let (world, eu) = world_with_zone("eu.example.com").await;

    world.cluster.apply(&named("in-eu", "a.eu.example.com")).await;
    world.cluster.apply(&named("not-in-eu", "xeu.example.com")).await;
    world.settle().await;

    assert_eq!(zone_of(&world, "DNSRecord/apps/in-eu").await, eu);
    assert_eq!(zone_of(&world, "DNSRecord/apps/not-in-eu").await, ZONE_ID);
}

#[tokio::test(start_paused = true)]
async fn scenario_14_case_dots_and_scripts_of_names_do_not_matter() {
    let (world, books) = world_with_zone("xn--bcher-kva.example").await;

    world.cluster.apply(&named("shouted", "WWW.Example.COM.")).await;
    world.cluster.apply(&named("books", "www.bücher.example")).await;
    world.settle().await;

    assert_eq!(zone_of(&world, "DNSRecord/apps/shouted").await, ZONE_ID);
    assert_eq!(zone_of(&world, "DNSRecord/apps/books").await, books);
    let mut names: Vec<_> = world.cloudflare.marked("dns_records").iter().map(|one| one["name"].clone()).collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, ["www.example.com", "www.xn--bcher-kva.example"]);
    world.forget();
    world.drift_pass().await;
    world.settle().await;
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn scenario_15_the_default_domain_takes_no_foreign_names() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&with(m::domain("example.com"), "isDefault", json!(true))).await;
    world.settle().await;

    world.cluster.apply(&named("elsewhere", "www.example.net")).await;
    world.settle().await;

    assert!(world.cluster.ready("DNSRecord/apps/elsewhere").await.starts_with("False/"));
    let message = world.cluster.message("DNSRecord/apps/elsewhere").await;
    assert!(message.contains("www.example.net") && message.contains("example.com"), "{message}");
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn scenario_20_records_wait_for_their_zone_and_follow_it_at_once() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::domain("example.org")).await;
    world.cluster.apply(&named("early", "www.example.org")).await;
    world.settle().await;
    assert!(world.cluster.ready("CloudflareDomain/example-org").await.starts_with("False/"));
    assert!(world.cluster.ready("DNSRecord/apps/early").await.starts_with("False/"));

    world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
    world.until_ready("CloudflareDomain/example-org", "True/Verified").await;
    world.settle_within(Duration::from_secs(20)).await;

    assert_eq!(world.cluster.ready("DNSRecord/apps/early").await, "True/Synced");
}
