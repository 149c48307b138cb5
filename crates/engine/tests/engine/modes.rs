//! Dry runs write nothing; shadows write to Kubernetes alone.

use std::sync::{Arc, Mutex};

use kube::ResourceExt as _;
use portolan_core::{Action, ObjectId, Plan, Problem, reasons};
use portolan_engine::WriteMode;
use serde_json::json;

use crate::gadget::{FINALIZER, gadget};
use crate::world::World;

type Planned = Arc<Mutex<Vec<(ObjectId, Result<Plan, Problem>)>>>;

async fn world(mode: WriteMode) -> (World, Planned) {
    let planned = Planned::default();
    let sink = planned.clone();
    let world = World::with(|context| {
        context.mode = mode;
        context.plans = Some(Arc::new(move |id, plan| sink.lock().unwrap().push((id, plan))));
    })
    .await;
    (world, planned)
}

fn actions(planned: &Planned) -> Vec<(String, Vec<Action>)> {
    let planned = std::mem::take(&mut *planned.lock().unwrap());
    let actions = |plan: Plan| plan.changes.into_iter().map(|change| change.action).collect();
    planned.into_iter().map(|(id, plan)| (id.to_string(), plan.map(actions).unwrap_or_default())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_plans_everything_and_writes_nothing() {
    let (mut world, planned) = world(WriteMode::DryRun).await;
    world.create(gadget("new", "1")).await;
    world.create(gadget("bad", "invalid")).await;
    let mut leaving = gadget("leaving", "1");
    leaving.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    world.create(leaving).await;
    world.remote.set("leaving", "1");
    world.delete("leaving").await;
    let before = world.version();

    world.run();
    world.settle().await;
    world.after(3600).await;

    assert_eq!(world.version(), before);
    assert_eq!(world.remote.take_writes(), Vec::<String>::new());
    let expected = [
        ("Gadget/default/bad", vec![]),
        ("Gadget/default/leaving", vec![Action::Delete]),
        ("Gadget/default/new", vec![Action::Create]),
    ];
    assert_eq!(actions(&planned), expected.map(|(id, actions)| (id.to_owned(), actions)));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_tells_why_there_is_no_plan() {
    let (mut world, planned) = world(WriteMode::DryRun).await;
    world.remote.problems("a", &Problem::waiting(reasons::DEPENDENCY_ERROR, "no zone"), 1);
    world.create(gadget("a", "1")).await;

    world.run();
    world.settle().await;

    let planned = planned.lock().unwrap();
    let (_, Err(problem)) = &planned[0] else { panic!("there is no plan: {planned:?}") };
    assert_eq!(problem.message, "no zone");
}

#[tokio::test(start_paused = true)]
async fn a_shadow_writes_statuses_and_applies_nothing() {
    let (mut world, planned) = world(WriteMode::Shadow).await;
    world.remote.set("same", "1");
    world.create(gadget("same", "1")).await;
    world.create(gadget("new", "1")).await;

    world.run();
    world.settle().await;

    assert_eq!(world.remote.take_writes(), Vec::<String>::new());
    assert_eq!((world.ready("same").await, world.ready("new").await), ("True/Synced".to_owned(), String::new()));
    assert_eq!(world.get("new").await.unwrap().finalizers(), [FINALIZER]);
    assert_eq!(actions(&planned).len(), 2);
    world.merge("new", json!({"spec": {"value": "2"}})).await;
    assert_eq!(actions(&planned).len(), 1);
}
