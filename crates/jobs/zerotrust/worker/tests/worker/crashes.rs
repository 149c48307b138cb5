//! A worker that dies at any moment: the next one ends its work, once.

use std::time::Duration;

use kube::ResourceExt as _;
use portolan_zerotrust_model::Phase;
use portolan_zerotrust_worker::Settings;

use crate::tokens::{handed, opens};
use crate::world::{World, deletion, task, with_token};

/// Half of it passes before a request has its effect, half after.
const LATENCY: Duration = Duration::from_millis(100);

fn life(epoch: u32) -> Settings {
    Settings::new("w1", epoch.to_string()).alone()
}

/// Runs a worker for a while, kills it, and lets the next life end the work.
async fn killed_after(moment: Duration) -> (World, bool) {
    let mut world = World::empty().await;
    world.simulator.set_latency(LATENCY);
    world.create(&with_token(task("web"))).await;
    world.run(life(1));
    tokio::time::sleep(moment).await;
    let early = world.phase("cfzt-shop-web").await != Phase::Completed;
    world.kill("w1").await;

    world.run(life(2));
    world.settle().await;
    (world, early)
}

#[tokio::test(start_paused = true)]
async fn scenario_42_a_worker_killed_at_any_moment_leaves_one_of_everything_and_valid_credentials() {
    let mut moments = 0;
    for step in 0.. {
        let (world, early) = killed_after(LATENCY / 4 * step).await;

        let status = world.status("cfzt-shop-web").await;
        assert_eq!(status.phase, Some(Phase::Completed), "step {step}: {status:?}");
        let counts = (world.apps().len(), world.service_tokens().len(), world.rules().len(), world.records().len());
        assert_eq!(counts, (1, 1, 1, 1), "step {step}");
        assert!(opens(&world, "web.example.com", &handed(&world, &status).await), "step {step}");
        moments += 1;
        if !early {
            break;
        }
    }
    assert!(moments > 20, "{moments}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_killed_at_any_moment_of_a_removal_leaves_nothing_in_the_end() {
    for step in 0.. {
        let mut world = World::empty().await;
        world.run(life(1));
        let published = with_token(task("web"));
        let status = world.carry(&published).await;
        let deletion = deletion(&published, &status);
        world.simulator.set_latency(LATENCY);
        world.create(&deletion).await;
        tokio::time::sleep(LATENCY / 4 * step).await;
        let early = world.phase(&deletion.name_any()).await != Phase::Completed;
        world.kill("w1").await;

        world.run(life(2));
        world.settle().await;

        assert_eq!(world.phase(&deletion.name_any()).await, Phase::Completed, "step {step}");
        let counts = (world.apps().len(), world.service_tokens().len(), world.rules().len(), world.records().len());
        assert_eq!(counts, (0, 0, 0, 0), "step {step}");
        if !early {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_among_others_that_is_killed_again_and_again_waits_for_nobody_when_it_comes_back() {
    let mut world = World::empty().await;
    world.simulator.set_latency(LATENCY);
    world.create(&with_token(task("web"))).await;
    let begun = tokio::time::Instant::now();

    let mut lives = 0;
    while world.phase("cfzt-shop-web").await != Phase::Completed {
        lives += 1;
        world.run(Settings::new("w1", lives.to_string()));
        tokio::time::sleep(LATENCY * 12).await;
        world.kill("w1").await;
    }

    assert!(lives < 12 && begun.elapsed() < Duration::from_secs(15), "{lives} lives, {:?}", begun.elapsed());
    assert_eq!((world.apps().len(), world.service_tokens().len()), (1, 1));
}
