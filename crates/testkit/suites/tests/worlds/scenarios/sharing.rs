//! Who may use which credentials, domains and sources.

use portolan_testkit_suites::manifests::{self as m, NAMESPACE, ZONE, ZONE_ID, with};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

const WWW: &str = "DNSRecord/apps/www";

fn limited(lists: Value) -> Value {
    let mut object = with(m::credentials("main", "cloudflare-api"), "isDefault", json!(true));
    for (list, value) in lists.as_object().cloned().unwrap_or_default() {
        object["spec"][list] = value;
    }
    object
}

async fn assert_refused(world: &World, case: &str) {
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "False/NotAllowed", "{case}: {}", world.cluster.message(WWW).await);
    assert_eq!(world.writes(), [""; 0], "{case}: nothing was written");
    let events = world.cluster.events(WWW).await;
    assert!(events.iter().any(|event| event.contains("NotAllowed")), "{case}: {events:?}");
}

#[tokio::test(start_paused = true)]
async fn finding_13_credentials_serve_the_namespaces_and_names_that_they_list() {
    let ways = [
        ("the default credentials", json!({})),
        ("credentials by name", json!({ "credentialsRef": { "name": "main" } })),
        ("a zone by its id", json!({ "zoneId": ZONE_ID })),
    ];
    let limits = [
        json!({ "allowedNamespaces": ["shop"] }),
        json!({ "allowedNamespaces": [] }),
        json!({ "allowedDomains": ["*.shop.example.com"] }),
    ];
    for (way, details) in ways {
        for limit in &limits {
            let world = cloudflare_world().start().await;
            world.cluster.apply(&limited(limit.clone())).await;
            world.settle().await;
            world.forget();

            world.cluster.apply(&with(m::record("www", "192.0.2.1"), "cloudflare", details.clone())).await;
            assert_refused(&world, &format!("{way} {limit}")).await;

            // Whoever is let in is published.
            world
                .cluster
                .apply(&limited(json!({ "allowedNamespaces": [NAMESPACE], "allowedDomains": ["*.example.com"] })))
                .await;
            world.until_ready(WWW, "True/Synced").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn finding_13_a_domain_serves_the_namespaces_and_names_that_it_lists_also_by_its_zone_id() {
    for details in [json!({}), json!({ "zoneId": ZONE_ID })] {
        for limit in [("allowedNamespaces", json!(["shop"])), ("allowedDomains", json!(["example.com"]))] {
            let world = cloudflare_world().start().await;
            world.cluster.apply(&with(m::domain(ZONE), limit.0, limit.1.clone())).await;
            world.settle().await;
            world.forget();

            world.cluster.apply(&with(m::record("www", "192.0.2.1"), "cloudflare", details.clone())).await;

            assert_refused(&world, &format!("{details} {limit:?}")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn finding_13_what_stood_before_a_list_was_narrowed_stays_and_can_be_deleted() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.until_ready(WWW, "True/Synced").await;

    world.cluster.apply(&limited(json!({ "allowedNamespaces": ["shop"] }))).await;
    world.settle().await;
    world.forget();
    world.cluster.apply(&m::record("www", "192.0.2.2")).await;
    assert_refused(&world, "an edit").await;
    assert_eq!(world.cloudflare.all("dns_records")[0]["content"], "192.0.2.1");

    world.cluster.delete(WWW).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "gone");
    assert_eq!(world.cloudflare.all("dns_records"), [Value::Null; 0]);
}

#[tokio::test(start_paused = true)]
async fn finding_36_a_source_of_another_namespace_is_not_published_without_a_grant() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::namespace("shop")).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
    });
    world.cluster.apply(&service).await;
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.9" }] } } });
    world.cluster.patch_status("Service/shop/web", &status).await;
    let source = json!({ "service": { "name": "web", "namespace": "shop" } });
    let spec = json!({ "name": format!("www.{ZONE}"), "sourceRef": source, "cloudflare": {} });
    world.forget();

    world.cluster.apply(&m::object("DNSRecord", "www", spec.clone())).await;

    assert_refused(&world, "no grant").await;
    let status = world.cluster.get(WWW).await.expect("it exists")["status"].to_string();
    assert!(!status.contains("192.0.2.9"), "{status}");
    // Whether it exists is not told either.
    let mut missing = spec;
    missing["sourceRef"]["service"]["name"] = json!("missing");
    world.cluster.apply(&m::object("DNSRecord", "www", missing)).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "False/NotAllowed");
}
