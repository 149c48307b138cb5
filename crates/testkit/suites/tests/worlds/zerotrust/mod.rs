//! The zerotrust job in worlds: the specification's scenarios by their numbers, the worked examples, and what belongs
//! to no scenario alone.

mod basics;
mod checkers;
mod conflicts;
mod crashes;
mod deletion;
mod examples;
mod fleet;
mod losses;
mod metrics;
mod neighbours;
mod rotation;
mod secrets;
mod untrusted;
mod validation;
mod walls;
mod wishes;

use std::collections::BTreeSet;

use portolan_testkit_suites::zerotrust::RouteManifest;
use portolan_testkit_suites::{World, tell};

/// Applies a route and waits until the operator rests.
async fn publish(world: &World, route: RouteManifest) {
    world.cluster.apply(&route.into()).await;
    world.settle().await;
}

/// A world in which some routes are settled, with nothing remembered of how they came.
async fn settled(routes: impl IntoIterator<Item = RouteManifest>) -> World {
    let world = portolan_testkit_suites::zerotrust::world().start().await;
    for route in routes {
        publish(&world, route).await;
    }
    world.forget();
    world
}

/// How often a task was made since the last time steps were taken.
fn tasks_made(world: &World) -> usize {
    world
        .failpoints
        .steps()
        .iter()
        .filter(|step| step.text.starts_with("POST") && step.text.contains("/cloudflaretasks"))
        .count()
}

/// Numbers of the scenarios in the source of the tests.
fn numbers(source: &str) -> BTreeSet<u32> {
    let names = source.split("fn scenario_").skip(1);
    names.filter_map(|name| name.get(..2)?.parse().ok()).collect()
}

#[test]
fn every_scenario_of_this_job_has_a_test() {
    let sources = [
        include_str!("basics.rs"),
        include_str!("validation.rs"),
        include_str!("conflicts.rs"),
        include_str!("crashes.rs"),
        include_str!("deletion.rs"),
        include_str!("secrets.rs"),
        include_str!("fleet.rs"),
        // The log of the built binary.
        include_str!("../../../../../portolan/tests/cli/logs.rs"),
    ];
    let there: BTreeSet<u32> = sources.iter().flat_map(|source| numbers(source)).collect();
    let wanted: BTreeSet<u32> = (1..=72).collect();

    tell(&format!("scenarios: {} of {} of the zerotrust job", there.intersection(&wanted).count(), wanted.len()));
    assert_eq!(wanted.difference(&there).collect::<Vec<_>>(), Vec::<&u32>::new());
}
