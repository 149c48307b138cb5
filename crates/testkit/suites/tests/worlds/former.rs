//! What the release before the present one left is taken over without a write to Cloudflare, but for what its tasks in flight had
//! still to do; and that release would find its way again in what stands then.

use std::collections::BTreeSet;
use std::time::Duration;

use portolan_testkit_suites::World;
use portolan_testkit_suites::cloudflare::shown as shown_request;
use portolan_testkit_suites::former::FormerWorld;
use portolan_testkit_suites::jobs::{CLOUDFLARE, ZEROTRUST};
use portolan_testkit_suites::manifests::id;
use portolan_testkit_suites::process::Processes;
use portolan_testkit_suites::tell;
use portolan_testkit_suites::zerotrust::{Roles, RouteWorld as _, TUNNEL};
use serde_json::{Value, json};

/// Longer than any lease of a process that was killed, and than whatever is tried again.
const LONG: Duration = Duration::from_secs(600);

/// Starts the operator and lets it come to rest.
async fn take_over(former: &FormerWorld) {
    let world = &former.world;
    world.restart().await;
    world.settle().await;
    world.pass(LONG).await;
    world.settle().await;
}

fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// What users and other controllers see of an object of ours.
fn shown(object: &Value) -> Value {
    json!({ "finalizers": object["metadata"]["finalizers"], "status": object["status"], "going": is_going(object) })
}

/// Finalizers and statuses of these kinds are what the former release wrote.
async fn assert_shown_as_before(former: &FormerWorld, kinds: &[&str]) {
    let of_kinds = |object: &&Value| kinds.contains(&object["kind"].as_str().unwrap_or_default());
    for object in former.objects.iter().filter(of_kinds) {
        let now = former.world.cluster.get(&id(object)).await.unwrap_or_default();
        assert_eq!(shown(&now), shown(object), "{}", id(object));
    }
}

/// Routes have the finalizers that they had, and those that were going still are.
async fn assert_going_as_before(former: &FormerWorld) {
    for route in former.objects.iter().filter(|object| object["kind"] == "HTTPRoute") {
        let now = former.world.cluster.get(&id(route)).await.unwrap_or_default();
        assert_eq!(now["metadata"]["finalizers"], route["metadata"]["finalizers"], "{}", id(route));
        assert_eq!(is_going(&now), is_going(route), "{}", id(route));
    }
}

/// What was written to Cloudflare, each with the name that it was for: of a tunnel's document, the rules that came and went.
fn written(world: &World) -> Vec<String> {
    let mut rules = hostnames(&world.cloudflare.seeded()["configurations"][TUNNEL]);
    let requests = world.cloudflare.simulator.requests();
    let writes = requests.iter().filter(|request| request.is_write()).map(|request| {
        if !request.path.ends_with("/configurations") {
            let name = ["domain", "name"].iter().find_map(|field| request.body[*field].as_str());
            return format!("{} {}", shown_request(request), name.unwrap_or_default());
        }
        let now = hostnames(&request.body);
        let changed: Vec<String> = now.symmetric_difference(&rules).cloned().collect();
        rules = now;
        format!("PUT rules {}", changed.join(" "))
    });
    writes.collect()
}

fn hostnames(document: &Value) -> BTreeSet<String> {
    let rules = document["config"]["ingress"].as_array().into_iter().flatten();
    rules.filter_map(|rule| rule["hostname"].as_str().map(str::to_owned)).collect()
}

/// Names that ledgers hold.
fn held(objects: &[Value]) -> Vec<String> {
    let named = |map: &&Value| map["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("portolan-held-"));
    let ledgers = objects.iter().filter(named).filter_map(|map| map["data"]["ledger"].as_str());
    let ledgers = ledgers.filter_map(|ledger| serde_json::from_str::<Value>(ledger).ok());
    let mut all: Vec<String> =
        ledgers.flat_map(|one| one["held"].as_object().cloned().unwrap_or_default()).map(|(name, _)| name).collect();
    all.sort();
    all
}

/// What the former release held is held, and nothing else.
async fn assert_held_as_before(former: &FormerWorld) {
    let now = held(&former.world.cluster.list("ConfigMap").await);
    assert_eq!(now, held(&former.objects));
    assert_eq!(now.len(), 24, "twelve records and twelve routes");
}

async fn assert_finds_its_way_back(former: &FormerWorld) {
    former.world.stop().await;
    let lost = former.lost_to_the_former().await;
    assert!(lost.is_empty(), "the former release would miss: {lost:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_the_former_release_left_of_the_cloudflare_kinds_is_taken_over_and_handed_back_without_a_write() {
    let former = FormerWorld::of(&CLOUDFLARE, Processes::one(CLOUDFLARE.definition.sheet.name)).await;
    let before = former.world.cloudflare.simulator.state();

    take_over(&former).await;

    assert_eq!(former.world.writes(), [""; 0]);
    assert_eq!(former.world.cloudflare.simulator.state(), before);
    let kinds =
        ["DNSRecord", "VirtualNetwork", "NetworkRoute", "CloudflareDomain", "CloudflareCredentials", "ClusterTunnel"];
    assert_shown_as_before(&former, &kinds).await;
    assert_held_as_before(&former).await;
    assert_eq!(former.world.late_writes().await, [""; 0], "nor because of drift");
    tell(&format!("former: {} objects of the cloudflare job and beside it taken over, no write", former.objects.len()));
    assert_finds_its_way_back(&former).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_former_release_left_of_published_routes_is_taken_over_and_its_tasks_in_flight_are_ended_and_nothing_else_is_written()
 {
    let former = FormerWorld::of(&ZEROTRUST, Roles::apart(1)).await;
    let world = &former.world;

    take_over(&former).await;

    assert_eq!(
        written(world),
        [
            "POST access/apps pending.example.com",
            "PUT rules pending.example.com",
            "POST dns_records pending.example.com",
            "POST access/apps claimed.example.com",
            "PUT rules claimed.example.com",
            "POST dns_records claimed.example.com",
        ],
        "the claim is free when its worker's lease has ended"
    );
    for name in ["claimed.example.com", "pending.example.com"] {
        assert!(world.name(name).lets_in("ann@example.com") && !world.name(name).is_public(), "{name}");
    }
    assert_eq!(world.tasks().await, Vec::<Value>::new(), "no task is left");
    assert_eq!(world.cluster.ready("CloudflareZeroTrustTenant/default/prod").await, "True/ReconcileSuccess");
    assert_going_as_before(&former).await;
    assert_held_as_before(&former).await;
    assert_eq!(world.late_writes().await, [""; 0], "nor because of drift");
    tell(&format!("former: {} objects of the zerotrust job and beside it taken over", former.objects.len()));
    assert_finds_its_way_back(&former).await;
}
