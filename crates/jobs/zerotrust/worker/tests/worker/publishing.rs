//! What a task that goes well does, and what it costs.

use portolan_zerotrust_model::Phase;
use serde_json::json;

use crate::world::{TUNNEL, World, protected, task};

#[tokio::test(start_paused = true)]
async fn a_plain_task_is_a_rule_and_a_record_for_three_calls_beside_the_first_look() {
    let world = World::start().await;
    world.carry(&task("first")).await;
    world.requests();

    let status = world.carry(&task("web")).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    let result = status.result.unwrap().footprint();
    assert_eq!((result.tunnel_id.as_deref(), result.has_rule), (Some(TUNNEL), true));
    assert!(result.cname_record_id.is_some() && result.access_app_id.is_none());
    assert!(world.rules().contains(&"web.example.com".to_owned()));
    assert!(world.records().contains(&"web.example.com".to_owned()));
    let requests = world.requests();
    assert_eq!(requests.len(), 3, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_completed_task_says_what_was_executed_by_whom_and_what_changed() {
    let world = World::start().await;

    let status = world.carry(&task("web")).await;

    assert_eq!((status.observed_generation, status.annotation_hash.as_deref()), (Some(1), Some("hash-1")));
    assert_eq!((status.worker_pod.as_deref(), status.attempts), (Some("w1"), Some(1)));
    assert_eq!(status.message.as_deref(), Some("Reconciled web.example.com: 2 created"));
    assert_eq!(status.changes.len(), 2, "{:?}", status.changes);
    assert_eq!((status.next_attempt_time, status.pending_operation), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_plain_task_costs_two_status_writes_and_no_lease() {
    let world = World::start().await;
    world.carry(&task("first")).await;
    let created = world.create(&task("web")).await;
    let version = |task: &portolan_zerotrust_model::CloudflareTask| {
        task.metadata.resource_version.as_deref().unwrap().parse::<u64>().unwrap()
    };

    world.settle().await;

    let written = version(&world.get("cfzt-shop-web").await) - version(&created);
    assert_eq!(written, 2, "claim and completion");
    assert!(world.leases().list(&kube::api::ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_finds_everything_in_place_is_completed_with_one_write_and_without_a_call_that_changes() {
    let world = World::start().await;
    let first = world.carry(&task("web")).await;
    world.requests();
    let mut again = task("web");
    again.metadata.name = Some("cfzt-again".to_owned());
    let existing = json!(first.result);
    let mut value = json!(again);
    value["spec"]["existingIds"] = json!({
        "hostname": existing["hostname"], "tunnelId": existing["tunnelId"], "zoneId": existing["zoneId"],
        "hasRule": true, "cnameRecordId": existing["cnameRecordId"],
    });

    let status = world.carry(&serde_json::from_value(value).unwrap()).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert_eq!(status.message.as_deref(), Some("Reconciled web.example.com: unchanged"));
    assert_eq!(world.writes(), Vec::<String>::new());
    assert_eq!(status.result.unwrap().footprint(), first.result.unwrap().footprint());
}

#[tokio::test(start_paused = true)]
async fn a_protected_name_has_its_application_before_its_rule_and_its_record() {
    let world = World::start().await;

    let status = world.carry(&protected(task("web"))).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    let writes = world.writes();
    let at = |text: &str| writes.iter().position(|write| write.contains(text)).unwrap_or_else(|| panic!("{writes:?}"));
    assert!(at("access/apps") < at("configurations") && at("configurations") < at("dns_records"), "{writes:?}");
    assert_eq!(world.apps().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn scenario_45_a_spec_that_changes_meanwhile_is_executed_afterwards_and_its_hash_is_the_stored_one() {
    let world = World::start().await;
    world.simulator.set_latency(std::time::Duration::from_secs(1));
    world.create(&task("web")).await;
    world.until(async || world.phase("cfzt-shop-web").await == Phase::InProgress).await;

    let edit = json!({
        "metadata": { "annotations": { "cfzt.cloudflare.com/annotation-hash": "hash-2" } },
        "spec": { "operations": { "tunnelRoute": { "originService": "http://other.shop.svc:80" } } },
    });
    let (params, patch) = (kube::api::PatchParams::default(), kube::api::Patch::Merge(edit));
    world.tasks().patch("cfzt-shop-web", &params, &patch).await.unwrap();
    world.settle().await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert_eq!((status.observed_generation, status.annotation_hash.as_deref()), (Some(2), Some("hash-2")));
    let config = world.simulator.state()["configurations"][TUNNEL]["config"].to_string();
    assert!(config.contains("other.shop.svc") && !config.contains("web.shop.svc"), "{config}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_put_back_in_line_by_its_status_runs_again() {
    let world = World::start().await;
    world.carry(&task("web")).await;

    world.patch_status("cfzt-shop-web", json!({ "phase": "Pending", "workerPod": "" })).await;
    world.settle().await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(2)), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_outside_the_operators_namespace_is_nobodys_business() {
    let world = World::start().await;
    let mut stray = task("web");
    stray.metadata.namespace = Some("default".to_owned());
    let api: kube::Api<portolan_zerotrust_model::CloudflareTask> =
        kube::Api::namespaced(world.client.clone(), "default");

    api.create(&kube::api::PostParams::default(), &stray).await.unwrap();
    world.settle().await;

    assert_eq!(api.get("cfzt-shop-web").await.unwrap().status, None);
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn scenario_33_three_hundred_tasks_at_once_share_their_writes() {
    let world = World::empty().await;
    for number in 0..300 {
        world.create(&task(&format!("web-{number}"))).await;
    }
    let mut world = world;
    world.simulator.set_latency(std::time::Duration::from_millis(150));
    world.simulator.take_requests();

    world.run(portolan_zerotrust_worker::Settings::new("w1", "1").alone());
    world.settle().await;

    assert_eq!(world.rules().len(), 300);
    assert_eq!(world.records().len(), 300);
    let requests = world.requests();
    assert!(requests.len() <= 12, "{requests:?}");
}
