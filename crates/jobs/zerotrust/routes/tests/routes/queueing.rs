//! Routes become tasks.

use kube::ResourceExt as _;
use portolan_zerotrust_model::Phase;
use portolan_zerotrust_routes::Settings;
use serde_json::json;

use crate::world::{FINALIZER, KOPF, TUNNEL, World, ZONE, quiet};

#[tokio::test(start_paused = true)]
async fn a_route_becomes_a_task_that_waits_and_gets_its_finalizer_first() {
    let world = World::start().await;

    world.publish("app", "app.example.com", &[]).await;

    let task = world.tasks().get("cfzt-default-app").await.unwrap();
    let status = task.status.clone().unwrap();
    assert_eq!(status.phase, Some(Phase::Pending));
    assert_eq!((status.message.as_deref(), status.worker_pod.as_deref()), (Some("Queued by kube_worker"), Some("")));
    assert_eq!((task.spec.tunnel_id.as_deref(), task.spec.zone_id.as_deref()), (Some(TUNNEL), Some(ZONE)));
    assert_eq!(world.route("app").await.finalizers(), [FINALIZER]);
    assert_eq!(world.told("app").await, ["Queued"]);
    assert!(world.simulator.requests().iter().all(|request| request.method == "GET"), "this side only reads");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_has_gets_what_is_wanted_now() {
    let world = World::start().await;
    world.publish("app", "app.example.com", &[]).await;

    world.publish("app", "other.example.com", &[]).await;

    let task = world.tasks().get("cfzt-default-app").await.unwrap();
    assert_eq!(task.spec.hostname.as_deref(), Some("other.example.com"));
    assert_eq!(task.phase(), Phase::Pending);
}

#[tokio::test(start_paused = true)]
async fn scenario_45_a_task_that_a_worker_has_is_left_alone_until_it_ends() {
    let world = World::start().await;
    world.publish("app", "app.example.com", &[]).await;
    world.end_task("cfzt-default-app", Phase::InProgress, "", json!({})).await;

    world.publish("app", "other.example.com", &[]).await;
    let task = world.tasks().get("cfzt-default-app").await.unwrap();
    assert_eq!(task.spec.hostname.as_deref(), Some("app.example.com"));
    world.complete("app", "app.example.com").await;

    let task = world.tasks().get("cfzt-default-app").await.unwrap();
    assert_eq!(task.spec.hostname.as_deref(), Some("other.example.com"));
    let existing = task.spec.existing();
    assert_eq!(existing.hostname.as_deref(), Some("app.example.com"), "what stands is known to the next task");
}

#[tokio::test(start_paused = true)]
async fn routes_get_no_finalizer_where_their_users_do_not_want_one() {
    let mut world = World::empty().await;
    world.run(portolan_zerotrust_routes::Settings { finalizers: false, ..quiet() });
    world.publish("one", "one.example.com", &[]).await;
    assert!(world.route("one").await.finalizers().is_empty());

    world.run(quiet());
    world.publish("two", "two.example.com", &[("finalizer", "false")]).await;

    assert!(world.route("two").await.finalizers().is_empty());
    assert_eq!(world.task_names().await, ["cfzt-default-one", "cfzt-default-two"]);
}

#[tokio::test(start_paused = true)]
async fn scenario_62_an_older_frameworks_finalizer_and_annotations_go() {
    let mut world = World::empty().await;
    world.publish_in("default", "app", "app.example.com", &[]).await;
    let older = json!({"metadata": {"finalizers": [KOPF], "annotations": {"kopf.cfzt.cloudflare.com/last": "{}"}}});
    let (parameters, patch) = (kube::api::PatchParams::default(), kube::api::Patch::Merge(&older));
    world.routes().patch("app", &parameters, &patch).await.unwrap();
    world.tenants().patch("prod", &parameters, &patch).await.unwrap();

    world.run(quiet());
    world.after(5).await;
    world.complete("app", "app.example.com").await;

    let route = world.route("app").await;
    assert_eq!(route.finalizers(), [FINALIZER]);
    assert!(!route.annotations().keys().any(|name| name.starts_with("kopf")));
    let tenant = world.tenant().await;
    assert_eq!(tenant.finalizers(), [FINALIZER]);
    assert!(!tenant.annotations().keys().any(|name| name.starts_with("kopf")));
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_told_on_the_route_until_it_is_done() {
    let world = World::start().await;
    world.publish("app", "app.example.com", &[]).await;

    let message = "GroupNotFound: the account has no group Nope";
    world.end_task("cfzt-default-app", Phase::Failed, message, json!({})).await;
    world.after(2).await;
    assert_eq!(world.told("app").await, ["Queued", "GroupNotFound"]);
    assert_eq!(world.note("app", "status").await.as_deref(), Some("Error"));
    assert_eq!(world.note("app", "statusMessage").await.as_deref(), Some(message));
    assert_eq!(world.tenant_says("Ready").await, "False/PartialFailure");
    world.complete("app", "app.example.com").await;

    assert_eq!((world.note("app", "status").await, world.note("app", "statusMessage").await), (None, None));
    assert_eq!(world.tenant_says("Ready").await, "True/ReconcileSuccess");
}

#[tokio::test(start_paused = true)]
async fn a_reason_that_a_task_gives_as_a_value_is_told_whatever_its_message_begins_with() {
    let world = World::start().await;
    world.publish("app", "app.example.com", &[]).await;

    let failed = (Phase::Failed, Some("GroupNotFound"));
    world.end_task_for("cfzt-default-app", failed, "PolicyNotFound: so the message begins", json!({})).await;
    world.after(2).await;

    assert_eq!(world.told("app").await, ["Queued", "GroupNotFound"]);
}

#[tokio::test(start_paused = true)]
async fn finding_28_what_cloudflare_refused_is_sent_again_only_when_it_would_be_something_else() {
    let mut world = World::empty().await;
    world.run(Settings::default());
    world.after(5).await;
    world.publish("app", "app.example.com", &[]).await;
    let refused = "CloudflareAPIError: writing the rule: 400 (1056): the configuration is not valid";
    world.end_task("cfzt-default-app", Phase::Failed, refused, json!({})).await;

    world.after(600).await;

    let phase = async |world: &World| world.tasks().get("cfzt-default-app").await.unwrap().phase();
    assert_eq!(phase(&world).await, Phase::Failed);
    let there = json!({
        "type": "CNAME", "name": "app.example.com", "content": format!("{TUNNEL}.cfargotunnel.com"), "proxied": true, "ttl": 1,
    });
    world.simulator.put("dns_records", ZONE, there).unwrap();
    world.after(130).await;
    assert_eq!(phase(&world).await, Phase::Pending);
}

#[tokio::test(start_paused = true)]
async fn what_was_in_the_way_of_a_task_is_looked_for_until_it_is_gone() {
    let mut world = World::empty().await;
    world.run(Settings::default());
    world.after(5).await;
    world.publish("app", "app.example.com", &[]).await;
    let hindered = "DNSRecordConflict: app.example.com has a record of somebody else";
    world.end_task("cfzt-default-app", Phase::Failed, hindered, json!({})).await;

    world.after(130).await;

    let task = world.tasks().get("cfzt-default-app").await.unwrap();
    assert_eq!(task.phase(), Phase::Pending);
}

#[tokio::test(start_paused = true)]
async fn scenario_30_two_routes_that_ask_at_once_never_both_get_a_name() {
    let world = World::start().await;
    for name in ["a", "b", "c", "d"] {
        world.publish_in("default", name, "shared.example.com", &[]).await;
    }
    world.after(5).await;

    assert_eq!(world.task_names().await, ["cfzt-default-a"]);
    assert_eq!(world.told("b").await, ["HostnameConflict"]);
}
