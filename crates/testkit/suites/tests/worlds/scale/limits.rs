//! What it costs to be refused: zones that are full, redirects that a plan does not grant, tokens that change, long pauses.

use std::collections::BTreeSet;
use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault, Grant};
use portolan_testkit_suites::cluster::ready_of;
use portolan_testkit_suites::manifests::{self as m, ACCOUNT, OPERATOR_NAMESPACE};
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::{self as z, RouteManifest};
use portolan_testkit_suites::{World, cloudflare_world, tell};
use serde_json::{Value, json};

const SMALL: &str = "small.example";

/// Records in a zone of the free plan, which may have 200.
fn records(count: usize) -> Vec<Value> {
    let record = |n: usize| {
        let spec = json!({ "name": format!("r{n}.{SMALL}"), "type": "A", "content": "192.0.2.1", "cloudflare": {} });
        m::object("DNSRecord", &format!("r{n}"), spec)
    };
    (0..count).map(record).collect()
}

async fn in_a_small_zone() -> World {
    let world = cloudflare_world().asleep().start().await;
    world.cloudflare.simulator.add_zone(SMALL, ACCOUNT, "free").expect("the zone is new");
    world.cluster.apply(&m::domain(SMALL)).await;
    world
}

async fn with_reason(world: &World, reason: &str) -> usize {
    world.cluster.list("DNSRecord").await.iter().filter(|one| ready_of(one).ends_with(reason)).count()
}

#[tokio::test(start_paused = true)]
async fn finding_9_a_full_zone_is_asked_once_in_five_minutes_and_goes_on_when_there_is_room() {
    let world = in_a_small_zone().await;
    world.cluster.create_all(&records(230)).await;
    world.restart().await;
    world.settle().await;
    assert_eq!((with_reason(&world, "Synced").await, with_reason(&world, "QuotaExceeded").await), (200, 30));
    let full = world.cluster.list("DNSRecord").await;
    let full = full.iter().find(|one| ready_of(one).ends_with("QuotaExceeded")).map(m::id).expect("there is one");
    let message = world.cluster.message(&full).await;
    assert!(message.contains("ask Cloudflare for a higher limit"), "{message}");
    world.forget();

    world.pass(Duration::from_secs(900)).await;

    let writes = world.cloudflare.take_writes().len();
    tell(&format!("scale: 30 records too many for a full zone: {writes} writes in 15 minutes"));
    assert!(writes <= 20, "{writes}");
    for record in records(40) {
        world.cluster.delete(&m::id(&record)).await;
    }
    let all = async |world: &World| with_reason(world, "QuotaExceeded").await == 0;
    assert!(world.holds_within(Duration::from_secs(1200), all).await, "it goes on when there is room");
}

#[tokio::test(start_paused = true)]
async fn finding_9_a_zone_that_is_nearly_full_is_told_once_by_an_event_and_a_metric() {
    let world = in_a_small_zone().await;
    world.cluster.create_all(&records(185)).await;
    world.restart().await;
    world.settle().await;
    for record in &records(190)[185..] {
        world.cluster.apply(record).await;
        world.settle().await;
    }

    let events = world.cluster.list("Event").await;
    let told = events.iter().filter(|event| event["reason"] == "QuotaNearlyReached").collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0]["note"].as_str().is_some_and(|note| note.contains("may have 200 as far as known")), "{told:?}");
    let metrics = world.metrics().await;
    assert!(metrics.contains("portolan_cloudflare_quota_left{collection=\"dns_records\""), "{metrics}");
    assert_eq!(with_reason(&world, "Synced").await, 190, "nothing was refused");
}

fn redirected(count: usize) -> Vec<Value> {
    let route = |n: usize| {
        RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com"))
            .with("origin.httpRedirect", "true")
            .manifest()
            .clone()
    };
    (0..count).map(route).collect()
}

