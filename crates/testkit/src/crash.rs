//! Crash points: a scenario is run once to count its steps, then once for each side of each step, with the operator
//! killed there and started again. Every such run must end as the undisturbed one did.
//!
//! After a step and before the next one the outside looks the same, and nothing else is left of a killed operator: under a paused
//! clock each step is tried on the side after it, the first one on both, and all on both in a soak (`PORTOLAN_SOAK`).
//!
//! Under a paused clock the same steps come each time. On the wall's clock something that is done now and then (a
//! credential looked at, a Secret held) falls into one run and not into the next: a step that does not come again in
//! `ATTEMPTS` runs is counted apart.

use std::time::Duration;

use serde_json::Value;

use crate::failpoints::{IoStep, Stop, StopSide};
use crate::pace::WorldPace;
use crate::world::{Builder, World};

/// How long a world may take to come to its end after a crash.
const CONVERGES_WITHIN: Duration = Duration::from_secs(1800);

/// How often a step is waited for on the wall's clock.
const ATTEMPTS: usize = 3;

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Steps of the undisturbed run.
    pub steps: usize,
    /// Crashes that happened.
    pub crashes: usize,
    /// Sides of steps that did not come again; none but on the wall's clock.
    pub missed: usize,
}

impl std::ops::AddAssign for Tried {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.missed += other.missed;
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
    let (steps, pace) = (world.failpoints.steps(), world.pace);
    // On a shared server two operators would do each other's work.
    world.crash().await;
    drop(world);
    assert!(!steps.is_empty(), "{name}: the scenario makes the operator do something");
    let begin = async |stop: Stop| {
        let world = builder.clone().start().await;
        prepare(&world).await;
        world.settle().await;
        world.failpoints.stop_at(stop);
        act(&world).await;
        world
    };
    crash_at_each(name, &steps, &end, pace, begin).await
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
    let (end, steps, pace) = (world.canonical_form().await, world.failpoints.steps(), world.pace);
    world.crash().await;
    assert!(!steps.is_empty(), "{name}: the start makes the operator do something");
    let begin = async |stop: Stop| {
        let world = asleep().await;
        world.failpoints.stop_at(stop);
        world
    };
    crash_at_each(name, &steps, &end, pace, begin).await
}

/// Begins anew for each side of each step, crashes there, and looks how it ends.
async fn crash_at_each(
    name: &str,
    steps: &[IoStep],
    end: &Value,
    pace: WorldPace,
    begin: impl AsyncFn(Stop) -> World,
) -> Tried {
    let thorough = pace.is_walls() || std::env::var_os("PORTOLAN_SOAK").is_some();
    let sides = |number: usize| {
        let before = (thorough || number == 1).then_some(StopSide::Before);
        before.into_iter().chain([StopSide::After])
    };
    let mut tried = Tried { steps: steps.len(), ..Tried::default() };
    for (number, step) in (1..).zip(steps) {
        for side in sides(number) {
            let place = format!("{name}, crashed {side:?} step {number} ({})", step.text);
            if crash_at(&place, end, || begin(Stop { step: number, side })).await {
                tried.crashes += 1;
            } else {
                tried.missed += 1;
            }
        }
    }
    tried
}

/// Whether the operator came to its step and was killed there. It ends alike in either case.
async fn crash_at(place: &str, end: &Value, begin: impl AsyncFn() -> World) -> bool {
    for _ in 0..ATTEMPTS {
        let world = begin().await;
        let halted = halt(&world, end, place).await;
        ends_alike(&world, end, place).await;
        // On a shared server two operators would do each other's work.
        world.crash().await;
        if halted {
            return true;
        }
    }
    false
}

async fn undisturbed(world: &World, prepare: impl AsyncFn(&World), act: impl AsyncFn(&World)) -> Value {
    prepare(world).await;
    world.settle().await;
    world.forget();
    act(world).await;
    world.settle().await;
    world.canonical_form().await
}

/// Waits until the operator comes to its step, and starts another. False where all was done without coming there.
async fn halt(world: &World, end: &Value, place: &str) -> bool {
    let halted = tokio::time::timeout(world.pace.scaled(CONVERGES_WITHIN), world.failpoints.halted());
    let halted = if world.pace.is_walls() {
        tokio::select! {
            biased;
            halted = halted => halted.is_ok(),
            () = done(world, end) => {
                world.failpoints.open();
                return false;
            }
        }
    } else {
        halted.await.is_ok()
    };
    assert!(halted, "{place}: the operator comes there; it did {:#?}", world.failpoints.steps());
    world.crash().await;
    world.restart().await;
    true
}

/// Waits until everything is as it should end, and nothing happens any more.
async fn done(world: &World, end: &Value) {
    let alike = async |world: &World| world.canonical_form().await == *end;
    while !world.holds_within(CONVERGES_WITHIN, alike).await || !world.rests_within(CONVERGES_WITHIN).await {}
}

async fn ends_alike(world: &World, end: &Value, place: &str) {
    let alike = world.holds_within(CONVERGES_WITHIN, async |world: &World| world.canonical_form().await == *end).await;
    assert!(alike, "{place}: ended as\n{:#}\ninstead of\n{end:#}", world.canonical_form().await);
    world.settle().await;
    world.assert_sound(place).await;
}
