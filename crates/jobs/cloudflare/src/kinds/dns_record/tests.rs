use portolan_cloudflare_api::Item;
use portolan_core::{Class, Mark, ObjectKey, OwnerId};
use proptest::prelude::*;
use serde_json::{from_value, json};

use super::*;
use crate::kind::ResolvedZone;
use crate::sources::Address;

fn record(spec: Value) -> DnsRecord {
    let mut spec = spec;
    spec["cloudflare"] = json!({ "domain": "example.com" });
    from_value(json!({
        "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "DNSRecord",
        "metadata": { "name": "www", "namespace": "shop" }, "spec": spec,
    }))
    .unwrap()
}

fn zone() -> Resolved {
    let zone = ResolvedZone {
        id: "z1".parse().unwrap(),
        name: Some("example.com".parse().unwrap()),
        account: None,
        comment_limit: 100,
    };
    Resolved { zone: Some(zone), ..Resolved::default() }
}

fn with_source(texts: &[&str], version: &str) -> Resolved {
    let addresses = texts.iter().map(|text| Address::parse(text)).collect();
    Resolved { source: Some(AddressSource::Found { addresses, version: version.to_owned() }), ..zone() }
}

fn sent(spec: Value) -> Value {
    record(spec).desired(&zone()).unwrap().remove(0).create_body()
}

fn refusal(spec: Value) -> String {
    let problem = record(spec).desired(&zone()).unwrap_err();
    assert_eq!((problem.class, problem.reason), (Class::Invalid, "InvalidConfig"));
    problem.message
}

