//! A server with its controllers on: services are followed by slices, namespaces have their account and certificate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use crate::support::{Lines, get, merge, post};
use portolan_apiserver::{ApiServer, Config, Workloads};
use serde_json::{Value, json};

const CORE: &str = "/api/v1/namespaces/default";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

async fn server() -> ApiServer {
    ApiServer::open(Config { workloads: Workloads::On, ..Config::default() }).await.unwrap()
}

/// Reads a watch until an object is as wanted.
async fn until(lines: &mut Lines, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let event = lines.event().await.expect("the watch goes on");
        if wanted(&event["object"]) {
            return event["object"].clone();
        }
    }
}

#[tokio::test]
async fn a_pod_of_this_machine_becomes_an_endpoint_of_its_service() {
    let server = server().await;
    let service = server.service();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}});
    let web = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "web"}},
        "spec": {"nodeName": "here", "containers": [{"name": "a", "image": "a"}]},
    });
    let mut slices = Lines::watch(&service, SLICES, "").await;
    let mut endpoints = Lines::watch(&service, &format!("{CORE}/endpoints"), "").await;
    post(&service, "/api/v1/nodes", &node).await.ok();
    post(&service, &format!("{CORE}/services"), &web).await.ok();
    post(&service, &format!("{CORE}/pods"), &pod).await.ok();

    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"phase": "Running", "podIP": "127.77.0.1", "conditions": [ready]});
    merge(&service, &format!("{CORE}/pods/a/status"), &json!({"status": status})).await.ok();
    let slice = until(&mut slices, |slice| slice["endpoints"][0]["conditions"]["ready"] == true).await;
    let older = until(&mut endpoints, |one| one["subsets"][0]["addresses"][0]["ip"] == "127.77.0.1").await;

    assert_eq!(slice["endpoints"][0]["addresses"], json!(["127.77.0.1"]));
    assert_eq!(slice["ports"][0]["port"], 8080);
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "web");
    assert_eq!(older["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"], "endpoint-controller");
}

#[tokio::test]
async fn services_that_ask_for_no_address_leave_the_first_ones_alone_and_get_scattered_ones() {
    let server = server().await;
    let service = server.service();
    let mut given = std::collections::BTreeSet::new();
    for number in 0..8 {
        let web = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("web-{number}")},
            "spec": {"ports": [{"port": 80}]},
        });
        let made = post(&service, &format!("{CORE}/services"), &web).await.ok();
        let address: std::net::Ipv4Addr = made["spec"]["clusterIP"].as_str().unwrap().parse().unwrap();
        given.insert(address.octets());
    }

    assert_eq!(given.len(), 8, "each has its own: {given:?}");
    assert!(given.iter().all(|[a, b, third, _]| (*a, *b) == (127, 78) && *third > 0), "{given:?}");
    let thirds: std::collections::BTreeSet<u8> = given.iter().map(|octets| octets[2]).collect();
    assert!(thirds.len() > 1, "they do not stand in one row: {given:?}");
}

#[tokio::test]
async fn a_service_may_ask_for_one_of_the_first_addresses() {
    let server = server().await;
    let service = server.service();
    let dns = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "dns"},
        "spec": {"clusterIP": "127.78.0.10", "ports": [{"port": 53}]},
    });

    let made = post(&service, &format!("{CORE}/services"), &dns).await.ok();

    assert_eq!(made["spec"]["clusterIPs"], json!(["127.78.0.10"]));
}

#[tokio::test]
async fn a_new_namespace_has_its_account_and_the_servers_certificate() {
    let server = server().await;
    let service = server.service();
    let mut accounts = Lines::watch(&service, "/api/v1/namespaces/shop/serviceaccounts", "").await;
    let mut maps = Lines::watch(&service, "/api/v1/namespaces/shop/configmaps", "").await;

    let running = server.clone().serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    post(&service, "/api/v1/namespaces", &shop).await.ok();
    let account = accounts.event().await.unwrap();
    let map = maps.event().await.unwrap();

    assert_eq!(account["object"]["metadata"]["name"], "default");
    assert_eq!(map["object"]["metadata"]["name"], "kube-root-ca.crt");
    assert_eq!(map["object"]["data"]["ca.crt"], running.ca_pem());
}

#[tokio::test]
async fn without_the_controllers_nothing_is_made() {
    let server = crate::support::server().await;
    let service = server.service();

    let accounts = get(&service, &format!("{CORE}/serviceaccounts")).await.ok();

    assert_eq!(accounts["items"], json!([]));
}
