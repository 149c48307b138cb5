//! Scenarios 1–12: credentials and accounts.

use std::time::Duration;

use portolan_cloudflare_sim::Grant;
use portolan_testkit_suites::cloudflare_world;
use portolan_testkit_suites::manifests::{
    self as m, ACCOUNT, CANARY, NAMESPACE, OPERATOR_NAMESPACE, TUNNEL, annotated, with,
};
use serde_json::{Value, json};

const WWW: &str = "DNSRecord/apps/www";

fn secret(namespace: &str, name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace }, "stringData": data })
}

fn in_cloudflare(mut object: Value, details: Value) -> Value {
    object["spec"]["cloudflare"] = details;
    object
}

#[tokio::test(start_paused = true)]
async fn scenario_1_credentials_are_validated_with_one_call_and_show_the_account() {
    let world = cloudflare_world().start().await;

    world.cluster.apply(&m::credentials("second", "cloudflare-api")).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("CloudflareCredentials/second").await, "True/Validated");
    assert_eq!(world.cloudflare.take_requests(), [format!("GET accounts/{ACCOUNT}")]);
    let object = world.cluster.get("CloudflareCredentials/second").await.expect("it exists");
    assert_eq!((&object["status"]["accountName"], &object["status"]["validated"]), (&json!("Example"), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn scenario_2_a_global_key_goes_with_its_e_mail() {
    let world = cloudflare_world().start().await;
    world.cloudflare.simulator.add_key("admin@example.com", "canary-key", Grant::all());
    let data = json!({ "CLOUDFLARE_API_KEY": "canary-key", "CLOUDFLARE_EMAIL": "admin@example.com" });
    world.cluster.apply(&secret(OPERATOR_NAMESPACE, "global", data)).await;

    world.cluster.apply(&with(m::credentials("global", "global"), "authType", json!("globalAPIKey"))).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("CloudflareCredentials/global").await, "True/Validated");
}

#[tokio::test(start_paused = true)]
async fn scenario_3_two_defaults_are_none() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&with(m::credentials("second", "cloudflare-api"), "isDefault", json!(true))).await;

    world.cluster.apply(&m::network("corp")).await;
    world.settle().await;

    for name in ["main", "second"] {
        assert_eq!(world.cluster.ready(&format!("CloudflareCredentials/{name}")).await, "False/DuplicateDefault");
    }
    let ready = world.cluster.ready("VirtualNetwork/corp").await;
    assert!(ready.starts_with("False/"), "{ready}");
    assert_eq!(world.writes(), [""; 0]);

    world.cluster.apply(&with(m::credentials("second", "cloudflare-api"), "isDefault", json!(false))).await;
    world.settle_within(Duration::from_secs(20)).await;
    assert_eq!(world.cluster.ready("VirtualNetwork/corp").await, "True/Synced");
    assert_eq!(world.cluster.ready("CloudflareCredentials/main").await, "True/Validated");
}

