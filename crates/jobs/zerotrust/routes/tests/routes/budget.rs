//! Many deletions at once are held until somebody releases them.

use portolan_core::condition;
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn many_deletions_are_held_shown_on_the_tenant_and_go_when_released() {
    let world = World::start().await;
    for number in 0..14 {
        world.settled(&format!("r{number}")).await;
    }
    for number in 0..14 {
        world.delete_route(&format!("r{number}")).await;
    }
    world.after(5).await;

    assert_eq!(world.tenant_says("Stalled").await, "True/DeletionBudgetExceeded");
    let removals = world.task_names().await.len();
    assert!(removals < 14, "{removals} removals were queued");
    assert!(world.told("r13").await.contains(&"DeletionBudgetExceeded".to_owned()));
    let status = world.tenant().await.status.unwrap();
    let message = condition::find(&status.conditions, "Stalled").unwrap().message.clone();
    let digest = message.rsplit('"').nth(1).unwrap();
    let release = json!({"metadata": {"annotations": {"portolan.dev/release-deletions": digest}}});
    let patch = kube::api::Patch::Merge(&release);
    world.tenants().patch("prod", &kube::api::PatchParams::default(), &patch).await.unwrap();
    world.after(10).await;

    assert_eq!(world.task_names().await.len(), 14);
    assert_eq!(world.tenant_says("Stalled").await, "");
}
