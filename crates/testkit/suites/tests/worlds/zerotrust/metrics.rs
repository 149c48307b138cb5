//! What is measured moves, and for its own reason alone.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};
use portolan_testkit_suites::World;
use portolan_testkit_suites::failpoints::StopSide;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::{self as z, Roles, RouteManifest};
use serde_json::json;

use super::{publish, settled};

/// The value of a series, by its name and labels without the prefix; none where it is not told.
async fn measured(world: &World, series: &str) -> Option<i64> {
    let text = world.metrics().await;
    let line = text.lines().find_map(|line| line.strip_prefix("portolan_")?.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("what is measured is a whole number"))
}

async fn is(world: &World, series: &str, value: i64) {
    assert_eq!(measured(world, series).await, Some(value), "{series} in\n{}", world.metrics().await);
}

fn route(number: usize) -> RouteManifest {
    RouteManifest::to(&format!("r{number}"), &format!("r{number}.example.com"))
}

const COMPLETED: &str = r#"zerotrust_attempts_total{action="reconcile",result="completed",reason=""}"#;
const DELETED: &str = r#"zerotrust_attempts_total{action="delete",result="completed",reason=""}"#;
const OPEN: &str = r#"zerotrust_names{mode="tunnel",protected="false"}"#;
const PROTECTED: &str = r#"zerotrust_names{mode="tunnel",protected="true"}"#;
const READY: &str = r#"zerotrust_routes{state="ready",reason=""}"#;

