//! The controller of tasks is held to its word: what is shipped, with one step broken from outside, ends in a panic.

use kube::{Api, CustomResourceExt as _};
use portolan_core::job::plain;
use portolan_engine::CancellationToken;
use portolan_testkit::breach::{BreachWorld, PureStep, missed};
use portolan_zerotrust_model::{CloudflareTask, Phase};
use serde_json::json;

use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::task_controller::TaskReconciler;

/// A task without a credential, which is told so.
async fn task_without_credential() -> (BreachWorld, TaskReconciler) {
    let task = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareTask",
        "metadata": {
            "name": "cfzt-default-app", "namespace": "default",
            "annotations": { "cfzt.cloudflare.com/schema-version": "1" },
        },
        "spec": {
            "action": "reconcile", "hostname": "app.example.com", "accountId": "0123456789abcdef0123456789abcdef",
            "httprouteRef": { "name": "app", "namespace": "default", "uid": "u" },
        },
    });
    let world = BreachWorld::with::<TaskReconciler>(&[plain(CloudflareTask::crd())], &task).await;
    let (metrics, shutdown) = (Metrics::registered(&world.context.metrics), CancellationToken::new());
    let tasks = TaskReconciler::new(&world.context, &world.clients(), &Settings::default(), &metrics, &shutdown);
    (world, tasks)
}

#[tokio::test(start_paused = true)]
async fn a_pure_step_over_a_task_that_asks_the_world_outside_is_found() {
    assert_eq!(missed(PureStep::all(), task_without_credential).await, []);
}

#[tokio::test(start_paused = true)]
async fn the_controller_of_tasks_keeps_its_word() {
    let (world, tasks) = task_without_credential().await;
    assert!(!world.panics_by_itself(tasks).await);
    let api: Api<CloudflareTask> = Api::namespaced(world.context.client.clone(), "default");
    let task = api.get("cfzt-default-app").await.expect("it is there");
    assert_eq!(task.phase(), Phase::Failed, "it was told why it cannot be done");
}
