//! When a failed object is tried again.

use std::time::Duration;

use portolan_core::{Problem, reasons};
use serde_json::json;
use tokio::time::Instant;

use crate::gadget::{Call, Trouble, gadget};
use crate::world::World;

/// How long after `start` the object was looked at.
fn looks(world: &World, name: &str, start: Instant) -> Vec<Duration> {
    times(&world.remote.take_log(), name, start)
}

fn times(log: &[Call], name: &str, start: Instant) -> Vec<Duration> {
    log.iter().filter(|call| call.what == format!("look {name}")).map(|call| call.at - start).collect()
}

/// The waits between looks, in whole seconds.
fn waits(looks: &[Duration]) -> Vec<u64> {
    looks.windows(2).map(|pair| (pair[1].saturating_sub(pair[0]) + Duration::from_millis(500)).as_secs()).collect()
}

/// Whether a wait is as long as usual, give or take a tenth.
fn is_about(wait: u64, usual: u64) -> bool {
    (usual * 9 / 10..=usual * 11 / 10).contains(&wait)
}

fn unavailable() -> Problem {
    Problem::transient(reasons::API_ERROR, "503 from the API")
}

#[tokio::test(start_paused = true)]
async fn transient_problems_back_off_and_the_object_recovers() {
    let world = World::start().await;
    let start = Instant::now();
    world.remote.problems("a", &unavailable(), 4);

    world.create(gadget("a", "1")).await;
    assert_eq!(world.ready("a").await, "False/APIError");
    world.after(400).await;

    let waits = waits(&looks(&world, "a", start));
    let usual = [10, 20, 40, 80];
    assert_eq!(waits.len(), usual.len());
    assert!(waits.iter().zip(usual).all(|(wait, usual)| is_about(*wait, usual)), "{waits:?}");
    assert_eq!(world.ready("a").await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_the_same_and_another_one_does_not() {
    let mut gaps = Vec::new();
    for seed in [7, 7, 8] {
        let mut world = World::with(|context| context.seed = seed).await;
        world.run();
        world.settle().await;
        world.remote.problems("a", &unavailable(), 4);
        let start = Instant::now();
        world.create(gadget("a", "1")).await;
        world.after(400).await;
        gaps.push(looks(&world, "a", start));
    }

    assert_eq!(gaps[0], gaps[1]);
    assert_ne!(gaps[0], gaps[2]);
}

#[tokio::test(start_paused = true)]
async fn the_counter_starts_again_after_a_success_and_after_an_edit() {
    let world = World::start().await;
    let start = Instant::now();
    world.remote.problems("a", &unavailable(), 2);
    world.create(gadget("a", "1")).await;
    world.after(100).await;
    world.remote.take_log();

    world.remote.problems("a", &unavailable(), 2);
    world.merge("a", json!({"spec": {"value": "2"}})).await;
    world.merge("a", json!({"spec": {"value": "3"}})).await;
    world.after(100).await;

    let waits = waits(&looks(&world, "a", start));
    assert_eq!(waits[0], 0, "an edit is not kept waiting");
    assert!(is_about(waits[1], 10), "and its first failure counts as the first: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_obeyed() {
    let world = World::start().await;
    let start = Instant::now();
    let limited = Problem::transient(reasons::RATE_LIMITED, "429").with_retry_after(Duration::from_secs(47));
    world.remote.problems("a", &limited, 1);

    world.create(gadget("a", "1")).await;
    world.after(100).await;

    assert_eq!(waits(&looks(&world, "a", start)), [47]);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_object_is_tried_again_only_when_it_changes() {
    let world = World::start().await;

    world.create(gadget("a", "invalid")).await;
    world.after(7200).await;

    assert_eq!(world.remote.take_log().len(), 1);
    assert_eq!(world.ready("a").await, "False/InvalidConfig");
    world.merge("a", json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(world.remote.take_log().len(), 0);
    world.merge("a", json!({"spec": {"value": "1"}})).await;
    assert_eq!(world.ready("a").await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn denied_is_slow_and_waiting_is_short() {
    let world = World::start().await;
    let start = Instant::now();
    world.remote.problems("denied", &Problem::denied(reasons::CREDENTIALS_DENIED, "403"), 2);
    world.remote.problems("waiting", &Problem::waiting(reasons::DEPENDENCY_ERROR, "no zone"), 2);

    world.create(gadget("denied", "1")).await;
    world.create(gadget("waiting", "1")).await;
    world.after(1000).await;

    let log = world.remote.take_log();
    for (name, usual) in [("denied", 300), ("waiting", 30)] {
        let waits = waits(&times(&log, name, start));
        assert_eq!(waits.len(), 2, "{name}");
        assert!(waits.iter().all(|wait| is_about(*wait, usual)), "{name}: {waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_failure_is_one_event_and_one_status() {
    let world = World::start().await;
    world.remote.problems("a", &unavailable(), 50);

    world.create(gadget("a", "1")).await;
    let before = world.version();
    world.after(3600).await;

    assert_eq!(world.version(), before, "saying the same again is no write");
    assert_eq!(world.events().await, ["APIError a"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_the_ids_in_the_status() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.remote.problems("a", &unavailable(), 1);

    world.annotate("a", "portolan.dev/reconcile-at", "1").await;

    let status = world.get("a").await.unwrap().status.unwrap();
    assert_eq!((status.id.as_deref(), status.state.as_deref()), (Some("id-a"), Some("error")));
}

#[tokio::test(start_paused = true)]
async fn a_panic_hurts_its_own_object_only_and_is_tried_again() {
    let world = World::start().await;
    world.remote.trouble("a", [Trouble::Panic]);

    world.create(gadget("a", "1")).await;
    world.create(gadget("b", "1")).await;

    assert_eq!((world.ready("a").await, world.ready("b").await), (String::new(), "True/Synced".to_owned()));
    assert!(world.context.metrics.render().contains("portolan_reconcile_panics_total{kind=\"Gadget\"} 1"));
    world.after(12).await;
    assert_eq!(world.ready("a").await, "True/Synced");
}