#[tokio::test(start_paused = true)]
async fn finding_19_names_whose_redirects_were_refused_cost_no_write_and_no_task() {
    let world = z::world().asleep().start().await;
    let refusal = Effect::Status { status: 400, code: 20021, message: "no more rules in this phase".to_owned() };
    world.cloudflare.fault(Fault::on("POST", "/rulesets", refusal));
    world.cluster.create_all(&redirected(20)).await;
    world.restart().await;
    world.settle().await;
    let events = world.cluster.told("HTTPRoute/default/r7").await;
    assert!(events.iter().any(|event| event.starts_with("HTTPRedirectNotManaged")), "{events:?}");
    world.forget();

    for _ in 0..3 {
        world.drift_pass().await;
        world.settle().await;
    }

    let calls = world.cloudflare.take_requests();
    tell(&format!("scale: three drift passes over 20 names without redirects: {} calls", calls.len()));
    assert!(calls.iter().all(|call| call.starts_with("GET")), "{calls:?}");
    assert!((3..=20).contains(&calls.len()), "each pass looks once for all: {calls:?}");
    assert_eq!(world.cluster_writes(), [""; 0]);
    assert_eq!(world.tasks().await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn finding_22_a_hundred_rotated_tokens_leave_a_few_clients() {
    let world = cloudflare_world().start().await;
    let routes = z::world().start().await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    routes.cluster.apply(RouteManifest::to("app", "app.example.com").manifest()).await;
    let series = async |world: &World| {
        let metrics = world.metrics().await;
        let lines = metrics.lines().filter(|line| line.starts_with("portolan_cloudflare_budget_left{"));
        lines.map(str::to_owned).collect::<BTreeSet<String>>().len()
    };

    for number in 0..100 {
        let token = format!("rotated-{number}");
        for (world, secret) in [
            (&world, m::token_secret(OPERATOR_NAMESPACE, "cloudflare-api", &token)),
            (&routes, z::token_secret("default", "cloudflare-api-token", &token)),
        ] {
            world.cloudflare.simulator.add_token(&token, Grant::all());
            world.cluster.apply(&secret).await;
        }
        world.cluster.apply(&m::record("www", &format!("192.0.2.{number}"))).await;
        let origin = format!("http://app-{number}:80");
        routes
            .cluster
            .apply(RouteManifest::to("app", "app.example.com").with("originService", &origin).manifest())
            .await;
        world.pass(Duration::from_secs(120)).await;
        routes.pass(Duration::from_secs(1)).await;
    }

    assert_eq!(world.cluster.ready("DNSRecord/apps/www").await, "True/Synced");
    assert!(routes.name("app.example.com").is_public());
    let left = (series(&world).await, series(&routes).await);
    tell(&format!("scale: 100 rotated tokens leave {} and {} clients", left.0, left.1));
    assert!((1..=8).contains(&left.0) && (1..=8).contains(&left.1), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn finding_33_a_long_pause_is_told_by_all_who_wait_for_it_and_nobody_calls_before_its_end() {
    let world = cloudflare_world().start().await;
    let pause = Duration::from_secs(1800);
    world.cloudflare.fault(Fault::on("", "", Effect::status(429)).times(1).retry_after(pause));
    for n in 0..20 {
        world.cluster.apply(&m::record(&format!("r{n}"), "192.0.2.1")).await;
    }

    world.pass(Duration::from_secs(60)).await;

    assert_eq!(with_reason(&world, "RateLimited").await, 20);
    let message = world.cluster.message("DNSRecord/apps/r7").await;
    assert!(message.contains("nothing is asked before 20"), "{message}");
    world.failpoints.take();
    world.pass(Duration::from_secs(1700)).await;
    assert_eq!(world.cloudflare.simulator.request_count(), 1, "{:?}", world.cloudflare.take_requests());
    assert_eq!(world.cluster_writes(), [""; 0], "the same is not said again");
    world.pass(Duration::from_secs(200)).await;
    assert_eq!(with_reason(&world, "Synced").await, 20);
}

#[tokio::test(start_paused = true)]
async fn finding_33_a_route_says_until_when_nothing_is_asked() {
    let world = z::world().start().await;
    world.settle().await;
    let fault = Fault::on("", "/cfd_tunnel/", Effect::status(429)).times(1).retry_after(Duration::from_secs(600));
    world.cloudflare.fault(fault);

    world.cluster.apply(RouteManifest::to("slow", "slow.example.com").manifest()).await;
    world.pass(Duration::from_secs(60)).await;

    let events = world.cluster.told("HTTPRoute/default/slow").await;
    let told = |event: &String| event.contains("RateLimited") && event.contains("nothing is asked before");
    assert!(events.iter().any(told), "{events:?}");
    world.forget();
    world.pass(Duration::from_secs(500)).await;
    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
    let done = async |world: &World| world.name("slow.example.com").is_public();
    assert!(world.holds_within(Duration::from_secs(240), done).await);
}

#[tokio::test(start_paused = true)]
async fn finding_28_what_cloudflare_refused_as_invalid_rests_through_drift_passes() {
    let world = z::world().start().await;
    let refusal = Effect::Status { status: 400, code: 12345, message: "that is not to our liking".to_owned() };
    world.cloudflare.fault(Fault::on("POST", "/access/apps", refusal));
    let route = RouteManifest::to("bad", "bad.example.com").allowing("user@example.com");
    world.cluster.apply(route.clone().manifest()).await;
    world.settle().await;
    let task = world.tasks().await.remove(0);
    let message = task["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("it is not sent again until"), "{message}");
    assert_eq!(task["status"]["refusedHash"], task["status"]["annotationHash"]);
    world.forget();

    for _ in 0..3 {
        world.drift_pass().await;
        world.settle().await;
    }

    assert_eq!((world.writes(), world.cluster_writes()), (Vec::new(), Vec::new()));
    world.cluster.apply(route.allowing("other@example.com").manifest()).await;
    world.settle().await;
    assert_eq!(world.writes().len(), 1, "another wish is another question");
}