/// A record of each type: its spec, the value as it is sent, and as Cloudflare answers.
fn every_type() -> Vec<(&'static str, Value, Value, Value)> {
    let data = |data: Value| json!({ "data": data });
    vec![
        ("A", json!({ "content": "203.0.113.7" }), json!({ "content": "203.0.113.7" }), json!({})),
        ("AAAA", json!({ "content": "2001:DB8:0::7" }), json!({ "content": "2001:db8::7" }), json!({})),
        ("CNAME", json!({ "content": "Target.Example.NET." }), json!({ "content": "target.example.net" }), json!({})),
        (
            "TXT",
            json!({ "content": "v=spf1 -all" }),
            json!({ "content": "v=spf1 -all" }),
            json!({ "content": "\"v=spf1 -all\"" }),
        ),
        (
            "MX",
            json!({ "content": "mail.example.com", "priority": 0 }),
            json!({ "content": "mail.example.com", "priority": 0 }),
            json!({}),
        ),
        (
            "NS",
            json!({ "content": "ns1.example.net" }),
            json!({ "content": "ns1.example.net" }),
            json!({ "priority": null }),
        ),
        (
            "SRV",
            json!({ "priority": 10, "data": { "weight": 0, "port": 0, "target": "Sip.Example.com." } }),
            data(json!({ "priority": 10, "weight": 0, "port": 0, "target": "sip.example.com" })),
            json!({ "priority": 10, "content": "0 0 sip.example.com" }),
        ),
        (
            "CAA",
            json!({ "data": { "flags": 0, "tag": "issue", "value": "letsencrypt.org" } }),
            data(json!({ "flags": 0, "tag": "issue", "value": "letsencrypt.org" })),
            json!({ "content": "0 issue \"letsencrypt.org\"" }),
        ),
        (
            "CERT",
            json!({ "data": { "type": 1, "keyTag": 0, "algorithm": 0, "certificate": "TUlJ QQ==" } }),
            data(json!({ "type": 1, "key_tag": 0, "algorithm": 0, "certificate": "TUlJQQ==" })),
            json!({ "content": "1 0 0 TUlJQQ==" }),
        ),
        (
            "DNSKEY",
            json!({ "data": { "flags": 257, "algorithm": 13, "publicKey": "mdsswUyr3DPW132mOi8V9xESWE8jTo0d" } }),
            data(
                json!({ "flags": 257, "protocol": 3, "algorithm": 13, "public_key": "mdsswUyr3DPW132mOi8V9xESWE8jTo0d" }),
            ),
            json!({ "content": "257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0d" }),
        ),
        (
            "DS",
            json!({ "data": { "keyTag": 42, "algorithm": 13, "digestType": 2, "digest": "AB CD" } }),
            data(json!({ "key_tag": 42, "algorithm": 13, "digest_type": 2, "digest": "abcd" })),
            json!({ "content": "42 13 2 ABCD" }),
        ),
        (
            "HTTPS",
            json!({ "data": { "priority": 1, "target": ".", "value": "alpn=h3,h2" } }),
            data(json!({ "priority": 1, "target": ".", "value": "alpn=\"h3,h2\"" })),
            json!({ "content": "1 . alpn=\"h3,h2\"" }),
        ),
        (
            "LOC",
            json!({ "data": {
                "latDegrees": 52, "latMinutes": 22, "latSeconds": "23.5", "latDirection": "N",
                "longDegrees": 4, "longMinutes": 53, "longSeconds": "32", "longDirection": "E", "altitude": "-2",
                "size": "0", "precisionHorz": "0", "precisionVert": "0",
            } }),
            data(json!({
                "lat_degrees": 52, "lat_minutes": 22, "lat_seconds": 23.5, "lat_direction": "N",
                "long_degrees": 4, "long_minutes": 53, "long_seconds": 32.0, "long_direction": "E",
                "altitude": -2.0, "size": 0.0, "precision_horz": 0.0, "precision_vert": 0.0,
            })),
            json!({ "content": "52 22 23.500 N 4 53 32.000 E -2.00m 0.00m 0.00m 0.00m" }),
        ),
        (
            "NAPTR",
            json!({ "data": {
                "order": 100, "preference": 0, "flags": "S", "service": "SIP+D2U", "regex": "",
                "replacement": "_sip._udp.example.com",
            } }),
            data(json!({
                "order": 100, "preference": 0, "flags": "S", "service": "SIP+D2U", "regex": "",
                "replacement": "_sip._udp.example.com",
            })),
            json!({ "content": "100 0 \"S\" \"SIP+D2U\" \"\" _sip._udp.example.com." }),
        ),
        (
            "SMIMEA",
            json!({ "data": { "usage": 3, "selector": 0, "matchingType": 0, "certificate": "AABB" } }),
            data(json!({ "usage": 3, "selector": 0, "matching_type": 0, "certificate": "aabb" })),
            json!({ "content": "3 0 0 aabb" }),
        ),
        (
            "SSHFP",
            json!({ "data": { "algorithm": 4, "type": 2, "fingerprint": "00FF" } }),
            data(json!({ "algorithm": 4, "type": 2, "fingerprint": "00ff" })),
            json!({ "content": "4 2 00FF" }),
        ),
        (
            "SVCB",
            json!({ "data": { "priority": 0, "target": "svc.example.net" } }),
            data(json!({ "priority": 0, "target": "svc.example.net", "value": "" })),
            json!({ "content": "0 svc.example.net" }),
        ),
        (
            "TLSA",
            json!({ "data": { "usage": 0, "selector": 0, "matchingType": 1, "certificate": "D2ABDE" } }),
            data(json!({ "usage": 0, "selector": 0, "matching_type": 1, "certificate": "d2abde" })),
            json!({ "content": "0 0 1 d2abde" }),
        ),
        (
            "URI",
            json!({ "priority": 10, "data": { "weight": 1, "content": "https://example.com/a" } }),
            json!({ "priority": 10, "data": { "weight": 1, "target": "https://example.com/a" } }),
            json!({ "content": "10 1 \"https://example.com/a\"" }),
        ),
    ]
}

