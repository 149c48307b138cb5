//! Bad input: refused when it is applied where the schema can say so, else a condition with a sentence.

use portolan_testkit_suites::cloudflare_world;
use portolan_testkit_suites::manifests::{self as m, ZONE, cluster_object, object, with};
use serde_json::{Value, json};

/// Sets a field of the spec; null takes it away.
fn set(object: &mut Value, field: &str, value: Value) {
    let spec = object["spec"].as_object_mut().expect("manifests have a spec");
    match value {
        Value::Null => drop(spec.remove(field)),
        value => drop(spec.insert(field.to_owned(), value)),
    }
}

fn without(mut object: Value, field: &str) -> Value {
    set(&mut object, field, Value::Null);
    object
}

fn record(spec: Value) -> Value {
    let mut record = m::record("wrong", "192.0.2.1");
    for (field, value) in spec.as_object().cloned().unwrap_or_default() {
        set(&mut record, &field, value);
    }
    record
}

/// Manifests that the API server refuses, each with a word that the refusal must have.
fn refused() -> Vec<(&'static str, Value)> {
    let credentials = m::credentials("wrong", "cloudflare-api");
    vec![
        ("type", record(json!({ "type": "AX" }))),
        ("ttl", record(json!({ "ttl": 0 }))),
        ("ttl", record(json!({ "ttl": 10 }))),
        ("IPv4", record(json!({ "content": "2001:db8::1" }))),
        ("IPv4", record(json!({ "content": "1.2.3.400" }))),
        ("IPv6", record(json!({ "type": "AAAA", "content": "192.0.2.1" }))),
        ("proxied", record(json!({ "type": "TXT", "content": "x", "proxied": true }))),
        ("content", record(json!({ "content": null }))),
        ("name", record(json!({ "name": "" }))),
        ("name", record(json!({ "name": "x".repeat(300) }))),
        ("priority", record(json!({ "type": "MX", "content": "mx.example.net", "priority": 70_000 }))),
        ("sourceRef", record(json!({ "content": null, "sourceRef": {} }))),
        ("addressSelection", record(json!({ "addressSelection": "Some" }))),
        ("comment", record(json!({ "comment": "x".repeat(101) }))),
        ("cloudflare", record(json!({ "cloudflare": null }))),
        ("network", m::route("wrong", "10.0.0.1/8")),
        ("network", m::route("wrong", "not a network")),
        ("tunnelRef", without(m::route("wrong", "10.0.0.0/8"), "tunnelRef")),
        (
            "virtualNetworkRef",
            with(m::route("wrong", "10.0.0.0/8"), "virtualNetworkRef", json!({ "name": "a", "cloudflareName": "b" })),
        ),
        ("comment", with(m::network("wrong"), "comment", json!("x".repeat(501)))),
        ("accountId", without(credentials.clone(), "accountId")),
        ("authType", with(credentials.clone(), "authType", json!("password"))),
        ("secretRef", without(credentials, "secretRef")),
        ("domain", m::cluster_object("CloudflareDomain", "wrong", json!({ "domain": "not a domain" }))),
        ("newTunnel", cluster_object("ClusterTunnel", "wrong", json!({ "cloudflare": {} }))),
        (
            "newTunnel",
            object(
                "Tunnel",
                "wrong",
                json!({
                    "newTunnel": { "name": "a" }, "existingTunnel": { "name": "b" }, "cloudflare": {},
                }),
            ),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_the_schema_can_say_is_refused_when_it_is_applied() {
    let world = cloudflare_world().start().await;
    let mut accepted = Vec::new();
    for (word, manifest) in refused() {
        match world.cluster.try_apply(&manifest).await {
            Ok(_) => accepted.push(format!("{word}: {}", manifest["spec"])),
            Err(refusal) => {
                let text = refusal.to_string();
                if !text.contains(word) {
                    accepted.push(format!("{word} is not named: {text}"));
                }
            }
        }
    }
    println!("bad input: {} manifests refused when applied", refused().len() - accepted.len());
    assert!(accepted.is_empty(), "{accepted:#?}");
}

/// Manifests that only a look around shows to be wrong, each with a word that the condition must have.
fn unworkable() -> Vec<(&'static str, Value)> {
    let refer = |kind: &str, name: &str| json!({ "kind": kind, "name": name });
    vec![
        (
            "no-such-credentials",
            record(json!({ "cloudflare": { "credentialsRef": { "name": "no-such-credentials" } } })),
        ),
        ("no-such-secret", record(json!({ "cloudflare": { "secret": "no-such-secret" } }))),
        ("www.example.net", record(json!({ "name": "www.example.net" }))),
        ("not a full name", record(json!({ "name": "www" }))),
        ("@", record(json!({ "name": "@" }))),
        (
            "no-such-service",
            record(json!({ "content": null, "type": null, "sourceRef": { "service": { "name": "no-such-service" } } })),
        ),
        (
            "no-such-tunnel",
            with(m::route("wrong", "10.0.0.0/8"), "tunnelRef", refer("ClusterTunnel", "no-such-tunnel")),
        ),
        (
            "no-such-network",
            with(m::route("wrong", "10.0.0.0/8"), "virtualNetworkRef", json!({ "name": "no-such-network" })),
        ),
        (
            "no-such-name",
            with(m::route("wrong", "10.0.0.0/8"), "virtualNetworkRef", json!({ "cloudflareName": "no-such-name" })),
        ),
        ("no-such-secret", m::credentials("wrong", "no-such-secret")),
        ("example.net", m::domain("example.net")),
        (
            "no-such-tunnel",
            cluster_object(
                "ClusterTunnel",
                "wrong",
                json!({
                    "existingTunnel": { "name": "no-such-tunnel" }, "cloudflare": {},
                }),
            ),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_only_a_look_around_shows_gets_a_condition_with_a_sentence() {
    let mut wrong = Vec::new();
    for (word, manifest) in unworkable() {
        let world = cloudflare_world().start().await;
        world.cluster.apply(&manifest).await;
        world.settle().await;
        let id = m::id(&manifest);
        let (ready, message) = (world.cluster.ready(&id).await, world.cluster.message(&id).await);
        if !ready.starts_with("False/") || !message.contains(word) {
            wrong.push(format!("{word}: {ready} {message}"));
        }
        assert_eq!(world.writes(), [""; 0], "{word}: nothing is written to Cloudflare");
        println!("bad input: {ready}: {message}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_parse_hurts_only_itself() {
    let world = cloudflare_world().start().await;
    // The schema that users had before allowed more.
    let definition = "CustomResourceDefinition/dnsrecords.networking.cloudflare-operator.io";
    let mut before = world.cluster.get(definition).await.expect("it is installed");
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    before["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = open;
    world.cluster.patch(definition, &json!({ "spec": before["spec"] })).await;
    world.cluster.apply(&record(json!({ "ttl": "soon" }))).await;

    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("DNSRecord/apps/www").await, "True/Synced");
    assert_eq!(world.cluster.ready("DNSRecord/apps/wrong").await, "False/InvalidConfig");
    let message = world.cluster.message("DNSRecord/apps/wrong").await;
    assert!(message.contains("ttl"), "{message}");
    assert!(world.cloudflare.marked("dns_records").iter().all(|one| one["name"] == format!("www.{ZONE}")));
}
