//! The four worked examples of the specification, exactly: objects, annotations, Secrets, texts. They run on any API server.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::manifests::PREFIX;
use super::{GROUP, ORIGIN, RouteManifest, TUNNEL, config};
use crate::world::{Builder, World};
use crate::zerotrust::RouteWorld as _;

/// Runs all four, each in a world of its own; says how many.
pub async fn all(builder: &Builder) -> usize {
    let all: [LocalBoxFuture<'_, ()>; 4] = [
        Box::pin(plain_hostname(builder)),
        Box::pin(access_with_an_email_list(builder)),
        Box::pin(group_and_service_token(builder)),
        Box::pin(update_in_place(builder)),
    ];
    let mut held = 0;
    for example in all {
        example.await;
        held += 1;
    }
    held
}

async fn published(builder: &Builder, route: RouteManifest) -> World {
    let world = builder.clone().start().await;
    world.cluster.apply(&route.into()).await;
    world.settle().await;
    world
}

/// The outputs that a route carries, without the prefix.
async fn outputs(world: &World, name: &str, inputs: &[&str]) -> BTreeSet<String> {
    let route = world.cluster.get(&format!("HTTPRoute/default/{name}")).await.expect("the route is there");
    let annotations = route["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let suffixes = annotations.keys().filter_map(|name| name.strip_prefix(PREFIX));
    suffixes.filter(|suffix| !inputs.contains(suffix)).map(str::to_owned).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Rule, record, outputs, state and no task: what every example has.
async fn assert_published(world: &World, route: &str, hostname: &str) {
    let rules = config(world, TUNNEL)["ingress"].as_array().cloned().unwrap_or_default();
    let place = rules.iter().position(|rule| rule["hostname"] == hostname).expect("there is a rule");
    assert_eq!(
        super::histories::end::unwalled(rules[place].clone()),
        json!({ "hostname": hostname, "service": ORIGIN })
    );
    let is_protected = !world.name(hostname).apps().is_empty();
    assert_eq!(rules[place]["originRequest"]["access"]["required"] == true, is_protected, "{:#}", rules[place]);
    assert!(place + 1 < rules.len(), "before the catch-all");
    let record = world.name(hostname).record();
    assert_eq!(record["type"], "CNAME");
    assert_eq!(record["content"], format!("{TUNNEL}.cfargotunnel.com"));
    assert_eq!((&record["proxied"], &record["ttl"]), (&json!(true), &json!(1)));
    assert_eq!(world.output(route, "hostnameRouteId").await.as_deref(), Some(TUNNEL));
    assert_eq!(world.output(route, "cnameRecordId").await.as_deref(), record["id"].as_str());
    let time = world.output(route, "lastReconcile").await.expect("it is written");
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { 'N' } else { c }).collect();
    assert_eq!(shape, "NNNN-NN-NNTNN:NN:NNZ", "{time}");
    let state = world.state_of(route).await.expect("the state is kept");
    for key in ["annotation_hash", "cloudflare_ids", "last_sync_time"] {
        assert!(state["data"][key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {state:#}");
    }
    assert_eq!(
        (&state["data"]["httproute_namespace"], &state["data"]["httproute_name"]),
        (&json!("default"), &json!(route))
    );
    assert_eq!(world.tasks().await, Vec::<Value>::new(), "the task is gone");
    assert_eq!(world.cluster.ready("CloudflareZeroTrustTenant/default/prod").await, "True/ReconcileSuccess");
}

async fn plain_hostname(builder: &Builder) {
    let world = published(builder, RouteManifest::to("simple-app", "simple.example.com")).await;

    assert_published(&world, "simple-app", "simple.example.com").await;
    for collection in ["access_apps", "access_policies", "service_tokens"] {
        assert_eq!(world.cloudflare.all(collection), Vec::<Value>::new(), "{collection}");
    }
    let written = outputs(&world, "simple-app", &["enabled", "hostname"]).await;
    assert_eq!(written, set(&["hostnameRouteId", "cnameRecordId", "lastReconcile"]));
    world.crash().await;
}

fn include(policy: &Value) -> &Value {
    &policy["include"]
}

async fn access_with_an_email_list(builder: &Builder) {
    let inputs = ["enabled", "hostname", "accessApp", "allowEmails", "sessionDuration"];
    let route = RouteManifest::to("admin-panel", "admin.example.com")
        .allowing("admin@example.com,manager@example.com")
        .with("sessionDuration", "8h");
    let world = published(builder, route).await;

    assert_published(&world, "admin-panel", "admin.example.com").await;
    let app = world.name("admin.example.com").app();
    assert_eq!(
        (&app["name"], &app["type"], &app["session_duration"]),
        (&json!("admin-panel"), &json!("self_hosted"), &json!("8h"))
    );
    let policies = app["policies"].as_array().cloned().unwrap_or_default();
    assert_eq!(policies.len(), 1);
    assert_eq!(policies[0]["decision"], "allow");
    let emails =
        json!([{ "email": { "email": "admin@example.com" } }, { "email": { "email": "manager@example.com" } }]);
    assert_eq!(*include(&policies[0]), emails);
    let written = outputs(&world, "admin-panel", &inputs).await;
    assert_eq!(written, set(&["hostnameRouteId", "cnameRecordId", "lastReconcile", "accessAppId", "accessPolicyIds"]));
    assert_eq!(world.output("admin-panel", "accessAppId").await.as_deref(), app["id"].as_str());
    assert_eq!(world.output("admin-panel", "accessPolicyIds").await.as_deref(), policies[0]["id"].as_str());
    let order = positions(&world, &[("POST", "/access/apps"), ("PUT", "/configurations"), ("POST", "/dns_records")]);
    assert!(order.is_sorted(), "protected before it is published: {order:?}");
    world.crash().await;
}

/// Places of requests in the log, by method and what their path has in it.
fn positions(world: &World, wanted: &[(&str, &str)]) -> Vec<usize> {
    let log = world.cloudflare.simulator.requests();
    let place =
        |(method, part): &(&str, &str)| log.iter().position(|one| one.method == *method && one.path.contains(part));
    wanted.iter().map(|one| place(one).expect("it was asked")).collect()
}

async fn group_and_service_token(builder: &Builder) {
    let inputs = ["enabled", "hostname", "accessApp", "allowGroups", "serviceToken"];
    let route = RouteManifest::to("api-service", "api.example.com")
        .with("accessApp", "true")
        .with("allowGroups", "Engineering")
        .with("serviceToken", "true");
    let world = published(builder, route).await;

    assert_published(&world, "api-service", "api.example.com").await;
    let app = world.name("api.example.com").app();
    assert_eq!((&app["name"], &app["session_duration"]), (&json!("api-service"), &json!("24h")));
    let policies = app["policies"].as_array().cloned().unwrap_or_default();
    let of = |decision: &str| policies.iter().find(|one| one["decision"] == decision).expect("there is such a policy");
    assert_eq!(policies.len(), 2);
    assert_eq!(*include(of("allow")), json!([{ "group": { "id": GROUP } }]));
    let token = world.cloudflare.one("service_tokens", |one| one["name"] == "api-service-service-token");
    assert_eq!(*include(of("non_identity")), json!([{ "service_token": { "token_id": token["id"] } }]));
    let (id, secret) = world.token_secret("api-service").await.expect("the Secret is there");
    assert!(id == token["client_id"].as_str().unwrap_or_default() && !secret.is_empty());
    let name = world.name("api.example.com");
    assert!(name.opens_with_token_of("api-service").await, "a request that carries them gets through");
    assert_eq!(name.visited(&[]).status(), Some(302), "one without is sent to the login");
    let written = outputs(&world, "api-service", &inputs).await;
    let wanted = [
        "hostnameRouteId",
        "cnameRecordId",
        "lastReconcile",
        "accessAppId",
        "accessPolicyIds",
        "serviceTokenId",
        "serviceTokenSecretName",
    ];
    assert_eq!(written, set(&wanted));
    assert_eq!(world.output("api-service", "serviceTokenId").await.as_deref(), token["id"].as_str());
    assert_eq!(
        world.output("api-service", "serviceTokenSecretName").await.as_deref(),
        Some("api-service-cfzt-service-token")
    );
    world.crash().await;
}

async fn update_in_place(builder: &Builder) {
    let route = RouteManifest::to("app", "app.example.com").allowing("user1@example.com");
    let world = published(builder, route.clone()).await;
    let (app, time) = (world.name("app.example.com").app(), world.output("app", "lastReconcile").await);
    world.pass(Duration::from_secs(300)).await;
    world.forget();

    world.cluster.apply(&route.allowing("user1@example.com,user2@example.com").into()).await;
    world.settle().await;

    let now = world.name("app.example.com").app();
    assert_eq!((&now["id"], &now["policies"][0]["id"]), (&app["id"], &app["policies"][0]["id"]));
    let emails = json!([{ "email": { "email": "user1@example.com" } }, { "email": { "email": "user2@example.com" } }]);
    assert_eq!(*include(&now["policies"][0]), emails);
    let writes = world.writes();
    assert!(writes.len() == 1 && writes[0].contains("access/apps"), "one write: {writes:?}");
    assert_ne!(world.output("app", "lastReconcile").await, time);
    assert_eq!(world.cloudflare.all("access_apps").len(), 1);
    assert_eq!(world.name("app.example.com").records().len(), 1);
    world.crash().await;
}
