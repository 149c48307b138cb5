//! Where nothing may be applied, what would change at Cloudflare is told.

use std::sync::{Arc, Mutex};

use portolan_core::{Plan, Problem};
use portolan_engine::WriteMode;

use crate::world::{World, quiet};

type Plans = Arc<Mutex<Vec<(String, Result<Plan, Problem>)>>>;

/// What is planned for what stands in a world, in which nothing is written.
async fn planned(world: &mut World) -> Vec<(String, Result<Plan, Problem>)> {
    let (plans, mut context) = (Plans::default(), world.context());
    context.mode = WriteMode::DryRun;
    let sink = Arc::clone(&plans);
    context.plans = Some(Arc::new(move |id, plan| sink.lock().unwrap().push((id.key.name, plan))));
    let version = world.version();
    world.run_with(&context, quiet());
    world.after(5).await;
    assert_eq!(world.version(), version, "nothing is written");
    let plans = plans.lock().unwrap().clone();
    plans.into_iter().filter(|(name, _)| name != "prod").collect()
}

#[tokio::test(start_paused = true)]
async fn a_plan_shows_what_would_be_made_at_cloudflare_in_its_order() {
    let mut world = World::empty().await;
    let access = [("access.enabled", "true"), ("access.allowEmails", "ann@example.com")];
    world.publish_in("default", "app", "app.example.com", &access).await;

    let plans = planned(&mut world).await;

    let [(_, Ok(plan))] = plans.as_slice() else { panic!("one plan: {plans:?}") };
    let kinds: Vec<&str> = plan.changes.iter().map(|change| change.target.kind.as_str()).collect();
    assert_eq!(kinds.len(), 3, "{kinds:?}");
    assert!(kinds[0].contains("Access") && kinds[2].contains("DNS"), "{kinds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_cannot_be_made_says_why() {
    let mut world = World::empty().await;
    world.publish_in("default", "app", "app.example.com", &[("template", "nope")]).await;

    let plans = planned(&mut world).await;

    let [(_, Err(problem))] = plans.as_slice() else { panic!("one problem: {plans:?}") };
    assert_eq!(problem.reason, "TemplateNotFound");
}
