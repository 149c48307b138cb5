use std::sync::Arc;

use serde_json::{Value, json};

use super::{ENDPOINTS, Endpoints};
use crate::testing::{TestObjects, in_shop};
use crate::{Controller as _, View as _};

const NOON: &str = "2026-01-01T12:00:00Z";

fn service() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"team": "a"}},
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.7", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
            "ports": [
                {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"},
                {"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"},
            ],
        },
    })
}

fn pod(number: usize, ready: &str) -> Value {
    let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
    json!({
        "metadata": {"name": format!("web-{number:04}"), "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "a", "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]}],
        },
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": NOON}],
        },
    })
}

fn world(pods: impl IntoIterator<Item = Value>) -> TestObjects {
    let mut world = TestObjects::default();
    world.put("services", service());
    for pod in pods {
        world.put("pods", pod);
    }
    world.settle(&Endpoints);
    world
}

fn endpoints(world: &TestObjects) -> Arc<Value> {
    world.get(ENDPOINTS, "shop", "web").unwrap()
}

#[test]
fn ready_and_other_pods_stand_apart_under_the_same_ports() {
    let world = world([pod(1, "True"), pod(2, "False")]);

    let endpoints = endpoints(&world);
    let subset = &endpoints["subsets"][0];
    assert_eq!(endpoints["subsets"].as_array().unwrap().len(), 1);
    assert_eq!(subset["addresses"][0]["ip"], "10.1.0.2");
    assert_eq!(subset["notReadyAddresses"][0]["targetRef"]["name"], "web-0002");
    assert_eq!(subset["ports"].as_array().unwrap().len(), 2);
    assert_eq!(
        endpoints["metadata"]["labels"],
        json!({"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"})
    );
}

#[test]
fn a_pod_without_the_named_port_has_a_subset_of_its_own() {
    let mut bare = pod(2, "True");
    bare["spec"]["containers"][0]["ports"] = json!([]);

    let world = world([pod(1, "True"), bare]);

    let mut sizes: Vec<(usize, usize)> = endpoints(&world)["subsets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["addresses"].as_array().unwrap().len(), s["ports"].as_array().unwrap().len()))
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [(1, 1), (2, 1)]);
}

#[test]
fn pods_that_stop_leave_at_once() {
    let mut going = pod(1, "True");
    going["metadata"]["deletionTimestamp"] = json!(NOON);

    let world = world([going]);

    assert_eq!(endpoints(&world)["subsets"], json!([]));
}

#[test]
fn more_than_a_thousand_addresses_are_cut_and_marked() {
    let world = world((0..1010).map(|number| pod(number, if number < 5 { "False" } else { "True" })));

    let endpoints = endpoints(&world);
    assert_eq!(endpoints["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"], "truncated");
    assert_eq!(endpoints["subsets"][0]["addresses"].as_array().unwrap().len(), 1000);
    assert_eq!(endpoints["subsets"][0].get("notReadyAddresses"), None);
}

#[test]
fn the_mark_goes_when_there_is_room_again() {
    let mut world = world((0..1001).map(|number| pod(number, "True")));

    world.remove("pods", &in_shop("web-0000"));
    world.settle(&Endpoints);

    assert_eq!(endpoints(&world)["metadata"]["annotations"].get("endpoints.kubernetes.io/over-capacity"), None);
}

#[test]
fn they_go_with_their_service() {
    let mut world = world([pod(1, "True")]);
    world.remove("services", &in_shop("web"));

    let plan = Endpoints.gone(&world, &in_shop("web"));
    world.carry_out(plan);

    assert!(world.get(ENDPOINTS, "shop", "web").is_none());
}

#[test]
fn they_are_made_again_when_someone_deletes_them() {
    let mut world = world([pod(1, "True")]);
    let old = endpoints(&world);
    world.remove(ENDPOINTS, &in_shop("web"));

    let concerned = Endpoints.concerned(&world, ENDPOINTS, &old);
    world.settle(&Endpoints);

    assert_eq!(concerned, [in_shop("web")]);
    assert_eq!(endpoints(&world)["subsets"], old["subsets"]);
}

#[test]
fn those_that_someone_writes_concern_nobody() {
    let mut world = world([pod(1, "True")]);
    let theirs = json!({"metadata": {"name": "theirs", "namespace": "shop"}});
    world.put(ENDPOINTS, theirs.clone());

    assert_eq!(Endpoints.concerned(&world, ENDPOINTS, &theirs), []);
    assert_eq!(Endpoints.concerned(&world, ENDPOINTS, &endpoints(&world)), []);
}

#[test]
fn subsets_that_are_empty_are_taken_away() {
    let mut world = world([pod(1, "True")]);
    world.remove("pods", &in_shop("web-0001"));

    world.settle(&Endpoints);

    assert!(endpoints(&world).get("subsets").is_none());
}
