//! Services as the API has them, and questions → answers.

use serde_json::{Value, json};

use super::*;
use crate::network::testing::{put_service, put_slice};

/// A Service with an address, a headless one with two pods of a `StatefulSet` and one without a name, aliases.
fn table() -> ServiceTable {
    let mut table = ServiceTable::of_node("here");
    let ports = json!([{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    put_service(&mut table, "web", &json!({"clusterIP": "127.78.1.2", "ports": ports}));
    put_service(&mut table, "db", &json!({"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]}));
    put_service(&mut table, "empty", &json!({"clusterIP": "None"}));
    put_service(&mut table, "far", &json!({"type": "ExternalName", "externalName": "Example.com"}));
    put_service(&mut table, "near", &json!({"type": "ExternalName", "externalName": "web.shop.svc.cluster.local"}));
    put_service(&mut table, "round", &json!({"type": "ExternalName", "externalName": "round.shop.svc.cluster.local"}));
    let endpoint = |last: u8, name: Value, ready: bool| json!({"addresses": [format!("127.77.0.{last}")], "hostname": name, "conditions": {"ready": ready}});
    let endpoints = json!([
        endpoint(1, json!("db-0"), true),
        endpoint(2, json!("db-1"), true),
        endpoint(3, Value::Null, true),
        endpoint(4, json!("db-2"), false),
    ]);
    let ports = json!([{"name": "sql", "port": 5433, "protocol": "TCP"}]);
    put_slice(&mut table, "db", "db-x", &json!({"endpoints": endpoints, "ports": ports}));
    let web = json!([{"addresses": ["127.77.0.9"]}]);
    put_slice(&mut table, "web", "web-x", &json!({"endpoints": web, "ports": []}));
    table
}

/// The code, and each record in a few words.
fn asked(name: &str, kind: RecordKind) -> (ReplyCode, Vec<String>) {
    match answer(&table(), name, kind) {
        NameAnswer::Reply(reply) => (reply.code, reply.answers.iter().map(shown).collect()),
        other => panic!("{other:?}"),
    }
}

fn shown(record: &ResolverRecord) -> String {
    match &record.content {
        RecordContent::A(address) => address.to_string(),
        RecordContent::Aaaa(address) => address.to_string(),
        RecordContent::Cname(name) | RecordContent::Ptr(name) => name.clone(),
        RecordContent::Srv { weight, port, target } => format!("{weight} {port} {target}"),
        RecordContent::Txt(text) => text.clone(),
        RecordContent::Soa { zone } => format!("zone {zone}"),
    }
}

fn well(records: &[&str]) -> (ReplyCode, Vec<String>) {
    (ReplyCode::NoError, records.iter().map(|text| (*text).to_owned()).collect())
}

const NO_NAME: (ReplyCode, Vec<String>) = (ReplyCode::NoName, Vec::new());

#[test]
fn a_service_has_its_address_and_a_headless_one_those_of_its_ready_endpoints() {
    assert_eq!(asked("web.shop.svc.cluster.local", kinds::A), well(&["127.78.1.2"]));
    assert_eq!(asked("db.shop.svc.cluster.local", kinds::A), well(&["127.77.0.1", "127.77.0.2", "127.77.0.3"]));
}

#[test]
fn a_name_that_is_there_and_has_no_such_record_is_not_denied() {
    assert_eq!(asked("web.shop.svc.cluster.local", kinds::AAAA), well(&[]));
    assert_eq!(asked("db.shop.svc.cluster.local", kinds::TXT), well(&[]));
    assert_eq!(asked("shop.svc.cluster.local", kinds::A), well(&[]));
    assert_eq!(asked("cluster.local", kinds::A), well(&[]));
}

#[test]
fn a_name_that_is_not_there_is_denied_by_the_zone() {
    for name in
        ["none.shop.svc.cluster.local", "web.none.svc.cluster.local", "none.svc.cluster.local", "x.cluster.local"]
    {
        assert_eq!(asked(name, kinds::A), NO_NAME, "{name}");
    }
    let NameAnswer::Reply(reply) = answer(&table(), "none.shop.svc.cluster.local", kinds::A) else { panic!() };
    assert_eq!(reply.authority.iter().map(shown).collect::<Vec<_>>(), ["zone cluster.local"]);
}

#[test]
fn a_headless_service_without_endpoints_has_no_name() {
    assert_eq!(asked("empty.shop.svc.cluster.local", kinds::A), NO_NAME);
}

#[test]
fn pods_of_a_stateful_set_have_names_and_others_are_named_by_their_address() {
    assert_eq!(asked("db-1.db.shop.svc.cluster.local", kinds::A), well(&["127.77.0.2"]));
    assert_eq!(asked("127-77-0-3.db.shop.svc.cluster.local", kinds::A), well(&["127.77.0.3"]));
    assert_eq!(asked("127-77-0-1.db.shop.svc.cluster.local", kinds::A), NO_NAME);
    assert_eq!(asked("db-2.db.shop.svc.cluster.local", kinds::A), NO_NAME, "it is not ready");
    assert_eq!(asked("127-77-0-9.shop.pod.cluster.local", kinds::A), well(&["127.77.0.9"]));
}

#[test]
fn a_port_is_found_by_its_name_with_who_serves_it() {
    let web = "0 80 web.shop.svc.cluster.local".replacen('0', "100", 1);
    assert_eq!(asked("_http._tcp.web.shop.svc.cluster.local", kinds::SRV), well(&[&web]));
    assert_eq!(
        asked("_sql._tcp.db.shop.svc.cluster.local", kinds::SRV),
        well(&[
            "33 5433 127-77-0-3.db.shop.svc.cluster.local",
            "33 5433 db-0.db.shop.svc.cluster.local",
            "33 5433 db-1.db.shop.svc.cluster.local",
        ])
    );
    assert_eq!(asked("_sql._udp.db.shop.svc.cluster.local", kinds::SRV), NO_NAME);
    assert_eq!(asked("_none._tcp.web.shop.svc.cluster.local", kinds::SRV), NO_NAME);
    assert_eq!(asked("_http._tcp.web.shop.svc.cluster.local", kinds::A), well(&[]));
}

#[test]
fn the_hosts_of_a_port_come_with_their_addresses() {
    let NameAnswer::Reply(reply) = answer(&table(), "_sql._tcp.db.shop.svc.cluster.local", kinds::SRV) else {
        panic!()
    };

    let hosts: Vec<String> = reply.additional.iter().map(|one| format!("{} {}", one.name, shown(one))).collect();
    assert_eq!(hosts[1], "db-0.db.shop.svc.cluster.local 127.77.0.1");
    assert_eq!(hosts.len(), 3);
}

#[test]
fn addresses_have_the_names_of_services_and_of_named_endpoints() {
    assert_eq!(asked("2.1.78.127.in-addr.arpa", kinds::PTR), well(&["web.shop.svc.cluster.local"]));
    assert_eq!(asked("1.0.77.127.in-addr.arpa", kinds::PTR), well(&["db-0.db.shop.svc.cluster.local"]));
    assert_eq!(asked("3.0.77.127.in-addr.arpa", kinds::PTR), NO_NAME);
    assert_eq!(asked("3.1.78.127.in-addr.arpa", kinds::PTR), NO_NAME);
}

#[test]
fn an_alias_is_followed_as_far_as_it_is_known() {
    assert_eq!(asked("near.shop.svc.cluster.local", kinds::A), well(&["web.shop.svc.cluster.local", "127.78.1.2"]));
    assert_eq!(asked("far.shop.svc.cluster.local", kinds::CNAME), well(&["example.com"]));
    let NameAnswer::Alias { reply, target } = answer(&table(), "far.shop.svc.cluster.local", kinds::A) else {
        panic!()
    };
    assert_eq!(
        (reply.answers.iter().map(shown).collect::<Vec<_>>(), target.as_str()),
        (vec!["example.com".to_owned()], "example.com")
    );
}

#[test]
fn an_alias_of_itself_ends() {
    let (code, records) = asked("round.shop.svc.cluster.local", kinds::A);
    assert_eq!((code, records.len()), (ReplyCode::NoError, MOST_ALIASES));
}

#[test]
fn other_names_are_asked_for_elsewhere_and_the_version_is_told() {
    assert_eq!(answer(&table(), "example.com", kinds::A), NameAnswer::Elsewhere);
    assert_eq!(asked("dns-version.cluster.local", kinds::TXT), well(&["1.1.0"]));
}

#[test]
fn names_in_this_process_may_leave_their_end_away() {
    let found = |name| address_of_name(&table(), name).map(|address| address.to_string());

    for name in ["web.shop", "web.shop.svc", "web.shop.svc.cluster.local", "Web.Shop.svc.cluster.local."] {
        assert_eq!(found(name).as_deref(), Some("127.78.1.2"), "{name}");
    }
    assert_eq!(found("db-1.db.shop.svc").as_deref(), Some("127.77.0.2"));
    assert_eq!(found("example.com"), None);
    assert_eq!(found("none.shop.svc"), None);
}
