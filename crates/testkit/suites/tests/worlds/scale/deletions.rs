//! Many deletions at once are held until a person lets them go.

use std::time::Duration;

use portolan_testkit_suites::cluster::condition;
use portolan_testkit_suites::manifests::{self as m, ZONE_ID};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::Value;

const COUNT: usize = 200;
const DOMAIN: &str = "CloudflareDomain/example-com";

async fn world_with_records() -> World {
    let world = cloudflare_world().start().await;
    let records: Vec<Value> = (0..COUNT).map(|n| m::record(&format!("r{n}"), "192.0.2.1")).collect();
    world.cluster.create_all(&records).await;
    world.settle().await;
    assert_eq!(world.cloudflare.marked("dns_records").len(), COUNT);
    world.forget();
    world
}

async fn stalled(world: &World) -> (String, String) {
    let domain = world.cluster.get(DOMAIN).await.expect("the domain exists");
    let stalled = condition(&domain, "Stalled").cloned().unwrap_or_default();
    let text = |field: &str| stalled[field].as_str().unwrap_or_default().to_owned();
    (format!("{}/{}", text("status"), text("reason")), text("message"))
}

/// The digest that the condition asks for.
fn digest(message: &str) -> String {
    let (_, rest) = message.split_once("release-deletions: \"").expect("the message names the annotation");
    rest.split('"').next().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_with_two_hundred_records_is_held_listed_and_goes_after_approval() {
    let world = world_with_records().await;

    world.cluster.delete("Namespace/apps").await;
    world.settle().await;

    let (state, message) = stalled(&world).await;
    assert_eq!(state, "True/DeletionBudgetExceeded", "{message}");
    assert!(message.contains("200 deletions") && message.contains("A r0.example.com"), "{message}");
    let held = world.cloudflare.marked("dns_records").len();
    assert_eq!(held, COUNT, "all or nothing goes");

    world.restart().await;
    world.settle().await;
    world.pass(Duration::from_secs(900)).await;
    world.settle().await;
    assert_eq!(
        stalled(&world).await.0,
        "True/DeletionBudgetExceeded",
        "a restart and a quarter of an hour change nothing"
    );
    assert_eq!(world.cloudflare.marked("dns_records").len(), COUNT);

    world.cluster.annotate(DOMAIN, "portolan.dev/release-deletions", "0000beef").await;
    world.settle().await;
    assert_eq!(world.cloudflare.marked("dns_records").len(), COUNT, "another digest releases nothing");

    let digest = digest(&stalled(&world).await.1);
    world.cluster.annotate(DOMAIN, "portolan.dev/release-deletions", &digest).await;
    world.settle().await;
    assert_eq!(world.cloudflare.marked("dns_records").len(), 0);
    assert!(world.cluster.list("DNSRecord").await.is_empty());
    let gone = async |world: &World| world.cluster.get("Namespace/apps").await.is_none();
    assert!(world.holds_within(Duration::from_secs(600), gone).await, "the namespace goes at last");
    assert_ne!(stalled(&world).await.0, "True/DeletionBudgetExceeded");
}

#[tokio::test(start_paused = true)]
async fn what_is_released_on_the_ledger_itself_goes_at_once() {
    let world = world_with_records().await;
    world.cluster.delete("Namespace/apps").await;
    world.settle().await;
    let (_, message) = stalled(&world).await;
    let ledgers = world.cluster.list("ConfigMap").await.into_iter();
    let names: Vec<String> = ledgers.filter_map(|map| Some(map["metadata"]["name"].as_str()?.to_owned())).collect();
    let ledger = names.iter().find(|name| name.starts_with("portolan-held-")).expect("what is held is listed");

    let ledger = format!("ConfigMap/{}/{ledger}", world.job().operator_namespace());
    world.cluster.annotate(&ledger, "portolan.dev/release-deletions", &digest(&message)).await;

    world.until_by_watch(async |world: &World| world.cloudflare.marked("dns_records").is_empty()).await;
    world.settle().await;
    assert_ne!(stalled(&world).await.0, "True/DeletionBudgetExceeded");
}

#[tokio::test(start_paused = true)]
async fn a_few_deletions_go_at_once() {
    let world = world_with_records().await;

    for n in 0..10 {
        world.cluster.delete(&format!("DNSRecord/apps/r{n}")).await;
    }
    world.settle().await;

    assert_eq!(world.cloudflare.marked("dns_records").len(), COUNT - 10);
    assert!(world.cloudflare.simulator.objects("dns_records", ZONE_ID).len() == COUNT - 10);
}
