//! The checker itself: a sound world passes, and one planted violation of each kind is found and named.

use serde_json::json;

use super::*;
use crate::manifests::{self as m, ZONE_ID};

fn owner() -> OwnerId {
    OwnerId::derive("a-test")
}

fn ready(mut object: Value) -> Value {
    object["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True", "reason": "Synced" }] });
    object
}

fn there(id: &str, name: &str, content: &str, comment: &str) -> Value {
    json!({
        "id": id, "type": "A", "name": name, "content": content, "ttl": 1, "proxied": false, "comment": comment,
    })
}

/// A world in which one record is as wanted and another belongs to somebody else.
fn sound() -> Evidence {
    let mark = format!("[managed:DNSRecord/apps/www#{}]", owner());
    let foreign = there("f1", "theirs.example.com", "203.0.113.1", "by hand");
    let ours = there("r1", "www.example.com", "192.0.2.1", &mark);
    Evidence {
        log: vec![json!({
            "at_ms": 1, "method": "POST", "path": format!("/client/v4/zones/{ZONE_ID}/dns_records/batch"),
            "query": {}, "body": { "posts": [{ "name": "www.example.com" }] }, "status": 200, "response": {},
        })],
        state: json!({ "dns_records": { ZONE_ID: [ours, foreign] } }),
        objects: vec![ready(m::record("www", "192.0.2.1"))],
        foreign: vec![("dns_records".to_owned(), foreign)],
        secrets: vec!["canary-in-a-test".to_owned()],
        texts: vec!["nothing to see".to_owned()],
        owner: owner(),
        late_writes: Vec::new(),
    }
}

fn records(evidence: &mut Evidence) -> &mut Vec<Value> {
    evidence.state["dns_records"][ZONE_ID].as_array_mut().expect("the zone has records")
}

#[test]
fn a_sound_world_violates_nothing() {
    assert_eq!(check(&sound()), []);
}

#[test]
fn two_objects_with_one_mark_are_found() {
    let mut evidence = sound();
    let mut double = records(&mut evidence)[0].clone();
    double["id"] = json!("r2");
    records(&mut evidence).push(double);

    assert!(matches!(check(&evidence).as_slice(), [Violation::Duplicate(_)]), "{:?}", check(&evidence));
}

#[test]
fn several_addresses_of_one_object_are_no_duplicates_unless_they_are_equal() {
    let mut evidence = sound();
    evidence.objects[0]["spec"]["addressSelection"] = json!("All");
    evidence.objects[0]["spec"]["content"] = json!(null);
    let mut second = records(&mut evidence)[0].clone();
    (second["id"], second["content"]) = (json!("r2"), json!("192.0.2.2"));
    records(&mut evidence).push(second.clone());
    assert_eq!(check(&evidence), []);

    second["id"] = json!("r3");
    records(&mut evidence).push(second);

    assert!(matches!(check(&evidence).as_slice(), [Violation::Duplicate(_)]));
}

#[test]
fn a_changed_foreign_object_is_found() {
    let mut evidence = sound();
    records(&mut evidence)[1]["content"] = json!("192.0.2.9");

    assert!(matches!(check(&evidence).as_slice(), [Violation::ForeignTouched(_)]));
}

#[test]
fn a_deleted_foreign_object_is_found() {
    let mut evidence = sound();
    records(&mut evidence).remove(1);

    assert!(matches!(check(&evidence).as_slice(), [Violation::ForeignTouched(_)]));
}

#[test]
fn a_write_to_a_foreign_object_is_found_even_if_it_changed_nothing() {
    for line in [
        json!({ "method": "PATCH", "path": "/client/v4/zones/z/dns_records/f1", "status": 200 }),
        json!({ "method": "POST", "path": "/x/batch", "body": { "deletes": [{ "id": "f1" }] }, "status": 0 }),
    ] {
        let mut evidence = sound();
        evidence.log.push(line);
        assert!(matches!(check(&evidence).as_slice(), [Violation::ForeignTouched(_)]));
    }
    let mut evidence = sound();
    evidence.log.push(json!({ "method": "DELETE", "path": "/client/v4/zones/z/dns_records/f1", "status": 403 }));
    assert_eq!(check(&evidence), [], "a refused write touched nothing");
}