#[tokio::test(start_paused = true)]
async fn three_routes_are_three_completed_attempts_and_three_names_of_which_one_goes_with_its_route() {
    let world = settled([route(1), route(2), route(3).allowing("user@example.com")]).await;

    is(&world, COMPLETED, 3).await;
    is(&world, r#"zerotrust_attempt_duration_seconds_count{action="reconcile"}"#, 3).await;
    is(&world, OPEN, 2).await;
    is(&world, PROTECTED, 1).await;
    is(&world, READY, 3).await;
    is(&world, r#"zerotrust_tasks{phase="Pending"}"#, 0).await;
    assert_eq!(measured(&world, DELETED).await, None);

    world.cluster.delete("HTTPRoute/default/r1").await;
    world.settle().await;

    is(&world, DELETED, 1).await;
    is(&world, COMPLETED, 3).await;
    is(&world, OPEN, 1).await;
    is(&world, READY, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_route_that_fails_is_counted_with_its_reason_until_it_no_longer_does() {
    let world = settled([route(1)]).await;
    let refusal = Effect::status(400);
    world.cloudflare.fault(Fault::on("POST", "/access/apps", refusal));

    publish(&world, route(2).allowing("user@example.com")).await;

    is(&world, r#"zerotrust_attempts_total{action="reconcile",result="failed",reason="CloudflareAPIError"}"#, 1).await;
    is(&world, r#"zerotrust_routes{state="failed",reason="CloudflareAPIError"}"#, 1).await;
    is(&world, r#"zerotrust_tasks{phase="Failed"}"#, 1).await;
    is(&world, READY, 1).await;
    is(&world, PROTECTED, 0).await;

    world.cloudflare.simulator.clear_faults();
    publish(&world, route(2).allowing("other@example.com")).await;
    is(&world, READY, 2).await;
    is(&world, PROTECTED, 1).await;
    assert_eq!(measured(&world, r#"zerotrust_routes{state="failed",reason="CloudflareAPIError"}"#).await, None);
}

#[tokio::test(start_paused = true)]
async fn drift_is_counted_where_something_differs() {
    let world = settled([route(1), route(2)]).await;
    world.drift_pass().await;
    world.settle().await;
    is(&world, r#"drift_passes_total{controller="zerotrust"}"#, 1).await;
    is(&world, r#"drift_found_total{controller="zerotrust"}"#, 0).await;
    is(&world, COMPLETED, 2).await;

    let record = world.name("r1.example.com").record()["id"].as_str().unwrap_or_default().to_owned();
    world.cloudflare.remove("dns_records", &record);
    world.drift_pass().await;
    world.settle().await;

    is(&world, r#"drift_passes_total{controller="zerotrust"}"#, 2).await;
    is(&world, r#"drift_found_total{controller="zerotrust"}"#, 1).await;
    is(&world, COMPLETED, 3).await;
    world.cloudflare.fault(Fault::on("GET", "/dns_records", Effect::status(403)).times(1));
    world.drift_pass().await;
    let unread = measured(&world, r#"drift_unreadable_total{controller="zerotrust"}"#).await;
    assert!(unread.is_some_and(|places| places > 0), "{unread:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_first_service_token_is_told_by_tenant_and_moves_with_it() {
    let with_token = |number: usize| route(number).allowing("user@example.com").with("serviceToken", "true");
    let world = settled([with_token(1), with_token(2)]).await;
    let series = r#"zerotrust_token_expiry_timestamp_seconds{tenant="default/prod"}"#;
    assert_eq!(measured(&world, series).await, None, "nobody has looked yet");
    let tokens = world.cloudflare.all("service_tokens");
    let first = tokens[0]["id"].as_str().unwrap_or_default().to_owned();
    let sooner = "2026-12-31T00:00:00Z";
    world.cloudflare.edit("service_tokens", &first, |token| token["expires_at"] = json!(sooner));

    world.drift_pass().await;
    world.settle().await;

    is(&world, series, 1_798_675_200).await;
    let route = if world.output("r1", "serviceTokenId").await.as_deref() == Some(first.as_str()) { "r1" } else { "r2" };
    world.cluster.delete(&format!("HTTPRoute/default/{route}")).await;
    world.settle().await;
    let other = measured(&world, series).await;
    assert!(other.is_some_and(|end| end > 1_798_675_200), "the other token lives longer: {other:?}");
}

#[tokio::test(start_paused = true)]
async fn held_deletions_are_counted_until_they_are_released() {
    let world = settled((0..14).map(route)).await;
    for number in 0..14 {
        world.cluster.delete(&format!("HTTPRoute/default/r{number}")).await;
    }
    world.settle().await;

    let held = measured(&world, r#"held_deletions{collection="names"}"#).await;
    assert!(held.is_some_and(|held| held > 0), "{held:?}");

    let tenant = world.cluster.get("CloudflareZeroTrustTenant/default/prod").await.expect("it is there");
    let message =
        portolan_testkit_suites::cluster::condition(&tenant, "Stalled").expect("it says so")["message"].clone();
    let digest = message.as_str().and_then(|text| text.rsplit('"').nth(1)).expect("a digest").to_owned();
    let mut released = z::tenant("prod");
    released["metadata"]["annotations"] = json!({ "portolan.dev/release-deletions": digest });
    world.cluster.apply(&released).await;
    world.settle().await;

    is(&world, r#"held_deletions{collection="names"}"#, 0).await;
    is(&world, OPEN, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_dead_worker_is_counted_when_another_takes_it_over() {
    let world = z::world().roles(Roles::apart(2)).start().await;
    world.crash_part(z::worker(2)).await;
    let dying = world.failpoints_of(z::worker(1)).clone();
    dying.stop_on("PUT /client/v4/accounts", StopSide::Before);
    world.cluster.apply(route(1).manifest()).await;
    dying.halted().await;
    world.crash_part(z::worker(1)).await;

    world.restart_part(z::worker(2)).await;
    let done = world.holds_within(Duration::from_secs(300), async |world: &World| world.tasks().await.is_empty()).await;

    assert!(done, "{:#?}", world.tasks().await);
    is(&world, r#"zerotrust_claims_taken_over_total{from="another"}"#, 1).await;
    is(&world, COMPLETED, 1).await;
    publish(&world, route(2)).await;
    is(&world, r#"zerotrust_claims_taken_over_total{from="another"}"#, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_worker_has_is_counted_in_progress() {
    let world = z::world().roles(Roles::apart(1)).latency(Duration::from_secs(20)).start().await;
    world.cluster.apply(route(1).manifest()).await;
    let claimed = world
        .holds_within(Duration::from_secs(600), async |world: &World| {
            world.tasks().await.first().is_some_and(|task| task["status"]["phase"] == "InProgress")
        })
        .await;
    assert!(claimed, "{:#?}", world.tasks().await);
    is(&world, r#"zerotrust_tasks{phase="InProgress"}"#, 1).await;
}
