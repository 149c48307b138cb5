//! Scenarios 22–38, as far as the lifecycle suite does not hold them for every kind.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};
use portolan_testkit_suites::cluster::condition;
use portolan_testkit_suites::manifests::{self as m, CANARY, ZONE, ZONE_ID, with};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

const WWW: &str = "DNSRecord/apps/www";

async fn settled() -> World {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.until_ready(WWW, "True/Synced").await;
    world.settle().await;
    world.forget();
    world
}

#[tokio::test(start_paused = true)]
async fn scenario_23_a_synced_object_is_quiet() {
    let world = settled().await;
    let version = |object: Option<Value>| object.expect("it exists")["metadata"]["resourceVersion"].clone();
    let before = version(world.cluster.get(WWW).await);

    for _ in 0..3 {
        world.pass(Duration::from_secs(600)).await;
        world.drift_pass().await;
    }
    world.settle().await;

    assert_eq!(version(world.cluster.get(WWW).await), before);
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn scenario_33_what_never_was_is_finalised_without_a_call() {
    let world = cloudflare_world().start().await;
    world.cloudflare.simulator.revoke_token(CANARY);
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.settle().await;
    // The credentials learn that they are refused.
    world.cluster.annotate("CloudflareCredentials/main", "portolan.dev/reconcile-at", "now").await;
    world.settle().await;
    world.forget();

    world.cluster.delete(WWW).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "gone");
    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn scenario_34_a_refused_value_is_not_tried_again_and_a_busy_server_is_ever_more_slowly() {
    let world = cloudflare_world().start().await;
    let refusal = Effect::Status { status: 400, code: 9005, message: "Content for A record is invalid.".to_owned() };
    world.cloudflare.fault(Fault::on("POST", "dns_records", refusal));
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.settle().await;
    assert!(world.cluster.ready(WWW).await.starts_with("False/"));
    world.forget();
    world.pass(Duration::from_secs(3600)).await;
    assert_eq!(world.cloudflare.take_writes(), [""; 0], "not before the spec changes");

    world.cloudflare.simulator.clear_faults();
    world.cloudflare.fault(Fault::on("POST", "dns_records", Effect::status(503)));
    world.cluster.apply(&m::record("www", "192.0.2.2")).await;
    world.pass(Duration::from_secs(1200)).await;
    let tries: Vec<i64> =
        world.cloudflare.simulator.take_requests().iter().filter(|one| one.is_write()).map(|one| one.at_ms).collect();
    let gaps: Vec<i64> = tries.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).filter(|gap| *gap > 5).collect();
    assert!(gaps.len() >= 4 && (8..=15).contains(&gaps[0]), "the first wait is about ten seconds: {gaps:?}");
    let growing = gaps.windows(2).all(|pair| pair[1] > pair[0] || pair[1] >= 265);
    assert!(growing && gaps.iter().all(|gap| *gap <= 310), "up to five minutes, give or take a tenth: {gaps:?}");

    world.cloudflare.simulator.clear_faults();
    world.until_ready(WWW, "True/Synced").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_35_labels_cost_nothing_and_times_move_with_the_status_alone() {
    let world = settled().await;
    let time = |object: &Value| condition(object, "Ready").expect("it is set")["lastTransitionTime"].clone();
    let before = world.cluster.get(WWW).await.expect("it exists");
    world.pass(Duration::from_secs(60)).await;

    world.cluster.patch(WWW, &json!({ "metadata": { "labels": { "team": "shop" } } })).await;
    world.settle().await;
    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
    assert_eq!(world.cluster_writes(), [""; 0]);

    world.cluster.apply(&m::record("www", "192.0.2.2")).await;
    world.settle().await;
    let after = world.cluster.get(WWW).await.expect("it exists");
    assert_eq!(after["status"]["observedGeneration"], after["metadata"]["generation"]);
    assert_ne!(after["metadata"]["generation"], before["metadata"]["generation"]);
    assert_eq!(time(&after), time(&before));
}

#[tokio::test(start_paused = true)]
async fn scenario_36_other_writers_cause_no_conflicts() {
    let world = cloudflare_world().latency(Duration::from_millis(50)).start().await;
    let records: Vec<Value> = (0..200).map(|n| m::record(&format!("r{n}"), "192.0.2.1")).collect();
    world.cluster.create_all(&records).await;

    for round in 0..5 {
        for record in &records {
            world.cluster.annotate(&m::id(record), "example.net/beat", &round.to_string()).await;
        }
        world.pass(Duration::from_millis(100)).await;
    }
    world.settle().await;

    for record in &records {
        assert_eq!(world.cluster.ready(&m::id(record)).await, "True/Synced");
    }
    let events = world.cluster.list("Event").await;
    let modified = events.iter().filter(|event| event.to_string().contains("has been modified")).count();
    assert_eq!(modified, 0);
}

#[tokio::test(start_paused = true)]
async fn scenario_38_what_the_older_operator_made_is_kept() {
    let world = cloudflare_world().asleep().start().await;
    let remote = world.cloudflare.plant(
        "dns_records",
        &json!({
            "type": "A", "name": format!("www.{ZONE}"), "content": "192.0.2.1", "ttl": 1, "proxied": false,
            "comment": "[managed:DNSRecord/apps/www] web",
        }),
    );
    let mut record = with(m::record("www", "192.0.2.1"), "comment", json!("web"));
    record["metadata"]["finalizers"] = json!(["dnsrecord.networking.cloudflare-operator.io/finalizer"]);
    world.cluster.apply(&record).await;
    let status = json!({ "recordId": remote, "zoneId": ZONE_ID, "fqdn": format!("www.{ZONE}"), "state": "Active" });
    world.cluster.patch_status(WWW, &json!({ "status": status })).await;

    world.restart().await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "True/Synced");
    let object = world.cluster.get(WWW).await.expect("it exists");
    assert_eq!(object["status"]["recordId"], json!(remote));
    assert_eq!(object["metadata"]["finalizers"].as_array().map(Vec::len), Some(1));
    let posts: Vec<String> =
        world.writes().into_iter().filter(|write| write.contains("posts") || write.contains("deletes")).collect();
    assert_eq!(posts, [""; 0], "nothing is made or deleted");
}