#[test]
fn a_secret_is_found_wherever_it_stands() {
    let places: [fn(&mut Evidence); 4] = [
        |evidence| evidence.log[0]["body"]["posts"][0]["comment"] = json!("a canary-in-a-test here"),
        |evidence| evidence.objects[0]["status"]["message"] = json!("canary-in-a-test"),
        |evidence| records(evidence)[0]["tags"] = json!(["canary-in-a-test"]),
        |evidence| evidence.texts.push("level=info canary-in-a-test".to_owned()),
    ];
    for plant in places {
        let mut evidence = sound();
        plant(&mut evidence);
        assert!(matches!(check(&evidence).as_slice(), [Violation::SecretSeen(_)]), "{:?}", check(&evidence));
    }
}

#[test]
fn an_object_of_ours_without_its_owner_is_found_and_one_of_another_operator_is_not() {
    let mut evidence = sound();
    let ours = format!("[managed:DNSRecord/apps/gone#{}+adopted] hello", owner());
    records(&mut evidence).push(there("r2", "gone.example.com", "192.0.2.1", &ours));
    records(&mut evidence).push(there(
        "r3",
        "other.example.com",
        "192.0.2.1",
        "[managed:DNSRecord/apps/other#00000000]",
    ));

    assert!(matches!(check(&evidence).as_slice(), [Violation::LeftBehind(what)] if what.contains("apps/gone")));
}

#[test]
fn a_ready_object_without_its_record_is_found() {
    let mut evidence = sound();
    records(&mut evidence).remove(0);

    assert!(matches!(check(&evidence).as_slice(), [Violation::NotAsWanted(_)]));
}

#[test]
fn a_ready_object_with_another_content_is_found() {
    let mut evidence = sound();
    records(&mut evidence)[0]["content"] = json!("192.0.2.99");

    assert!(matches!(check(&evidence).as_slice(), [Violation::NotAsWanted(what)] if what.contains("192.0.2.99")));
}

/// A world of one object that is as wanted, with what it refers to.
fn as_wanted(object: &Value, collection: &str, mut there: Value) -> Evidence {
    let text = object["spec"]["comment"].as_str().unwrap_or_default();
    (there["id"], there["comment"]) = (json!("x1"), json!(format!("[managed:{}#{}] {text}", id(object), owner())));
    let mut state = json!({
        "cfd_tunnel": { "acc": [{ "id": "t1", "name": m::TUNNEL }, { "id": "t2", "name": "other" }] },
        "virtual_networks": { "acc": [
            { "id": "n0", "name": "default", "comment": "", "is_default_network": true },
            { "id": "n1", "name": "corp", "comment": "theirs", "is_default_network": false },
        ] },
    });
    let scope = if collection == "dns_records" { ZONE_ID } else { "acc" };
    let mut all = state[collection][scope].as_array().cloned().unwrap_or_default();
    all.push(there);
    state[collection][scope] = json!(all);
    let tunnel = m::cluster_tunnel(m::TUNNEL, "t1");
    Evidence { state, objects: vec![ready(object.clone()), tunnel, m::network("corp")], foreign: vec![], ..sound() }
}

