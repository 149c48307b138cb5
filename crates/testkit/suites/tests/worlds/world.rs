//! Worlds themselves: they begin at rest, repeat from their seed, and let the operator die.

use std::time::Duration;

use portolan_testkit_suites::manifests as m;
use portolan_testkit_suites::{World, cloudflare_world};

#[tokio::test(start_paused = true)]
async fn a_world_begins_at_rest_with_everything_ready() {
    let world = cloudflare_world().start().await;

    assert_eq!(world.cluster.ready("CloudflareCredentials/main").await, "True/Validated");
    assert_eq!(world.cluster.ready("CloudflareDomain/example-com").await, "True/Verified");
    assert!(world.cluster.ready("ClusterTunnel/edge").await.starts_with("True/"));
    assert_eq!(world.busy().await, 0);
}

#[tokio::test(start_paused = true)]
async fn without_the_operator_nothing_happens() {
    let world = cloudflare_world().asleep().start().await;

    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.pass(Duration::from_secs(60)).await;

    assert_eq!(world.cluster.ready("DNSRecord/apps/www").await, "none");
    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_killed_operator_does_nothing_more() {
    let world = cloudflare_world().latency(Duration::from_secs(1)).start().await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.pass(Duration::from_millis(100)).await;

    world.crash().await;
    world.pass(Duration::from_secs(600)).await;
    world.forget();
    world.cluster.apply(&m::record("api", "192.0.2.1")).await;
    world.pass(Duration::from_secs(600)).await;

    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
    assert_eq!(world.cluster_writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_operator_ends_and_the_next_goes_on() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;

    world.stop().await;
    world.restart().await;
    world.settle().await;

    assert_eq!(world.cluster.ready("DNSRecord/apps/www").await, "True/Synced");
    portolan_testkit_suites::invariants::assert_all(&world, "after a graceful stop").await;
}

/// A world whose operator lost its rights and then has something to do.
async fn world_without_rights() -> World {
    let world = cloudflare_world().start().await;
    world.cluster.delete("ClusterRoleBinding/portolan-cloudflare-single").await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.pass(Duration::from_secs(5)).await;
    world
}

#[tokio::test(start_paused = true)]
async fn the_operator_has_the_rights_of_the_chart_and_what_it_is_refused_is_kept() {
    let world = world_without_rights().await;

    let refused = world.take_refusals();

    let told = "User \"system:serviceaccount:cloudflare-operator-system:portolan-cloudflare-single\" cannot patch";
    assert!(refused.iter().any(|one| one.contains(told)), "{refused:#?}");
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the operator was refused")]
async fn a_world_that_ends_with_a_refusal_fails() {
    drop(world_without_rights().await);
}
