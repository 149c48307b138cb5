//! Scenarios 39–49: DNS records.

use std::time::Duration;

use portolan_testkit_suites::manifests::{self as m, ACCOUNT, NAMESPACE, ZONE, ZONE_ID, with};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

const WWW: &str = "DNSRecord/apps/www";

/// Bodies of created records, in the order they were sent.
fn created(world: &World) -> Vec<Value> {
    let requests = world.cloudflare.simulator.requests();
    let posts = requests.iter().filter(|request| request.method == "POST");
    posts
        .flat_map(|request| request.body["posts"].as_array().cloned().unwrap_or_else(|| vec![request.body.clone()]))
        .collect()
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
    })
}

async fn set_addresses(world: &World, service: &str, addresses: &[&str]) {
    let ingress: Vec<Value> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
    let status = json!({ "status": { "loadBalancer": { "ingress": ingress } } });
    world.cluster.patch_status(&format!("Service/{NAMESPACE}/{service}"), &status).await;
}

fn from_service(name: &str, service: &str, extra: Value) -> Value {
    let mut spec =
        json!({ "name": format!("{name}.{ZONE}"), "sourceRef": { "service": { "name": service } }, "cloudflare": {} });
    for (field, value) in extra.as_object().cloned().unwrap_or_default() {
        spec[field] = value;
    }
    m::object("DNSRecord", name, spec)
}

fn contents(world: &World) -> Vec<String> {
    let mut all: Vec<String> = world
        .cloudflare
        .marked("dns_records")
        .iter()
        .map(|one| {
            format!("{} {}", one["type"].as_str().unwrap_or_default(), one["content"].as_str().unwrap_or_default())
        })
        .collect();
    all.sort();
    all
}

#[tokio::test(start_paused = true)]
async fn scenario_39_an_a_record_is_posted_with_its_mark_and_its_status_says_where() {
    let world = cloudflare_world().start().await;

    world.cluster.apply(&with(m::record("www", "192.0.2.1"), "proxied", json!(true))).await;
    world.settle().await;

    let body = created(&world).remove(0);
    assert_eq!((&body["ttl"], &body["proxied"], &body["name"]), (&json!(1), &json!(true), &json!("www.example.com")));
    assert!(body["comment"].as_str().is_some_and(|comment| comment.starts_with("[managed:DNSRecord/apps/www#")));
    let status = world.cluster.get(WWW).await.expect("it exists")["status"].clone();
    let remote = world.cloudflare.marked("dns_records").remove(0);
    assert_eq!(status["recordId"], remote["id"]);
    assert_eq!((&status["zoneId"], &status["fqdn"]), (&json!(ZONE_ID), &json!("www.example.com")));
    assert_eq!(status["state"], "Active");
}

