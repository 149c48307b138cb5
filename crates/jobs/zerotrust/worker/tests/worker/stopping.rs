//! A worker that is told to stop.

use std::time::Duration;

use portolan_zerotrust_model::Phase;
use portolan_zerotrust_worker::Settings;

use crate::world::{World, protected, task, with_token};

#[tokio::test(start_paused = true)]
async fn scenario_49_a_worker_that_stops_ends_its_call_gives_its_task_back_and_is_gone_in_time() {
    let mut world = World::empty().await;
    world.simulator.set_latency(Duration::from_secs(3));
    world.run(Settings::new("w1", "1"));
    world.settle().await;
    world.create(&with_token(task("web"))).await;
    world.until(async || world.phase("cfzt-shop-web").await == Phase::InProgress).await;

    let took = world.stop("w1").await;

    assert!(took < Duration::from_secs(25), "{took:?}");
    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.worker_pod.as_deref()), (Some(Phase::Pending), Some("")), "{status:?}");
    assert_eq!(world.signs().await, Vec::<String>::new());
    let given_back = r#"portolan_zerotrust_attempts_total{action="reconcile",result="given_back",reason=""} 1"#;
    assert!(world.measured("w1").contains(given_back), "{}", world.measured("w1"));
    assert!(!world.measured("w1").contains("zerotrust_tasks{"), "what has stopped counts no tasks");

    world.run(Settings::new("w2", "1"));
    world.settle().await;
    assert_eq!(world.phase("cfzt-shop-web").await, Phase::Completed);
    let counts = (world.apps().len(), world.service_tokens().len(), world.rules().len(), world.records().len());
    assert_eq!(counts, (1, 1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn scenario_49_a_worker_whose_call_hangs_gives_its_task_back_in_time() {
    let mut world = World::empty().await;
    world.run(Settings::new("w1", "1").alone());
    world.settle().await;
    world.carry(&protected(task("first"))).await;
    world.simulator.set_latency(Duration::from_secs(3600));
    world.create(&protected(task("web"))).await;
    world.until(async || world.phase("cfzt-shop-web").await == Phase::InProgress).await;

    let took = world.stop("w1").await;

    assert!(took < Duration::from_secs(25), "{took:?}");
    assert_ne!(world.phase("cfzt-shop-web").await, Phase::InProgress);
}

#[tokio::test(start_paused = true)]
async fn a_worker_at_rest_stops_at_once() {
    let mut world = World::start().await;
    world.carry(&task("web")).await;

    assert!(world.stop("w1").await < Duration::from_secs(1));
}
