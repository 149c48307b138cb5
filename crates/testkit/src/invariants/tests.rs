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
    json!({ "id": id, "type": "A", "name": name, "content": content, "proxied": false, "comment": comment })
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

#[test]
fn writes_at_rest_are_found() {
    let evidence = Evidence { late_writes: vec!["PATCH dns_records/r1".to_owned()], ..sound() };

    assert!(matches!(check(&evidence).as_slice(), [Violation::WroteAtRest(_)]));
}
