//! Records that name their zone by its id: short names, and names that lie elsewhere.

use portolan_testkit_suites::manifests::{self as m, ACCOUNT, ZONE_ID, annotated};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

const WWW: &str = "DNSRecord/apps/www";

fn in_zone(zone: &str, name: &str) -> Value {
    let spec = json!({ "name": name, "type": "A", "content": "192.0.2.1", "cloudflare": { "zoneId": zone } });
    m::object("DNSRecord", "www", spec)
}

/// A world with a zone that no `CloudflareDomain` knows.
async fn with_unknown_zone() -> (World, String) {
    let world = cloudflare_world().start().await;
    let zone = world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
    (world, zone)
}

fn names(world: &World) -> Vec<String> {
    let records = world.cloudflare.all("dns_records");
    records.iter().map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn heldout_f2_a_name_outside_the_zone_that_its_id_names_is_refused() {
    let (world, unknown) = with_unknown_zone().await;
    for zone in [ZONE_ID, &unknown] {
        for name in ["www.other.net", "a.b"] {
            world.cluster.apply(&in_zone(zone, name)).await;
            world.settle().await;

            assert_eq!(world.cluster.ready(WWW).await, "False/InvalidConfig", "{name}");
            let message = world.cluster.message(WWW).await;
            assert!(message.contains("does not lie in zone example."), "{message}");
            assert!(message.contains(&format!("write the full name, as {name}.example.")), "{message}");
        }
    }
    assert_eq!(world.writes(), [""; 0], "nothing was published");
    world.cluster.delete(WWW).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn heldout_f4_short_names_under_a_zone_id_are_published_below_the_zone_and_stay() {
    for (name, full) in [("www", "www.example.org"), ("@", "example.org"), ("*", "*.example.org")] {
        let (world, zone) = with_unknown_zone().await;
        world.cluster.apply(&in_zone(&zone, name)).await;
        world.settle().await;

        assert_eq!(world.cluster.ready(WWW).await, "True/Synced", "{}", world.cluster.message(WWW).await);
        let message = world.cluster.message(WWW).await;
        assert!(message.starts_with(&format!("{full} is published")), "{message}");
        assert_eq!(names(&world), [full]);
        let object = world.cluster.get(WWW).await.expect("it exists");
        assert_eq!(object["status"]["fqdn"], full);
        let id = object["status"]["recordId"].clone();

        // A restart changes nothing, and an edit changes the record that is there.
        world.forget();
        world.restart().await;
        world.settle().await;
        assert_eq!(world.writes(), [""; 0], "{name}: a restart writes nothing");
        world.cluster.patch(WWW, &json!({ "spec": { "content": "192.0.2.2" } })).await;
        world.settle().await;
        let id = id.as_str().expect("it has an id");
        assert_eq!(world.writes(), [format!("PATCH dns_records/{id}")], "{name}");
        assert_eq!(world.cluster.get(WWW).await.expect("it exists")["status"]["recordId"], id);

        world.cluster.delete(WWW).await;
        world.settle().await;
        assert_eq!(names(&world), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn heldout_f4_a_zones_name_is_read_once_for_many_records() {
    let (world, zone) = with_unknown_zone().await;
    for n in 0..20 {
        let spec = json!({
            "name": format!("r{n}"), "type": "A", "content": "192.0.2.1", "cloudflare": { "zoneId": zone },
        });
        world.cluster.apply(&m::object("DNSRecord", &format!("r{n}"), spec)).await;
        world.settle().await;
    }

    let reads = world.cloudflare.take_requests().into_iter().filter(|one| *one == format!("GET zones/{zone}"));
    assert_eq!(reads.count(), 1);
    assert_eq!(names(&world).len(), 20);
}

#[tokio::test(start_paused = true)]
async fn heldout_f4_a_short_name_that_the_older_operator_published_is_taken_over_without_a_change() {
    let world = cloudflare_world().asleep().start().await;
    let zone = world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
    let body = json!({ "type": "A", "name": "www.example.org", "content": "192.0.2.1", "ttl": 1, "proxied": false });
    let id = world.cloudflare.simulator.put("dns_records", &zone, body).expect("it is made");
    let mut record = in_zone(&zone, "www");
    record["metadata"]["finalizers"] = json!(["dnsrecord.networking.cloudflare-operator.io/finalizer"]);
    world.cluster.apply(&record).await;
    let status = json!({ "recordId": id, "zoneId": zone, "fqdn": "www", "state": "Active" });
    world.cluster.patch_status(WWW, &json!({ "status": status })).await;

    world.restart().await;
    world.settle().await;

    assert_eq!(world.cluster.ready(WWW).await, "True/Synced");
    let object = world.cluster.get(WWW).await.expect("it exists");
    assert_eq!((&object["status"]["recordId"], &object["status"]["fqdn"]), (&json!(id), &json!("www.example.org")));
    // Nothing but the mark: the record stays the one that it is.
    assert_eq!(world.writes(), [format!("PATCH dns_records/{id}")]);
    assert_eq!(names(&world), ["www.example.org"]);
}

#[tokio::test(start_paused = true)]
async fn heldout_f2_a_name_that_was_published_outside_its_zone_stays_until_its_object_goes() {
    let world = cloudflare_world().asleep().start().await;
    let published = format!("www.other.net.{}", m::ZONE);
    let body = json!({ "type": "A", "name": published, "content": "192.0.2.1", "ttl": 1, "comment": "[managed:DNSRecord/apps/www]" });
    let id = world.cloudflare.plant("dns_records", &body);
    let mut record = annotated(in_zone(ZONE_ID, "www.other.net"), "team", "x");
    record["metadata"]["finalizers"] = json!(["dnsrecord.networking.cloudflare-operator.io/finalizer"]);
    world.cluster.apply(&record).await;
    let status = json!({ "recordId": id, "zoneId": ZONE_ID, "fqdn": "www.other.net", "state": "Active" });
    world.cluster.patch_status(WWW, &json!({ "status": status })).await;

    world.restart().await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "False/InvalidConfig");
    assert_eq!(world.writes(), [""; 0], "what stands is kept");

    world.cluster.delete(WWW).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(WWW).await, "gone");
    assert_eq!(world.cloudflare.all("dns_records"), [Value::Null; 0]);
}
