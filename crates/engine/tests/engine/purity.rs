//! Steps that promise to be pure are caught when they are not.

use std::sync::Arc;

use kube::api::PostParams;
use portolan_engine::{CancellationToken, Controller};

use crate::gadget::{BREACH, Gadget, Gadgets, gadget};
use crate::world::World;

const BREACHES: [&str; 3] = ["starts a task", "asks the cluster", "asks the remote side"];

fn breaking(step: &str, breach: &str) -> Gadget {
    let mut gadget = gadget("a", "1");
    gadget.metadata.annotations = Some([(BREACH.to_owned(), format!("{step}: {breach}"))].into());
    gadget
}

fn panics(world: &World) -> u32 {
    let measured = world.context.metrics.render();
    let count =
        measured.lines().find_map(|line| line.strip_prefix("portolan_reconcile_panics_total{kind=\"Gadget\"} "));
    count.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_plan_or_report_that_asks_the_world_outside_ends_its_pass_in_a_panic() {
    for step in ["plan", "report"] {
        for breach in BREACHES {
            let world = World::start().await;

            world.create(breaking(step, breach)).await;

            assert!(panics(&world) > 0, "{step} {breach}");
            assert_eq!(world.ready("a").await, "", "{step} {breach}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_projection_that_asks_the_world_outside_ends_its_controller_in_a_panic() {
    for breach in BREACHES {
        let world = World::empty().await;
        let gadgets = Arc::new(Gadgets { client: world.client.clone(), remote: world.remote.clone() });
        let controller = Controller::new(world.context.clone(), gadgets);
        let running = tokio::spawn(controller.run(CancellationToken::new()));
        world.api().create(&PostParams::default(), &breaking("project", breach)).await.unwrap();

        let ended = tokio::time::timeout(std::time::Duration::from_secs(5), running).await.unwrap();

        assert!(ended.is_err_and(|error| error.is_panic()), "{breach}");
    }
}
