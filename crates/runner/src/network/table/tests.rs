//! Services and slices as the API has them → who serves what.

use serde_json::{Value, json};

use super::*;
use crate::network::testing::{put_service, put_slice, service_name};

fn table() -> ServiceTable {
    ServiceTable::of_node("here")
}

fn web(more: Value) -> Value {
    let mut spec = json!({"clusterIP": "127.78.1.2", "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

fn slice(endpoints: Value) -> Value {
    json!({"endpoints": endpoints, "ports": [
        {"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "dns", "port": 5353, "protocol": "UDP"}]})
}

fn endpoint(address: &str, conditions: Value) -> Value {
    json!({"addresses": [address], "conditions": conditions, "nodeName": "here"})
}

fn ready(address: &str) -> Value {
    endpoint(address, json!({"ready": true}))
}

/// `LISTEN → BACKENDS` of each port.
fn served(table: &ServiceTable) -> Vec<String> {
    let ports = table.served(&service_name("shop", "web"));
    let line = |port: ServedPort| {
        let backends: Vec<String> = port.backends.iter().map(ToString::to_string).collect();
        format!("{} {} → {}", port.transport.label(), port.listen, backends.join(" "))
    };
    ports.into_iter().map(line).collect()
}

#[test]
fn ready_endpoints_of_all_slices_serve_the_port_of_their_name() {
    let mut table = table();
    put_service(&mut table, "web", &web(json!({})));
    let waiting = endpoint("127.77.0.3", json!({"ready": false}));
    put_slice(&mut table, "web", "one", &slice(json!([ready("127.77.0.1"), waiting])));
    put_slice(&mut table, "web", "two", &slice(json!([ready("127.77.0.2"), ready("127.77.0.1")])));

    assert_eq!(
        served(&table),
        ["tcp 127.78.1.2:80 → 127.77.0.1:8080 127.77.0.2:8080", "udp 127.78.1.2:53 → 127.77.0.1:5353 127.77.0.2:5353"]
    );
}

#[test]
fn a_pod_that_is_being_ended_is_asked_no_more_as_soon_as_the_runner_knows() {
    let mut table = table();
    put_service(&mut table, "web", &web(json!({})));
    put_slice(&mut table, "web", "one", &slice(json!([ready("127.77.0.1"), ready("127.77.0.2")])));

    let concerned = table.leaves(Ipv4Addr::new(127, 77, 0, 1));

    assert_eq!(concerned, [service_name("shop", "web")]);
    assert_eq!(served(&table)[0], "tcp 127.78.1.2:80 → 127.77.0.2:8080");
    table.arrives(Ipv4Addr::new(127, 77, 0, 1));
    assert_eq!(served(&table)[0], "tcp 127.78.1.2:80 → 127.77.0.1:8080 127.77.0.2:8080");
}

#[test]
fn where_nobody_is_ready_those_that_end_and_still_answer_are_asked() {
    let mut table = table();
    put_service(&mut table, "web", &web(json!({})));
    let ends = endpoint("127.77.0.1", json!({"ready": false, "serving": true, "terminating": true}));
    let ended = endpoint("127.77.0.2", json!({"ready": false, "serving": false, "terminating": true}));
    put_slice(&mut table, "web", "one", &slice(json!([ends, ended])));

    assert_eq!(served(&table)[0], "tcp 127.78.1.2:80 → 127.77.0.1:8080");
}

#[test]
fn local_traffic_stays_on_the_node() {
    let mut table = table();
    put_service(&mut table, "web", &web(json!({"internalTrafficPolicy": "Local"})));
    let elsewhere = json!({"addresses": ["127.77.0.2"], "nodeName": "there"});
    let nowhere = json!({"addresses": ["127.77.0.3"]});
    put_slice(&mut table, "web", "one", &slice(json!([ready("127.77.0.1"), elsewhere, nowhere])));

    assert_eq!(served(&table)[0], "tcp 127.78.1.2:80 → 127.77.0.1:8080");
}

#[test]
fn ports_of_the_node_are_listened_on_as_well() {
    let mut table = table();
    let ports = json!([{"name": "http", "port": 80, "nodePort": 30_080}]);
    put_service(&mut table, "web", &web(json!({"type": "NodePort", "ports": ports})));
    put_slice(&mut table, "web", "one", &slice(json!([ready("127.77.0.1")])));

    assert_eq!(served(&table), ["tcp 127.78.1.2:80 → 127.77.0.1:8080", "tcp 127.0.0.1:30080 → 127.77.0.1:8080"]);
}

#[test]
fn headless_services_and_aliases_listen_nowhere() {
    let mut table = table();
    put_service(&mut table, "web", &web(json!({"clusterIP": "None"})));
    put_slice(&mut table, "web", "one", &slice(json!([ready("127.77.0.1")])));
    assert_eq!(table.served(&service_name("shop", "web")), []);

    put_service(&mut table, "web", &json!({"type": "ExternalName", "externalName": "example.com"}));
    assert_eq!(table.served(&service_name("shop", "web")), []);
}

#[test]
fn a_slice_that_changes_its_service_serves_the_new_one_only() {
    let mut table = table();
    put_service(&mut table, "web", &web(json!({})));
    put_slice(&mut table, "web", "one", &slice(json!([ready("127.77.0.1")])));

    let concerned = put_slice(&mut table, "api", "one", &slice(json!([ready("127.77.0.1")])));

    assert_eq!(concerned, [service_name("shop", "web"), service_name("shop", "api")]);
    assert_eq!(served(&table)[0], "tcp 127.78.1.2:80 → ");
}

#[test]
fn nothing_is_left_of_what_is_gone() {
    let mut table = table();
    put_service(&mut table, "web", &web(json!({})));
    put_slice(&mut table, "web", "one", &slice(json!([ready("127.77.0.1")])));

    assert_eq!(table.put_slice("shop", "one", None), [service_name("shop", "web")]);
    table.put_service(&service_name("shop", "web"), None);

    assert!(table.services.is_empty() && table.owners.is_empty() && table.by_address.is_empty());
    assert!(!table.has_namespace("shop"));
}