#[tokio::test(start_paused = true)]
async fn scenario_37_a_wait_is_neither_reset_nor_stretched_by_what_others_do() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::domain("example.org")).await;
    world.settle().await;
    world.forget();

    for n in 0..240 {
        world.cluster.apply(&m::record(&format!("r{}", n % 20), &format!("192.0.2.{}", n % 200))).await;
        world.pass(Duration::from_secs(1)).await;
    }

    let requests = world.cloudflare.simulator.take_requests();
    let polls: Vec<i64> = requests.iter().filter(|one| one.route() == "/zones").map(|one| one.at_ms / 1000).collect();
    let gaps: Vec<i64> = polls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 6 && gaps.iter().all(|gap| (26..=34).contains(gap)), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn scenario_166_a_stop_during_heavy_work_leaves_nothing_half_done() {
    let world = cloudflare_world().latency(Duration::from_secs(1)).start().await;
    let records: Vec<Value> = (0..300).map(|n| m::record(&format!("r{n}"), "192.0.2.1")).collect();
    world.cluster.create_all(&records).await;
    world.pass(Duration::from_millis(1500)).await;

    world.stop().await;
    let made = world.cloudflare.marked("dns_records").len();
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(world.cloudflare.marked("dns_records").len(), made, "a stopped operator does nothing more");

    world.restart().await;
    world.settle().await;
    assert_eq!(world.cloudflare.marked("dns_records").len(), 300);
    portolan_testkit_suites::invariants::assert_all(&world, "after a stop").await;
}
