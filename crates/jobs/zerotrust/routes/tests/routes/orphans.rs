//! What no route asks for any more is found and taken down, carefully.

use kube::api::PostParams;
use portolan_zerotrust_model::HttpRoute;
use serde_json::json;

use crate::world::{ACCOUNT, NAMESPACE, TUNNEL, World, ZONE, quiet};

/// What an earlier process left for a route.
async fn leave_state(world: &World, namespace: &str, route: &str, annotations: serde_json::Value) {
    let ids = json!({ "hostnameRouteId": TUNNEL, "hasRule": true, "cnameRecordId": format!("record-{route}") });
    let state = json!({
        "metadata": {
            "name": format!("cfzt-{namespace}-{route}"), "namespace": NAMESPACE, "annotations": annotations,
            "labels": { "app.kubernetes.io/component": "state-tracker" },
        },
        "data": {
            "annotation_hash": "h", "cloudflare_ids": ids.to_string(), "hostname": format!("{route}.example.com"),
            "httproute_namespace": namespace, "httproute_name": route, "tunnel_id": TUNNEL, "zone_id": ZONE,
            "account_id": ACCOUNT, "tenant_name": "prod", "tenant_namespace": "default",
            "credential_secret": "default/cloudflare-api-token/token",
        },
    });
    let state = serde_json::from_value(state).unwrap();
    world.states().create(&PostParams::default(), &state).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_state_whose_route_is_gone_is_taken_down_and_forgotten() {
    let mut world = World::empty().await;
    leave_state(&world, "default", "gone", json!({})).await;
    world.run(quiet());
    world.after(5).await;

    assert_eq!(world.task_names().await, ["cfzt-delete-default-gone"]);
    assert!(world.state("cfzt-default-gone").await.is_some(), "it stays until everything is gone");
    world.complete_removal("gone").await;

    assert!(world.state("cfzt-default-gone").await.is_none());
    assert_eq!(world.task_names().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn scenario_61_many_orphans_at_once_need_a_second_look() {
    let mut world = World::empty().await;
    for number in 0..8 {
        leave_state(&world, "default", &format!("gone{number}"), json!({})).await;
    }
    world.run(quiet());
    world.after(30).await;
    assert_eq!(world.task_names().await, Vec::<String>::new());

    world.after(120).await;

    assert_eq!(world.task_names().await.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn scenario_61_what_is_outside_the_watched_namespaces_is_left_alone() {
    let mut world = World::empty().await;
    leave_state(&world, "elsewhere", "gone", json!({})).await;
    world.publish_in("elsewhere", "app", "app.example.com", &[("tenant", "default/prod")]).await;
    world.run(portolan_zerotrust_routes::Settings { watch_namespaces: vec!["default".to_owned()], ..quiet() });
    world.after(900).await;

    assert_eq!(world.task_names().await, Vec::<String>::new());
    assert!(world.state("cfzt-elsewhere-gone").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn scenario_61_a_kind_that_is_not_served_takes_nothing_down() {
    let mut world = World::empty().await;
    leave_state(&world, "default", "app", json!({})).await;
    let definitions: kube::Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = kube::Api::all(world.client.clone());
    definitions.delete("httproutes.gateway.networking.k8s.io", &kube::api::DeleteParams::default()).await.unwrap();
    world.after(1).await;

    world.run(quiet());
    world.after(900).await;

    assert_eq!(world.task_names().await, Vec::<String>::new());
    assert!(world.state("cfzt-default-app").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn scenario_60_a_state_is_forgotten_when_its_user_says_so() {
    let mut world = World::empty().await;
    leave_state(&world, "default", "gone", json!({ "cfzt.cloudflare.com/force-forget": "true" })).await;
    world.run(quiet());
    world.after(5).await;

    assert!(world.state("cfzt-default-gone").await.is_none());
    assert_eq!(world.task_names().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn scenario_54_a_route_that_comes_back_cancels_the_removal_of_what_stands() {
    let mut world = World::empty().await;
    leave_state(&world, "default", "app", json!({})).await;
    world.run(quiet());
    world.after(5).await;
    assert_eq!(world.task_names().await, ["cfzt-delete-default-app"]);

    world.publish("app", "app.example.com", &[]).await;

    assert_eq!(world.task_names().await, ["cfzt-default-app"]);
    let task = world.tasks().get("cfzt-default-app").await.unwrap();
    assert_eq!(task.spec.existing().cname_record_id.as_deref(), Some("record-app"));
    let routes: kube::Api<HttpRoute> = world.routes();
    assert!(routes.get_opt("app").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn scenario_60_a_tenant_stays_until_nothing_is_published_with_it() {
    let world = World::start().await;
    world.settled("app").await;

    world.tenants().delete("prod", &kube::api::DeleteParams::default()).await.unwrap();
    world.after(5).await;
    assert!(world.tenants().get_opt("prod").await.unwrap().is_some());
    world.delete_route("app").await;
    world.after(2).await;
    world.complete_removal("app").await;
    world.after(5).await;

    assert!(world.tenants().get_opt("prod").await.unwrap().is_none());
}
