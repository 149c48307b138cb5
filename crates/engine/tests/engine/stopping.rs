//! Stopping lets what is under way end; crashing does not, and both are safe.

use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::PostParams;

use crate::gadget::{FINALIZER, gadget};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_graceful_stop_finishes_what_is_under_way_and_starts_nothing_new() {
    let mut world = World::with(|context| context.timing.in_flight = 2).await;
    world.run();
    world.settle().await;
    let gate = world.remote.close_gate();
    for name in ["a", "b", "c"] {
        world.api().create(&PostParams::default(), &gadget(name, "1")).await.unwrap();
    }
    world.idle().await;

    let manager = world.manager.take().unwrap();
    let stopping = tokio::spawn(manager.shutdown());
    world.idle().await;
    assert!(!stopping.is_finished());
    gate.add_permits(10);
    stopping.await.unwrap();

    assert_eq!((world.ready("a").await, world.ready("b").await), ("True/Synced".to_owned(), "True/Synced".to_owned()));
    assert_eq!(world.ready("c").await, "");
    assert_eq!(world.remote.value("c"), None);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_does_not_end_is_abandoned_after_the_grace_time_and_repeated_later() {
    let mut world = World::start().await;
    world.remote.close_gate();
    world.api().create(&PostParams::default(), &gadget("a", "1")).await.unwrap();
    world.idle().await;
    let start = tokio::time::Instant::now();

    world.manager.take().unwrap().shutdown().await;

    assert_eq!(start.elapsed().as_secs(), world.context.timing.grace.as_secs());
    assert_eq!(world.remote.value("a"), None);
    *world.remote.gate.lock().unwrap() = None;
    world.run();
    world.settle().await;
    assert_eq!(world.ready("a").await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn a_crash_stops_everything_and_a_restart_converges() {
    let mut world = World::start().await;
    let gate = world.remote.close_gate();
    world.api().create(&PostParams::default(), &gadget("a", "1")).await.unwrap();
    world.idle().await;

    world.crash();
    gate.add_permits(10);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.remote.take_writes(), Vec::<String>::new());
    assert_eq!(world.get("a").await.unwrap().finalizers(), [FINALIZER]);
    world.run();
    world.settle().await;

    assert_eq!(world.remote.take_writes(), ["create a"]);
    assert_eq!(world.ready("a").await, "True/Synced");
}
