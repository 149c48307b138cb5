//! Taking a name down.

use kube::ResourceExt as _;
use portolan_cloudflare_sim::{Effect, Fault};
use portolan_zerotrust_model::{CloudflareTask, Phase};

use crate::world::{ACCOUNT, World, ZONE, deletion, task, with_token};

async fn published(world: &World) -> CloudflareTask {
    let task = with_token(task("web"));
    let status = world.carry(&task).await;
    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    world.requests();
    deletion(&task, &status)
}

fn is_empty(world: &World) -> bool {
    world.rules().is_empty()
        && world.records().is_empty()
        && world.apps().is_empty()
        && world.service_tokens().is_empty()
}

#[tokio::test(start_paused = true)]
async fn scenario_51_a_name_is_unpublished_before_it_is_unprotected() {
    let world = World::start().await;
    let deletion = published(&world).await;

    let status = world.carry(&deletion).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert!(is_empty(&world));
    let writes = world.writes();
    let at = |text: &str| writes.iter().position(|write| write.contains(text)).unwrap_or_else(|| panic!("{writes:?}"));
    assert!(at("dns_records") < at("configurations") && at("configurations") < at("DELETE access/apps"), "{writes:?}");
    assert!(at("DELETE access/apps") < at("DELETE access/service_tokens"), "{writes:?}");
    assert!(status.result.unwrap_or_default().footprint().is_empty());
}

#[tokio::test(start_paused = true)]
async fn scenario_53_what_is_gone_already_is_success() {
    let world = World::start().await;
    let deletion = published(&world).await;
    for record in world.simulator.objects("dns_records", ZONE) {
        world.simulator.remove("dns_records", record["id"].as_str().unwrap());
    }
    for (collection, objects) in [("access_apps", world.apps()), ("service_tokens", world.service_tokens())] {
        for object in objects {
            world.simulator.remove(collection, object["id"].as_str().unwrap());
        }
    }

    let status = world.carry(&deletion).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert!(is_empty(&world));
}

#[tokio::test(start_paused = true)]
async fn scenario_53_an_application_that_cannot_be_deleted_is_tried_for_ever() {
    let world = World::start().await;
    let deletion = published(&world).await;
    world.simulator.fault(Fault::on("DELETE", "access/apps", Effect::status(500)));

    let status = world.carry(&deletion).await;

    assert_eq!(status.phase, Some(Phase::Failed), "{status:?}");
    assert!(status.next_attempt_time.is_some());
    assert_eq!((world.rules(), world.records()), (vec![], vec![]));
    assert_eq!(world.service_tokens().len(), 1, "the token stays as long as its application does");

    world.simulator.clear_faults();
    world.after(120).await;

    assert_eq!(world.phase(&deletion.name_any()).await, Phase::Completed);
    assert!(is_empty(&world));
}

#[tokio::test(start_paused = true)]
async fn a_refused_delete_is_tried_again_though_nobody_changes_anything() {
    let world = World::start().await;
    let deletion = published(&world).await;
    world.simulator.fault(Fault::on("DELETE", "access/apps", Effect::status(400)));

    let status = world.carry(&deletion).await;
    assert_eq!(status.phase, Some(Phase::Failed), "{status:?}");

    world.simulator.clear_faults();
    world.after(900).await;

    assert_eq!(world.phase(&deletion.name_any()).await, Phase::Completed);
    assert!(is_empty(&world), "{ACCOUNT} is as it was");
}

#[tokio::test(start_paused = true)]
async fn scenario_52_a_task_that_becomes_a_deletion_also_finds_what_it_made_and_never_recorded() {
    let world = World::start().await;
    let apps = "/accounts/{account_id}/access/apps";
    world.simulator.fault(Fault::on("POST", apps, Effect::Reset).after_write());
    world.simulator.fault(Fault::on("GET", apps, Effect::status(500)).count(portolan_cloudflare_sim::Count::Always));
    world.carry(&with_token(task("web"))).await;
    world.simulator.clear_faults();
    world.simulator.fault(Fault::on("POST", apps, Effect::Reset).after_write());

    world.after(30).await;
    world.simulator.clear_faults();
    let action = serde_json::json!({ "action": "delete", "deleteIds": { "hostname": "web.example.com" } });
    world.edit("cfzt-shop-web", action).await;
    world.patch_status("cfzt-shop-web", serde_json::json!({ "phase": "Pending" })).await;
    world.after(60).await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert!(is_empty(&world), "{:?} {:?}", world.apps(), world.service_tokens());
}