fn merged(base: &Value, over: &Value) -> Value {
    let mut all = base.clone();
    for (key, value) in over.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

#[test]
fn every_type_is_sent_whole_with_its_zeros() {
    assert_eq!(every_type().len(), RecordType::ALL.len());
    for (kind, spec, value, _) in every_type() {
        let spec = merged(&json!({ "name": "x.example.com", "type": kind }), &spec);

        let body = sent(spec);

        let mut expected = merged(&json!({ "type": kind, "name": "x.example.com", "ttl": 1, "comment": "" }), &value);
        if RecordType::parse(kind).is_proxiable() {
            expected["proxied"] = json!(false);
        }
        assert_eq!(body, expected, "{kind}");
    }
}

#[test]
fn every_type_is_equal_to_what_cloudflare_answers() {
    for (kind, spec, _, answer) in every_type() {
        let spec = merged(&json!({ "name": "X.example.com", "type": kind }), &spec);
        let wanted = record(spec).desired(&zone()).unwrap().remove(0);
        let noise = json!({
            "id": "r1", "zone_id": "z1", "proxied": false, "proxiable": true, "tags": [], "comment": null,
            "created_on": "2026-01-01T00:00:00Z", "settings": {}, "meta": {},
        });

        let there = merged(&merged(&wanted.create_body(), &noise), &answer);
        let there: Remote = from_value(there).unwrap();

        assert_eq!(there, wanted, "{kind}");
        assert_eq!(there.natural_key(), wanted.natural_key(), "{kind}");
    }
}

#[test]
fn every_type_with_parts_is_understood_from_its_text_alone() {
    for (kind, spec, _, answer) in every_type() {
        let Some(content) = answer.get("content").filter(|_| RecordType::parse(kind).has_data()) else { continue };
        let spec = merged(&json!({ "name": "x.example.com", "type": kind }), &spec);
        let wanted = record(spec.clone()).desired(&zone()).unwrap().remove(0);
        let text =
            json!({ "name": "x.example.com", "type": kind, "content": content, "priority": spec.get("priority") });

        assert_eq!(record(text).desired(&zone()).unwrap().remove(0), wanted, "{kind}");
    }
}

#[test]
fn a_location_without_sizes_has_those_of_the_standard() {
    let body = sent(json!({ "name": "here.example.com", "type": "LOC", "content": "52 N 4 53 E 10m" }));

    assert_eq!(body["data"]["size"], json!(1.0));
    assert_eq!(body["data"]["precision_horz"], json!(10_000.0));
    assert_eq!(body["data"]["precision_vert"], json!(10.0));
}

#[test]
fn a_proxied_record_has_an_automatic_ttl_on_both_sides() {
    let wanted =
        record(json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1", "proxied": true, "ttl": 300 }));
    let wanted = wanted.desired(&zone()).unwrap().remove(0);
    let there = json!({ "type": "A", "name": "a.example.com", "content": "192.0.2.1", "proxied": true, "ttl": 1 });

    assert_eq!(wanted.create_body()["ttl"], json!(1));
    assert_eq!(from_value::<Remote>(there).unwrap(), wanted);
}

#[test]
fn the_order_of_tags_does_not_matter_and_removed_ones_are_cleared() {
    let wanted =
        record(json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1", "tags": ["b:2", "a:1"] }));
    let wanted = wanted.desired(&zone()).unwrap().remove(0);
    let there = merged(&wanted.create_body(), &json!({ "tags": ["b:2", "a:1"] }));
    let there: Remote = from_value(there).unwrap();
    let untagged = Remote { tags: Box::default(), ..wanted.clone() };

    assert_eq!(there, wanted);
    assert_eq!(untagged.update_body(&there)["tags"], json!([]));
    assert_eq!(untagged.update_body(&untagged).get("tags"), None);
}

#[test]
fn long_texts_with_quotes_are_settled_after_one_write() {
    let long = format!("say \"{}\" \\ {}", "x".repeat(300), "é".repeat(20));
    let wanted = record(json!({ "name": "t.example.com", "type": "TXT", "content": long }));
    let wanted = wanted.desired(&zone()).unwrap().remove(0);

    let there: Remote = from_value(wanted.create_body()).unwrap();
    let unquoted: Remote = from_value(merged(&wanted.create_body(), &json!({ "content": long }))).unwrap();

    assert_eq!(there, wanted);
    assert_eq!(unquoted, wanted);
}

#[test]
fn a_full_comment_keeps_the_mark_and_is_settled() {
    let mut wanted =
        record(json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1", "comment": "c".repeat(100) }))
            .desired(&zone())
            .unwrap()
            .remove(0);
    let mark = Mark {
        kind: "DNSRecord".to_owned(),
        key: ObjectKey::namespaced("shop", "www"),
        owner: OwnerId::derive("here"),
        adopted: false,
    };

    wanted.set_mark_text(mark.write(wanted.mark_text(), DnsRecord::mark_limit(&zone()).unwrap()));
    let there: Remote = from_value(wanted.create_body()).unwrap();

    assert_eq!(wanted.comment.chars().count(), 100);
    assert_eq!(there, wanted);
    assert_eq!(there.owner_key().as_deref(), Some("DNSRecord/shop/www"));
}

#[test]
fn addresses_and_aliases_are_known_by_type_and_name_and_others_by_their_value_too() {
    let key = |spec: Value| record(spec).desired(&zone()).unwrap().remove(0).natural_key();

    assert_eq!(key(json!({ "name": "A.example.com", "type": "A", "content": "192.0.2.1" })), "A a.example.com");
    assert_eq!(
        key(json!({ "name": "example.com", "type": "MX", "content": "Mail.example.com", "priority": 10 })),
        "MX example.com mail.example.com"
    );
}

#[test]
fn another_type_or_name_needs_a_new_record_and_another_value_does_not() {
    let body = |spec: Value| record(spec).desired(&zone()).unwrap().remove(0);
    let old = body(json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1" }));

    assert!(!body(json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.2" })).replaces(&old));
    assert!(body(json!({ "name": "b.example.com", "type": "A", "content": "192.0.2.1" })).replaces(&old));
    assert!(body(json!({ "name": "a.example.com", "type": "CNAME", "content": "b.example.com" })).replaces(&old));
}

#[test]
fn what_a_schema_cannot_say_is_refused_with_a_sentence() {
    for (spec, sentence) in [
        (
            json!({ "name": "www", "type": "A", "content": "192.0.2.1" }),
            "name \"www\" is not a full name; write www.example.com",
        ),
        (
            json!({ "name": "@", "type": "A", "content": "192.0.2.1" }),
            "name is @, which is not expanded; write the zone's own name, as example.com",
        ),
        (
            json!({ "name": "www.example.org", "type": "A", "content": "192.0.2.1" }),
            "name www.example.org does not lie in zone example.com; write the full name, as www.example.org.example.com, \
             or correct the zone",
        ),
        (
            json!({ "name": "a.example.com", "type": "A", "content": "::1" }),
            "content \"::1\" of a record of type A must be an IPv4 address, as 203.0.113.7",
        ),
        (
            json!({ "name": "a.example.com", "type": "CNAME", "content": "192.0.2.1" }),
            "content \"192.0.2.1\" of a record of type CNAME must be a host name, not an address",
        ),
        (
            json!({ "name": "a.example.com", "type": "CNAME", "content": "not a name" }),
            "content \"not a name\" of a record of type CNAME must be a host name, as target.example.com",
        ),
        (json!({ "name": "a.example.com", "type": "A" }), "content is missing; a record of type A needs a value"),
        (json!({ "name": "a.example.com", "content": "x" }), "type is missing; it can only be left out with sourceRef"),
        (
            json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1", "sourceRef": { "node": { "name": "n" } } }),
            "content and sourceRef exclude each other; remove one of them",
        ),
        (
            json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1", "ttl": 5 }),
            "ttl 5 is not possible; write 1 for automatic, or 60 to 86400 seconds",
        ),
        (
            json!({ "name": "a.example.com", "type": "TXT", "content": "x", "proxied": true }),
            "proxied is for A, AAAA and CNAME; remove it from this record of type TXT",
        ),
        (
            json!({ "name": "example.com", "type": "MX", "content": "mail.example.com" }),
            "priority is missing; a record of type MX needs one, as 10",
        ),
        (
            json!({ "name": "example.com", "type": "CAA", "content": "letsencrypt.org" }),
            "content \"letsencrypt.org\" is not understood as CAA; data of a record of type CAA needs flags (0 to 255), tag \
             and value",
        ),
        (
            json!({ "name": "sip.example.com", "type": "SRV", "priority": 1,
                "data": { "service": "sip", "proto": "_tcp", "port": 1, "target": "a.example.com" } }),
            "name of an SRV record begins with service and protocol; write _sip._tcp.sip.example.com",
        ),
    ] {
        assert_eq!(refusal(spec.clone()), sentence, "{spec}");
    }
}

#[test]
fn names_are_compared_in_lower_case_punycode() {
    let body = sent(json!({ "name": "WWW.Bücher.Example.COM.", "type": "A", "content": "192.0.2.1" }));

    assert_eq!(body["name"], json!("www.xn--bcher-kva.example.com"));
}

#[test]
fn all_addresses_of_a_source_become_records() {
    let object = record(json!({
        "name": "a.example.com", "sourceRef": { "service": { "name": "web" } }, "addressSelection": "All",
    }));

    let bodies = object.desired(&with_source(&["192.0.2.1", "2001:db8::1", "192.0.2.2"], "7")).unwrap();

    let labels: Vec<String> = bodies.iter().map(|body| format!("{} {}", body.label(), body.value())).collect();
    assert_eq!(labels, ["A a.example.com 192.0.2.1", "AAAA a.example.com 2001:db8::1", "A a.example.com 192.0.2.2"]);
}

#[test]
fn a_source_without_address_is_waited_for_by_name() {
    let object = record(json!({ "name": "a.example.com", "sourceRef": { "service": { "name": "web" } } }));

    let empty = object.desired(&with_source(&[], "7")).unwrap_err();
    let absent = object.desired(&Resolved { source: Some(AddressSource::Gone), ..zone() }).unwrap_err();

    assert_eq!((empty.class, empty.reason), (Class::Waiting, "Pending"));
    assert_eq!(empty.message, "Service shop/web: the source has no address yet");
    assert_eq!(absent.message, "Service shop/web: it does not exist yet");
    assert!(!object.ends_itself(&Resolved { source: Some(AddressSource::Gone), ..zone() }), "it never was there");
}

fn synced(policy: &str) -> DnsRecord {
    let mut object = record(json!({
        "name": "a.example.com", "sourceRef": { "service": { "name": "web" } }, "addressSelection": "All",
        "sourceDeletionPolicy": policy,
    }));
    object.status = from_value(json!({
        "recordId": "r1", "managedRecordIds": ["r1", "r2"], "zoneId": "z1", "resolvedType": "A",
        "resolvedContent": "192.0.2.1", "resolvedAddresses": ["192.0.2.1", "2001:db8::1"], "sourceResourceVersion": "7",
    }))
    .unwrap();
    object
}

#[test]
fn a_record_that_outlives_its_source_stays_as_it_was() {
    let (object, gone) = (synced("Orphan"), Resolved { source: Some(AddressSource::Gone), ..zone() });

    let bodies = object.desired(&gone).unwrap();

    let values: Vec<String> = bodies.iter().map(|body| format!("{} {}", body.kind, body.value())).collect();
    assert_eq!(values, ["A 192.0.2.1", "AAAA 2001:db8::1"]);
    assert!(!object.ends_itself(&gone));
    assert_eq!(object.well(&gone).0, "SourceDeleted");
    let present: Vec<_> =
        bodies.into_iter().zip(["r1", "r2"]).map(|(item, id)| Entry { id: id.to_owned(), item }).collect();
    let view = StatusView { resolved: Some(&gone), present: &present, problem: None, checked_at: None };
    let status = object.status(&view);
    assert_eq!(status["state"], json!("Orphaned"));
    assert_eq!(status["resolvedAddresses"], json!(["192.0.2.1", "2001:db8::1"]));
}

#[test]
fn a_record_ends_with_its_source_unless_told_otherwise() {
    assert!(synced("Delete").ends_itself(&Resolved { source: Some(AddressSource::Gone), ..zone() }));
    assert!(!synced("Delete").ends_itself(&with_source(&[], "8")));
}

#[test]
fn a_new_version_of_a_source_with_the_same_addresses_changes_no_status() {
    let object = synced("Delete");
    let resolved = with_source(&["192.0.2.1", "2001:db8::1"], "8");
    let present: Vec<_> = object
        .desired(&resolved)
        .unwrap()
        .into_iter()
        .zip(["r1", "r2"])
        .map(|(item, id)| Entry { id: id.to_owned(), item })
        .collect();
    let status =
        object.status(&StatusView { resolved: Some(&resolved), present: &present, problem: None, checked_at: None });

    assert_eq!(status["sourceResourceVersion"], json!("7"));
    let moved = with_source(&["192.0.2.9"], "9");
    let present = [Entry { id: "r1".to_owned(), item: object.desired(&moved).unwrap().remove(0) }];
    let status =
        object.status(&StatusView { resolved: Some(&moved), present: &present, problem: None, checked_at: None });
    assert_eq!((&status["sourceResourceVersion"], &status["resolvedContent"]), (&json!("9"), &json!("192.0.2.9")));
    assert_eq!(status["managedRecordIds"], json!(["r1"]));
}

#[test]
fn a_settled_record_shows_its_ids_and_its_full_name() {
    let object = record(json!({ "name": "WWW.example.com.", "type": "A", "content": "192.0.2.1" }));
    let present = [Entry { id: "r1".to_owned(), item: object.desired(&zone()).unwrap().remove(0) }];

    let status =
        object.status(&StatusView { resolved: Some(&zone()), present: &present, problem: None, checked_at: None });

    assert_eq!(
        status,
        json!({
            "recordId": "r1", "managedRecordIds": ["r1"], "zoneId": "z1", "fqdn": "www.example.com", "state": "Active",
        })
    );
}

#[test]
fn a_failure_keeps_everything_that_deletion_needs() {
    let problem = Problem::transient(reasons::API_ERROR, "down");

    let status = synced("Delete").status(&StatusView {
        resolved: None,
        present: &[],
        problem: Some(&problem),
        checked_at: None,
    });

    assert_eq!(status["state"], json!("Error"));
    assert_eq!((&status["zoneId"], &status["managedRecordIds"]), (&json!("z1"), &json!(["r1", "r2"])));
}

#[test]
fn the_older_operators_single_id_is_recorded_too() {
    let mut object = record(json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1" }));
    object.status = from_value(json!({ "recordId": "r1", "zoneId": "z9" })).unwrap();

    assert_eq!(
        object.recorded(),
        Recorded { scope: Some("z9".to_owned()), ids: vec!["r1".to_owned()], ..Recorded::default() }
    );
}

#[test]
fn two_objects_with_one_name_and_type_claim_the_same() {
    let claim = |spec: Value| record(spec).claim().unwrap();

    assert_eq!(
        claim(json!({ "name": "A.example.com.", "type": "A", "content": "192.0.2.1" })),
        claim(json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.2" }))
    );
    assert_ne!(
        claim(json!({ "name": "example.com", "type": "MX", "content": "a.example.com", "priority": 1 })),
        claim(json!({ "name": "example.com", "type": "MX", "content": "b.example.com", "priority": 1 }))
    );
}

#[test]
fn ten_thousand_records_are_small() {
    assert!(size_of::<Remote>() <= 104, "{}", size_of::<Remote>());
}

proptest! {
    #[test]
    fn a_record_has_one_spelling(
        at in 0..19_usize,
        name in "[A-Za-z_]{1,8}\\.[Ee]xample\\.com\\.?",
        content in "[ -~]{0,40}",
        ttl in 0..100_000_u32,
        proxied: bool,
        tags in proptest::collection::vec("[a-z]{1,3}", 0..4),
        priority in proptest::option::of(any::<u16>()),
    ) {
        let answer = json!({
            "type": RecordType::ALL[at].as_str(), "name": name, "content": content, "ttl": ttl, "proxied": proxied,
            "tags": tags, "priority": priority,
        });
        let once: Remote = from_value(answer).unwrap();
        let mut twice = once.clone();
        twice.normalise();
        prop_assert_eq!(&twice, &once);
        let sent_and_read: Remote = from_value(once.create_body()).unwrap();
        prop_assert_eq!(sent_and_read.natural_key(), once.natural_key());
        prop_assert_eq!(sent_and_read, once);
    }
}