#[tokio::test(start_paused = true)]
async fn scenario_40_zeros_are_sent() {
    let world = cloudflare_world().start().await;

    world
        .cluster
        .apply(&m::object(
            "DNSRecord",
            "mx",
            json!({
                "name": ZONE, "type": "MX", "content": "mx.example.net", "priority": 0, "cloudflare": {},
            }),
        ))
        .await;
    world
        .cluster
        .apply(&m::object(
            "DNSRecord",
            "srv",
            json!({
                "name": format!("_sip._tcp.{ZONE}"), "type": "SRV", "priority": 0, "cloudflare": {},
                "data": { "weight": 0, "port": 0, "target": "sip.example.net" },
            }),
        ))
        .await;
    world.cluster.apply(&m::object("DNSRecord", "caa", json!({
        "name": ZONE, "type": "CAA", "cloudflare": {}, "data": { "flags": 0, "tag": "issue", "value": "ca.example.net" },
    }))).await;
    world.settle().await;

    let bodies = created(&world);
    let of = |kind: &str| bodies.iter().find(|body| body["type"] == kind).cloned().expect("it was posted");
    assert_eq!(of("MX")["priority"], json!(0));
    assert_eq!((&of("SRV")["data"]["weight"], &of("SRV")["data"]["port"]), (&json!(0), &json!(0)));
    assert_eq!(of("CAA")["data"]["flags"], json!(0));
    for name in ["mx", "srv", "caa"] {
        assert_eq!(world.cluster.ready(&format!("DNSRecord/apps/{name}")).await, "True/Synced");
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_41_a_record_moves_to_another_zone_and_is_deleted_there() {
    let world = cloudflare_world().start().await;
    let second = world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
    let in_zone = |zone: &str, name: &str| {
        m::object(
            "DNSRecord",
            "www",
            json!({
                "name": name, "type": "A", "content": "192.0.2.1", "cloudflare": { "zoneId": zone },
            }),
        )
    };
    world.cluster.apply(&in_zone(ZONE_ID, "www.example.com")).await;
    world.until_ready(WWW, "True/Synced").await;

    world.cluster.apply(&in_zone(&second, "www.example.org")).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "True/Synced", "{}", world.cluster.message(WWW).await);
    assert_eq!(world.cloudflare.simulator.objects("dns_records", ZONE_ID), [Value::Null; 0]);
    assert_eq!(world.cloudflare.simulator.objects("dns_records", &second).len(), 1);

    world.cluster.delete(WWW).await;
    world.settle().await;
    assert_eq!(world.cloudflare.simulator.objects("dns_records", &second), [Value::Null; 0]);
    assert_eq!(world.cluster.ready(WWW).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn scenario_42_every_address_of_a_service_gets_a_record() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&service("web")).await;
    set_addresses(&world, "web", &["192.0.2.1", "192.0.2.2", "192.0.2.3"]).await;

    world.cluster.apply(&from_service("www", "web", json!({ "addressSelection": "All" }))).await;
    world.settle().await;

    assert_eq!(contents(&world), ["A 192.0.2.1", "A 192.0.2.2", "A 192.0.2.3"]);
    let status = world.cluster.get(WWW).await.expect("it exists")["status"].clone();
    assert_eq!(status["managedRecordIds"].as_array().map(Vec::len), Some(3));
    let before = world.cloudflare.marked("dns_records");
    world.forget();

    set_addresses(&world, "web", &["192.0.2.1", "192.0.2.3"]).await;
    world.settle().await;

    let after = world.cloudflare.marked("dns_records");
    assert_eq!(contents(&world), ["A 192.0.2.1", "A 192.0.2.3"]);
    assert!(after.iter().all(|one| before.contains(one)), "the others are not touched");
    portolan_testkit_suites::invariants::assert_all(&world, "one address less").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_43_a_preferred_family_that_is_lost_gives_way_to_the_other() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&service("web")).await;
    set_addresses(&world, "web", &["192.0.2.1", "2001:db8::1"]).await;
    world.cluster.apply(&from_service("www", "web", json!({ "addressSelection": "PreferIPv6" }))).await;
    world.settle().await;
    assert_eq!(contents(&world), ["AAAA 2001:db8::1"]);

    set_addresses(&world, "web", &["192.0.2.1"]).await;
    world.settle().await;

    assert_eq!(contents(&world), ["A 192.0.2.1"]);
    assert_eq!(world.cluster.ready(WWW).await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn scenario_44_a_source_without_an_address_is_waited_for_by_watch() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&service("web")).await;

    world.cluster.apply(&from_service("www", "web", json!({}))).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "False/Pending");
    assert_eq!(world.cluster.events(WWW).await, [""; 0], "waiting is no warning");

    set_addresses(&world, "web", &["192.0.2.1"]).await;
    world.settle_within(Duration::from_secs(10)).await;
    assert_eq!(contents(&world), ["A 192.0.2.1"]);
    assert_eq!(world.cluster.ready(WWW).await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn scenario_45_a_deleted_source_takes_the_record_along_or_leaves_it() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&service("web")).await;
    set_addresses(&world, "web", &["192.0.2.1"]).await;
    world.cluster.apply(&from_service("www", "web", json!({}))).await;
    world.cluster.apply(&from_service("kept", "web", json!({ "sourceDeletionPolicy": "Orphan" }))).await;
    world.settle().await;
    let kept = world.cloudflare.one("dns_records", |one| one["name"] == "kept.example.com");

    world.cluster.delete("Service/apps/web").await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "gone");
    assert_eq!(world.cluster.ready("DNSRecord/apps/kept").await, "True/SourceDeleted");
    let status = world.cluster.get("DNSRecord/apps/kept").await.expect("it exists")["status"].clone();
    assert_eq!(status["state"], "Orphaned");
    assert_eq!(world.cloudflare.marked("dns_records"), [kept]);
}

#[tokio::test(start_paused = true)]
async fn scenario_46_two_records_of_one_name_are_not_chosen_from() {
    let world = cloudflare_world().start().await;
    for address in ["203.0.113.1", "203.0.113.2"] {
        world.cloudflare.plant_foreign(
            "dns_records",
            &json!({
                "type": "A", "name": format!("www.{ZONE}"), "content": address, "ttl": 1,
            }),
        );
    }

    world.cluster.apply(&m::annotated(m::record("www", "192.0.2.1"), "cloudflare-operator.io/adopt", "true")).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "False/ConflictError");
    portolan_testkit_suites::invariants::assert_all(&world, "two of one name").await;
}

