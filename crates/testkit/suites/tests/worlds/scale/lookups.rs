//! How many objects are looked at because of others: counted at two sizes, since what is looked at for each Secret and each
//! record would be looked at ten thousand times ten thousand times.

use portolan_testkit_suites::manifests::{self as m, CANARY, NAMESPACE, ZONE};
use portolan_testkit_suites::zerotrust as z;
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

/// A record that reads its token from a Secret of its own, where the Secret is used.
fn record_with_secret(number: usize) -> [Value; 2] {
    let name = format!("r{number}");
    let spec = json!({
        "name": format!("{name}.{ZONE}"), "type": "A", "content": "192.0.2.1", "cloudflare": { "secret": name },
    });
    [m::token_secret(NAMESPACE, &name, CANARY), m::object("DNSRecord", &name, spec)]
}

/// How many objects the operator looked at one by one since it started.
async fn scanned(world: &World) -> u64 {
    let metrics = world.metrics().await;
    let counts = metrics.lines().filter_map(|line| line.strip_prefix("portolan_objects_scanned_total{"));
    counts.filter_map(|line| line.split_once("} ")?.1.parse::<u64>().ok()).sum()
}

/// What a start takes where so many records, each with a Secret of its own, are as wanted.
async fn start_beside(size: usize) -> u64 {
    let world = cloudflare_world().start().await;
    let all: Vec<Value> = (0..size).flat_map(record_with_secret).collect();
    world.cluster.create_all(&all).await;
    world.settle().await;
    assert_eq!(super::not_ready(&world).await, [""; 0]);

    world.restart().await;
    world.settle().await;

    scanned(&world).await
}

#[tokio::test(start_paused = true)]
async fn finding_21_a_start_beside_twice_as_many_secrets_and_records_looks_at_twice_as_many_objects() {
    let (small, large) = (start_beside(40).await, start_beside(80).await);

    assert!(large < 3 * small, "{small} and {large} objects were looked at");
    assert!(large < 80 * 40, "{large} objects were looked at for 80 records");
}

/// What it takes that each of so many Services changes, beside as many records that are made from them.
async fn services_changed_beside(size: usize) -> u64 {
    let world = cloudflare_world().start().await;
    let service = |number: usize, address: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": format!("s{number}"), "namespace": NAMESPACE },
            "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }], "externalIPs": [address] },
        })
    };
    let record = |number: usize| {
        let spec = json!({ "name": format!("s{number}.{ZONE}"), "sourceRef": { "service": { "name": format!("s{number}") } }, "cloudflare": {} });
        m::object("DNSRecord", &format!("s{number}"), spec)
    };
    let all: Vec<Value> = (0..size).flat_map(|number| [service(number, "192.0.2.1"), record(number)]).collect();
    world.cluster.create_all(&all).await;
    world.settle().await;
    let before = scanned(&world).await;

    for number in 0..size {
        world.cluster.apply(&service(number, "192.0.2.2")).await;
    }
    world.settle().await;

    scanned(&world).await - before
}

#[tokio::test(start_paused = true)]
async fn finding_21_a_change_of_a_service_is_no_reason_to_look_at_records_of_others() {
    let (small, large) = (services_changed_beside(20).await, services_changed_beside(40).await);

    assert!(large <= 3 * small.max(40), "{small} and {large} objects were looked at");
}

/// What a restart takes beside so many tenants, each of which publishes a name.
async fn tenants_tallied(size: usize) -> u64 {
    let world = z::world().start().await;
    let one = |number: usize| {
        let (tenant, route, hostname) = (format!("t{number}"), format!("r{number}"), format!("r{number}.example.com"));
        [z::tenant(&tenant), z::RouteManifest::to(&route, &hostname).with("tenant", &tenant).into()]
    };
    let all: Vec<Value> = (0..size).flat_map(one).collect();
    world.cluster.create_all(&all).await;
    world.settle().await;
    assert_eq!(world.cloudflare.all("dns_records").len(), size);

    world.restart().await;
    world.settle().await;

    scanned(&world).await
}

#[tokio::test(start_paused = true)]
async fn twice_as_many_tenants_with_a_route_each_look_at_twice_as_many_routes() {
    let (small, large) = (tenants_tallied(20).await, tenants_tallied(40).await);

    assert!(large < 3 * small, "{small} and {large} routes were looked at");
}