#[tokio::test(start_paused = true)]
async fn scenario_4_the_name_default_makes_no_default() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::credentials("default", "cloudflare-api")).await;
    world.cluster.apply(&with(m::credentials("main", "cloudflare-api"), "isDefault", json!(false))).await;
    world.settle().await;

    world.cluster.apply(&m::network("corp")).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("VirtualNetwork/corp").await, "False/DependencyError");
    let message = world.cluster.message("VirtualNetwork/corp").await;
    assert!(message.contains("no default"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn scenario_5_an_inline_secret_is_read_beside_the_object() {
    let world = cloudflare_world().start().await;
    world.cloudflare.simulator.add_token("canary-inline", Grant::all());
    world.cluster.apply(&m::token_secret(NAMESPACE, "inline", "canary-inline")).await;
    world.cloudflare.simulator.revoke_token(CANARY);
    let details = json!({ "secret": "inline", "accountId": ACCOUNT });

    world.cluster.apply(&in_cloudflare(m::record("www", "192.0.2.1"), details.clone())).await;
    let tunnel = m::object("Tunnel", "inline", json!({ "existingTunnel": { "name": TUNNEL }, "cloudflare": details }));
    world.cluster.apply(&tunnel).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "True/Synced", "{}", world.cluster.message(WWW).await);
    assert!(world.cluster.ready("Tunnel/apps/inline").await.starts_with("True/"));
}

#[tokio::test(start_paused = true)]
async fn scenario_6_objects_of_the_cluster_read_inline_secrets_in_the_operators_namespace() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::token_secret(OPERATOR_NAMESPACE, "inline", CANARY)).await;
    let details = json!({ "secret": "inline", "accountName": "Example" });

    let tunnel = m::cluster_object(
        "ClusterTunnel",
        "inline",
        json!({ "existingTunnel": { "name": TUNNEL }, "cloudflare": details }),
    );
    world.cluster.apply(&tunnel).await;
    world.settle().await;

    let message = world.cluster.message("ClusterTunnel/inline").await;
    assert!(world.cluster.ready("ClusterTunnel/inline").await.starts_with("True/"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn scenario_7_an_api_key_needs_an_e_mail_from_somewhere() {
    let world = cloudflare_world().start().await;
    world.cloudflare.simulator.add_key("admin@example.com", "canary-key", Grant::all());
    world.cluster.apply(&secret(NAMESPACE, "inline", json!({ "CLOUDFLARE_API_KEY": "canary-key" }))).await;

    world.cluster.apply(&in_cloudflare(m::record("www", "192.0.2.1"), json!({ "secret": "inline" }))).await;
    world.settle().await;
    let message = world.cluster.message(WWW).await;
    assert!(message.contains("CLOUDFLARE_EMAIL") && message.contains("CLOUDFLARE_API_EMAIL"), "{message}");

    let data = json!({ "CLOUDFLARE_API_KEY": "canary-key", "CLOUDFLARE_API_EMAIL": "admin@example.com" });
    world.cluster.apply(&secret(NAMESPACE, "inline", data)).await;
    world.settle_within(Duration::from_secs(20)).await;
    assert_eq!(world.cluster.ready(WWW).await, "True/Synced", "{}", world.cluster.message(WWW).await);
}

#[tokio::test(start_paused = true)]
async fn scenario_9_credentials_are_validated_at_most_once_an_hour() {
    let world = cloudflare_world().start().await;

    world.pass(Duration::from_secs(3 * 3600)).await;

    let asked = world.cloudflare.take_requests();
    let validations = asked.iter().filter(|text| text.starts_with("GET accounts/")).count();
    assert!(validations <= 3, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn scenario_12_an_object_whose_credentials_are_gone_waits_for_them_or_for_force() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::credentials("extra", "cloudflare-api")).await;
    world
        .cluster
        .apply(&in_cloudflare(m::record("www", "192.0.2.1"), json!({ "credentialsRef": { "name": "extra" } })))
        .await;
    world.until_ready(WWW, "True/Synced").await;
    world.cluster.delete("CloudflareCredentials/extra").await;
    world.settle().await;
    assert_eq!(world.cluster.ready("CloudflareCredentials/extra").await, "False/DependencyError");
    let message = world.cluster.message("CloudflareCredentials/extra").await;
    assert!(message.contains("what 1 object made") && message.contains("force-delete"), "{message}");
    world.cluster.annotate("CloudflareCredentials/extra", "cloudflare-operator.io/force-delete", "true").await;
    world.settle().await;
    assert_eq!(world.cluster.ready("CloudflareCredentials/extra").await, "gone");
    let told = world.cluster.list("Event").await;
    let warned = |event: &Value| {
        event["note"].as_str().is_some_and(|note| note.contains("deleted while 1 object still needed it"))
    };
    assert!(told.iter().any(warned), "whoever deletes what is in use is told: {told:?}");

    world.cluster.delete(WWW).await;
    world.settle().await;
    let message = world.cluster.message(WWW).await;
    assert!(message.contains("extra"), "{message}");
    assert_eq!(world.cluster.ready(WWW).await.split('/').next(), Some("False"));

    world.cluster.annotate(WWW, "cloudflare-operator.io/force-delete", "true").await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "gone");
    let left = world.cloudflare.marked("dns_records");
    let events = world.cluster.list("Event").await;
    let forced = events.iter().find(|event| event["reason"] == "ForcedCleanup").expect("an event tells");
    assert!(
        forced["note"].as_str().is_some_and(|note| note.contains(left[0]["id"].as_str().unwrap_or("?"))),
        "{forced}"
    );
}

#[tokio::test(start_paused = true)]
async fn finding_30_a_secret_without_a_namespace_is_read_in_the_operators() {
    let world = cloudflare_world().start().await;
    for (name, namespace) in [("empty", Some("")), ("absent", None)] {
        let mut object = m::credentials(name, "cloudflare-api");
        if let Some(namespace) = namespace {
            object["spec"]["secretRef"]["namespace"] = json!(namespace);
        }
        world.cluster.apply(&object).await;
        world.settle().await;

        let id = format!("CloudflareCredentials/{name}");
        assert_eq!(world.cluster.ready(&id).await, "True/Validated", "{}", world.cluster.message(&id).await);
        assert!(
            world.cluster.get(&id).await.expect("it exists")["spec"]["secretRef"]["namespace"]
                != "cloudflare-operator-system"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_default_that_is_annotated_by_others_is_not_asked_again() {
    let world = cloudflare_world().start().await;

    world
        .cluster
        .apply(&annotated(with(m::credentials("main", "cloudflare-api"), "isDefault", json!(true)), "team", "x"))
        .await;
    world.settle().await;

    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
}
