//! Results become Secrets, states and annotations.

use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams};
use portolan_zerotrust_model::Phase;
use serde_json::{Value, json};

use crate::world::{ACCOUNT, NAMESPACE, TUNNEL, World, ZONE};

#[tokio::test(start_paused = true)]
async fn scenario_01_a_result_becomes_state_and_annotations_and_the_task_goes() {
    let world = World::start().await;
    world.settled("app").await;

    assert_eq!(world.task_names().await, Vec::<String>::new());
    let state = world.state("cfzt-default-app").await.unwrap().data.unwrap();
    assert_eq!((state["httproute_namespace"].as_str(), state["httproute_name"].as_str()), ("default", "app"));
    let ids: Value = serde_json::from_str(&state["cloudflare_ids"]).unwrap();
    assert_eq!(ids["cnameRecordId"], "record-app");
    assert_eq!(world.note("app", "hostnameRouteId").await.as_deref(), Some(TUNNEL));
    assert_eq!(world.note("app", "lastReconcile").await, Some(state["last_sync_time"].clone()));
    assert_eq!(world.told("app").await, ["Queued", "Reconciled"]);
}

#[tokio::test(start_paused = true)]
async fn scenario_05_a_settled_world_writes_and_asks_nothing() {
    let world = World::start().await;
    world.settled("app").await;
    // The server lets events go after an hour.
    world.after(3700).await;
    let (version, requests) = (world.version(), world.simulator.requests().len());

    world.after(3600).await;

    assert_eq!((world.version(), world.simulator.requests().len()), (version, requests));
}

#[tokio::test(start_paused = true)]
async fn scenario_07_edited_outputs_are_put_back_without_a_task() {
    let world = World::start().await;
    world.settled("app").await;
    let edit = json!({"metadata": {"annotations": {
        "cfzt.cloudflare.com/cnameRecordId": "mine", "cfzt.cloudflare.com/accessAppId": "theirs"}}});

    let patch = kube::api::Patch::Merge(&edit);
    world.routes().patch("app", &kube::api::PatchParams::default(), &patch).await.unwrap();
    world.after(2).await;

    assert_eq!(world.note("app", "cnameRecordId").await.as_deref(), Some("record-app"));
    assert_eq!(world.note("app", "accessAppId").await, None);
    assert_eq!(world.task_names().await, Vec::<String>::new());
}

/// Plays the worker: a token was made, and its credentials lie ready.
async fn hand_over(world: &World, route: &str, client_secret: &str) {
    let task = world.tasks().get(&format!("cfzt-default-{route}")).await.unwrap();
    let secret = json!({
        "metadata": { "name": "handed-over", "ownerReferences": [{
            "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareTask",
            "name": task.name_any(), "uid": task.uid().unwrap() }] },
        "stringData": { "client_id": "id.access", "client_secret": client_secret },
    });
    let secret = serde_json::from_value(secret).unwrap();
    world.secrets(NAMESPACE).create(&PostParams::default(), &secret).await.unwrap();
    let result = json!({
        "accountId": ACCOUNT, "hostname": format!("{route}.example.com"), "tunnelId": TUNNEL, "zoneId": ZONE,
        "hasRule": true, "cnameRecordId": "r1", "accessAppId": "a1", "accessPolicyIds": ["p1"],
        "serviceTokenId": "t1", "serviceTokenClientId": "id.access", "serviceTokenCreated": true,
        "serviceTokenSecretName": "handed-over",
    });
    world.end_task(&task.name_any(), Phase::Completed, "done", result).await;
    world.after(2).await;
}

const WITH_TOKEN: &[(&str, &str)] = &[("access.enabled", "true"), ("serviceToken.enabled", "true")];