/// Each field that users can wish for, as it is and as somebody might have left it.
fn planted() -> Vec<(&'static str, Evidence, Value)> {
    let record = |kind: &str, more: Value| {
        let mut spec = json!({ "name": "www.example.com", "type": kind, "ttl": 300, "comment": "ours" });
        spec.as_object_mut().expect("a spec").extend(more.as_object().cloned().expect("members"));
        m::object("DNSRecord", "www", spec)
    };
    let real = |kind: &str, more: Value| {
        let mut real = json!({ "type": kind, "name": "www.example.com", "ttl": 300, "proxied": false });
        real.as_object_mut().expect("a record").extend(more.as_object().cloned().expect("members"));
        real
    };
    let of = |field, object: &Value, collection, there: &Value, wrong: Value| {
        (field, as_wanted(object, collection, there.clone()), wrong)
    };
    let address = record("A", json!({ "content": "192.0.2.1" }));
    let address_there = real("A", json!({ "content": "192.0.2.1" }));
    let text = record("TXT", json!({ "content": "v=spf1 \"quoted\" text" }));
    let text_there = real("TXT", json!({ "content": "\"v=spf1 \\\"quoted\\\" \" \"text\"" }));
    let mail = record("MX", json!({ "content": "mx.example.net", "priority": 10 }));
    let mail_there = real("MX", json!({ "content": "mx.example.net", "priority": 10 }));
    let service =
        record("SRV", json!({ "priority": 5, "data": { "weight": 0, "port": 1, "target": "s.example.net" } }));
    let parts = |port: u16, priority: u16| json!({ "weight": 0, "port": port, "target": "s.example.net", "priority": priority });
    let service_there = real("SRV", json!({ "data": parts(1, 5) }));
    let network = m::network("office");
    let network_there = json!({ "name": "office", "is_default_network": false });
    let route = m::route("office", "10.1.0.0/16");
    let route_there = json!({ "network": "10.1.0.0/16", "tunnel_id": "t1", "virtual_network_id": "n0" });
    let inside = m::with(m::route("office", "10.1.0.0/16"), "virtualNetworkRef", json!({ "name": "corp" }));
    let inside_there = json!({ "network": "10.1.0.0/16", "tunnel_id": "t1", "virtual_network_id": "n1" });
    vec![
        of("type", &address, "dns_records", &address_there, json!({ "type": "AAAA" })),
        of("name", &address, "dns_records", &address_there, json!({ "name": "web.example.com" })),
        of("content", &address, "dns_records", &address_there, json!({ "content": "192.0.2.2" })),
        of("ttl", &address, "dns_records", &address_there, json!({ "ttl": 1 })),
        of("proxied", &address, "dns_records", &address_there, json!({ "proxied": true })),
        of("comment", &address, "dns_records", &address_there, json!({ "comment": "theirs" })),
        of("content", &text, "dns_records", &text_there, json!({ "content": "\"v=spf1 quoted text\"" })),
        of("priority", &mail, "dns_records", &mail_there, json!({ "priority": 20 })),
        of("data", &service, "dns_records", &service_there, json!({ "data": parts(2, 5) })),
        of("data", &service, "dns_records", &service_there, json!({ "data": parts(1, 6) })),
        of("name", &network, "virtual_networks", &network_there, json!({ "name": "renamed" })),
        of("comment", &network, "virtual_networks", &network_there, json!({ "comment": "" })),
        of("network", &route, "routes", &route_there, json!({ "network": "10.2.0.0/16" })),
        of("tunnel", &route, "routes", &route_there, json!({ "tunnel_id": "t2" })),
        of("virtual network", &route, "routes", &route_there, json!({ "virtual_network_id": "n1" })),
        of("virtual network", &inside, "routes", &inside_there, json!({ "virtual_network_id": "n0" })),
        of("comment", &route, "routes", &route_there, json!({ "comment": "theirs" })),
    ]
}

#[test]
fn every_field_that_users_wish_for_is_compared() {
    for (field, mut evidence, wrong) in planted() {
        assert_eq!(check(&evidence), [], "{field}, as wanted");

        spoil(&mut evidence.state, &wrong);

        let found = check(&evidence);
        let named = |one: &Violation| matches!(one, Violation::NotAsWanted(what) if what.contains(&format!("{field} should be")));
        assert!(matches!(found.as_slice(), [one] if named(one)), "{field} is {wrong}: {found:?}");
    }
}

/// Changes what stands for the object, and leaves its mark.
fn spoil(state: &mut Value, wrong: &Value) {
    let collections = state.as_object_mut().expect("collections").values_mut();
    let scopes = collections.flat_map(|scopes| scopes.as_object_mut().into_iter().flatten());
    let objects = scopes.flat_map(|(_, all)| all.as_array_mut().into_iter().flatten());
    for object in objects.filter(|object| object["id"] == "x1") {
        for (field, value) in wrong.as_object().into_iter().flatten() {
            let marked = |text: &str| format!("[managed:{}] {text}", marked_by(comment(object)).unwrap_or_default());
            let value =
                if field == "comment" { json!(marked(value.as_str().unwrap_or_default())) } else { value.clone() };
            object[field.as_str()] = value;
        }
    }
}

#[test]
fn writes_at_rest_are_found() {
    let evidence = Evidence { late_writes: vec!["PATCH dns_records/r1".to_owned()], ..sound() };

    assert!(matches!(check(&evidence).as_slice(), [Violation::WroteAtRest(_)]));
}