#[tokio::test(start_paused = true)]
async fn the_only_record_of_a_zone_takes_its_place_once_what_was_in_its_way_is_gone() {
    let world = cloudflare_world().start().await;
    let body = json!({ "type": "A", "name": format!("www.{ZONE}"), "content": "203.0.113.1", "ttl": 1 });
    let foreign = world.cloudflare.plant("dns_records", &body);
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "False/ConflictError");

    world.cloudflare.remove("dns_records", &foreign);
    world.drift_pass().await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn ux_h8_a_record_beside_another_persons_address_is_refused_whatever_its_type() {
    for foreign in [
        json!({ "type": "A", "content": "198.51.100.1" }),
        json!({ "type": "AAAA", "content": "2001:db8::1" }),
        json!({ "type": "CNAME", "content": "elsewhere.example.net" }),
        json!({ "type": "AAAA", "content": "2001:db8::1", "comment": "[managed:DNSRecord/apps/www#ffffffff]" }),
    ] {
        let world = cloudflare_world().start().await;
        let mut body = foreign.clone();
        body["name"] = json!(format!("www.{ZONE}"));
        body["ttl"] = json!(1);
        world.cloudflare.plant_foreign("dns_records", &body);
        world.pass(Duration::from_secs(60)).await;

        world.cluster.apply(&m::record("www", "192.0.2.1")).await;
        world.settle().await;

        assert_eq!(world.cluster.ready(WWW).await, "False/ConflictError", "{foreign}");
        assert_eq!(world.cloudflare.all("dns_records").len(), 1, "{foreign}: nothing was published beside it");
        portolan_testkit_suites::invariants::assert_all(&world, "another's address").await;
    }
}

#[tokio::test(start_paused = true)]
async fn ux_h8_what_may_stand_beside_does() {
    let world = cloudflare_world().start().await;
    let texts = [
        json!({ "type": "TXT", "content": "\"v=spf1 -all\"" }),
        json!({ "type": "MX", "content": "mx.example.net", "priority": 1 }),
    ];
    for mut body in texts {
        body["name"] = json!(format!("www.{ZONE}"));
        body["ttl"] = json!(1);
        world.cloudflare.plant_foreign("dns_records", &body);
    }
    world.pass(Duration::from_secs(60)).await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    let both = json!({ "name": format!("www.{ZONE}"), "type": "AAAA", "content": "2001:db8::1", "cloudflare": {} });
    world.cluster.apply(&m::object("DNSRecord", "www6", both)).await;
    world.settle().await;

    for id in [WWW, "DNSRecord/apps/www6"] {
        assert_eq!(world.cluster.ready(id).await, "True/Synced", "{}", world.cluster.message(id).await);
    }
}

#[tokio::test(start_paused = true)]
async fn ux_h8_another_persons_address_that_came_unseen_is_told_by_the_next_look() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&m::record("www", "192.0.2.1")).await;
    world.settle().await;
    let body = json!({ "type": "A", "name": format!("www.{ZONE}"), "content": "198.51.100.1", "ttl": 1 });
    let foreign = world.cloudflare.plant("dns_records", &body);

    world.drift_pass().await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "False/ConflictError");
    let message = world.cluster.message(WWW).await;
    assert!(message.contains(&foreign) && message.contains("stands beside it"), "{message}");
    assert_eq!(world.cloudflare.all("dns_records").len(), 2, "neither was touched");
    world.forget();
    world.drift_pass().await;
    world.settle().await;
    assert_eq!(world.cluster_writes(), [""; 0], "it is said once");

    world.cloudflare.remove("dns_records", &foreign);
    world.drift_pass().await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn scenario_47_content_and_source_exclude_each_other() {
    let world = cloudflare_world().start().await;
    let mut record = from_service("www", "web", json!({}));
    record["spec"]["content"] = json!("192.0.2.1");

    let refused = world.cluster.try_apply(&record).await.expect_err("the API server refuses it");

    assert!(refused.to_string().contains("sourceRef"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn scenario_48_a_long_comment_gives_way_to_the_mark() {
    let world = cloudflare_world().plan("free").start().await;
    let comment = "c".repeat(100);

    world.cluster.apply(&with(m::record("www", "192.0.2.1"), "comment", json!(comment))).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "True/Synced", "{}", world.cluster.message(WWW).await);
    let stored = world.cloudflare.marked("dns_records").remove(0)["comment"].as_str().unwrap_or_default().to_owned();
    assert!(stored.starts_with("[managed:DNSRecord/apps/www#") && stored.chars().count() <= 100, "{stored}");
    assert!(stored.contains("ccc"), "as much of the text as fits: {stored}");
    portolan_testkit_suites::invariants::assert_all(&world, "a long comment").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_49_long_and_quoted_texts_are_quiet() {
    let world = cloudflare_world().start().await;
    let texts =
        ["a".repeat(600), "v=DKIM1; p=\"quoted\"".to_owned(), "\"already quoted\"".to_owned(), "ünïcode".to_owned()];

    for (n, text) in texts.iter().enumerate() {
        let spec = json!({ "name": format!("t{n}.{ZONE}"), "type": "TXT", "content": text, "cloudflare": {} });
        world.cluster.apply(&m::object("DNSRecord", &format!("t{n}"), spec)).await;
    }
    world.settle().await;

    for n in 0..texts.len() {
        assert_eq!(world.cluster.ready(&format!("DNSRecord/apps/t{n}")).await, "True/Synced");
    }
    portolan_testkit_suites::invariants::assert_all(&world, "texts").await;
}