#[tokio::test(start_paused = true)]
async fn scenario_03_new_credentials_are_copied_and_what_was_handed_over_goes() {
    let world = World::start().await;
    world.publish("api", "api.example.com", WITH_TOKEN).await;
    hand_over(&world, "api", "s3cret").await;

    let secret = world.secrets("default").get("api-cfzt-service-token").await.unwrap();
    let data = secret.data.clone().unwrap();
    assert_eq!((&data["client_id"].0[..], &data["CF_ACCESS_CLIENT_SECRET"].0[..]), (&b"id.access"[..], &b"s3cret"[..]));
    assert!(world.secrets(NAMESPACE).get_opt("handed-over").await.unwrap().is_none());
    assert_eq!(world.note("api", "serviceTokenSecretName").await.as_deref(), Some("api-cfzt-service-token"));
    let state = world.state("cfzt-default-api").await.unwrap();
    assert!(!serde_json::to_string(&state).unwrap().contains("s3cret"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_or_edited_secret_asks_for_new_credentials_of_the_same_token() {
    let world = World::start().await;
    world.publish("api", "api.example.com", WITH_TOKEN).await;
    hand_over(&world, "api", "s3cret").await;
    assert_eq!(world.task_names().await, Vec::<String>::new());

    world.secrets("default").delete("api-cfzt-service-token", &DeleteParams::default()).await.unwrap();
    world.after(2).await;

    let task = world.tasks().get("cfzt-default-api").await.unwrap();
    let token = task.spec.operations.clone().unwrap().service_token.unwrap();
    assert_eq!(token.secret_present, Some(false));
    assert_eq!(task.spec.existing().service_token_id.as_deref(), Some("t1"));
    hand_over(&world, "api", "an0ther").await;
    let secret = world.secrets("default").get("api-cfzt-service-token").await.unwrap();
    assert_eq!(&secret.data.unwrap()["client_secret"].0[..], b"an0ther");

    let edit = json!({"stringData": {"client_secret": "guess"}});
    let patch = kube::api::Patch::Merge(&edit);
    let parameters = kube::api::PatchParams::default();
    world.secrets("default").patch("api-cfzt-service-token", &parameters, &patch).await.unwrap();
    world.after(2).await;
    assert_eq!(world.task_names().await, ["cfzt-default-api"]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_else_is_in_the_way_before_anything_is_queued() {
    let world = World::start().await;
    let theirs = json!({ "metadata": { "name": "api-cfzt-service-token" }, "stringData": { "password": "theirs" } });
    world.apply("v1", "Secret", theirs).await;

    world.publish("api", "api.example.com", WITH_TOKEN).await;
    assert_eq!(world.told("api").await, ["SecretConflict"]);
    assert_eq!(world.task_names().await, Vec::<String>::new());
    world.secrets("default").delete("api-cfzt-service-token", &DeleteParams::default()).await.unwrap();
    world.after(40).await;

    assert_eq!(world.task_names().await, ["cfzt-default-api"]);
}

#[tokio::test(start_paused = true)]
async fn scenario_51_a_deleted_route_goes_when_everything_else_has() {
    let world = World::start().await;
    world.settled("app").await;

    world.delete_route("app").await;
    world.after(2).await;
    let removal = world.tasks().get("cfzt-delete-default-app").await.unwrap();
    assert_eq!(removal.spec.to_delete().cname_record_id.as_deref(), Some("record-app"));
    assert!(world.routes().get_opt("app").await.unwrap().is_some());
    world.complete_removal("app").await;

    assert!(world.routes().get_opt("app").await.unwrap().is_none());
    assert!(world.state("cfzt-default-app").await.is_none());
    assert_eq!(world.task_names().await, Vec::<String>::new());
    assert_eq!(world.told("app").await, ["Queued", "Reconciled", "Deleted"]);
}

#[tokio::test(start_paused = true)]
async fn scenario_52_deleted_under_way_a_route_is_taken_down_from_what_its_task_made() {
    let world = World::start().await;
    world.publish("app", "app.example.com", &[]).await;
    world.end_task("cfzt-default-app", Phase::InProgress, "", json!({})).await;

    world.delete_route("app").await;
    world.after(5).await;
    assert_eq!(world.task_names().await, ["cfzt-default-app"], "the worker has it");
    world.complete("app", "app.example.com").await;

    let removal = world.tasks().get("cfzt-delete-default-app").await.unwrap();
    assert_eq!(removal.spec.to_delete().cname_record_id.as_deref(), Some("record-app"));
}

#[tokio::test(start_paused = true)]
async fn scenario_55_a_route_that_opts_out_keeps_nothing_of_ours() {
    let world = World::start().await;
    world.settled("app").await;

    world.publish("app", "app.example.com", &[("enabled", "false")]).await;
    world.complete_removal("app").await;

    let route = world.route("app").await;
    assert!(route.finalizers().is_empty());
    let left: Vec<_> = route.annotations().keys().filter(|name| name.starts_with("cfzt.")).collect();
    assert_eq!(left, ["cfzt.cloudflare.com/enabled", "cfzt.cloudflare.com/hostname"]);
}
