//! Crash points: a scenario is run once to count its steps, then once for each side of each step, with the operator
//! killed there and started again. Every such run must end as the undisturbed one did.

use std::time::Duration;

use serde_json::Value;

use crate::gate::{Side, Stop};
use crate::world::{Builder, World};

/// How long a world may take to come to its end after a crash.
const CONVERGES_WITHIN: Duration = Duration::from_secs(1800);

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Steps of the undisturbed run.
    pub steps: usize,
    /// Crashes that happened: two for each step.
    pub crashes: usize,
}

impl std::ops::AddAssign for Tried {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
    }
}

/// Runs `act` in a world that `prepare` made ready, and crashes the operator before and after each of its steps.
pub async fn at_every_step(
    name: &str,
    builder: &Builder,
    prepare: impl AsyncFn(&World),
    act: impl AsyncFn(&World),
) -> Tried {
    let world = builder.clone().start().await;
    let end = undisturbed(&world, &prepare, &act).await;
    let steps = world.gate.steps();
    // On a shared server two operators would do each other's work.
    world.crash().await;
    drop(world);
    assert!(!steps.is_empty(), "{name}: the scenario makes the operator do something");
    let mut tried = Tried { steps: steps.len(), crashes: 0 };
    for step in 1..=steps.len() {
        for side in [Side::Before, Side::After] {
            let place = format!("{name}, crashed {side:?} step {step} ({})", steps[step - 1].text);
            let world = builder.clone().start().await;
            crashed(&world, &prepare, &act, Stop { step, side }, &place).await;
            ends_alike(&world, &end, &place).await;
            world.crash().await;
            tried.crashes += 1;
        }
    }
    tried
}

/// Starts the operator of a world that `prepare` made ready while it slept, and crashes it before and after each of its steps.
pub async fn at_every_step_of_the_start(name: &str, builder: &Builder, prepare: impl AsyncFn(&World)) -> Tried {
    let asleep = async || {
        let world = builder.clone().asleep().start().await;
        prepare(&world).await;
        world.forget();
        world.restart().await;
        world
    };
    let world = asleep().await;
    world.settle().await;
    let (end, steps) = (world.essentials().await, world.gate.steps());
    world.crash().await;
    assert!(!steps.is_empty(), "{name}: the start makes the operator do something");
    let mut tried = Tried { steps: steps.len(), crashes: 0 };
    for step in 1..=steps.len() {
        for side in [Side::Before, Side::After] {
            let place = format!("{name}, crashed {side:?} step {step} ({})", steps[step - 1].text);
            let world = asleep().await;
            world.gate.stop_at(Stop { step, side });
            halt(&world, &place).await;
            ends_alike(&world, &end, &place).await;
            world.crash().await;
            tried.crashes += 1;
        }
    }
    tried
}

async fn undisturbed(world: &World, prepare: impl AsyncFn(&World), act: impl AsyncFn(&World)) -> Value {
    prepare(world).await;
    world.settle().await;
    world.forget();
    act(world).await;
    world.settle().await;
    world.essentials().await
}

async fn crashed(world: &World, prepare: impl AsyncFn(&World), act: impl AsyncFn(&World), stop: Stop, place: &str) {
    prepare(world).await;
    world.settle().await;
    world.gate.stop_at(stop);
    act(world).await;
    halt(world, place).await;
}

/// Waits until the operator comes to its step, and starts another.
async fn halt(world: &World, place: &str) {
    let halted = tokio::time::timeout(world.pace.scaled(CONVERGES_WITHIN), world.gate.halted()).await;
    assert!(halted.is_ok(), "{place}: the operator comes there; it did {:#?}", world.gate.steps());
    world.crash().await;
    world.restart().await;
}

async fn ends_alike(world: &World, end: &Value, place: &str) {
    let alike = world.holds_within(CONVERGES_WITHIN, async |world: &World| world.essentials().await == *end).await;
    assert!(alike, "{place}: ended as\n{:#}\ninstead of\n{end:#}", world.essentials().await);
    world.settle().await;
    world.assert_sound(place).await;
}
