use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{EndpointSlices, SLICES};
use crate::common::object::list;
use crate::testing::{TestObjects, in_shop};
use crate::{Controller as _, Step, View as _};

const NOON: &str = "2026-01-01T12:00:00Z";

fn service(ports: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"team": "a"}},
        "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.7", "ipFamilies": ["IPv4"], "selector": {"app": "web"}, "ports": ports},
    })
}

fn http() -> Value {
    json!([{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}])
}

/// A pod with the address `10.1.0.N` on node `n1`.
fn pod(number: usize, ready: &str) -> Value {
    let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
    json!({
        "metadata": {"name": format!("web-{number:04}"), "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "a", "ports": []}]},
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": NOON}],
        },
    })
}

fn world(service: Value) -> TestObjects {
    let mut world = TestObjects::default();
    world.put("nodes", json!({"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}}));
    world.put("services", service);
    world
}

fn slices(world: &TestObjects) -> Vec<Arc<Value>> {
    world.list(SLICES, "shop")
}

fn only(world: &TestObjects) -> Arc<Value> {
    let slices = slices(world);
    assert_eq!(slices.len(), 1, "{slices:?}");
    slices[0].clone()
}

#[test]
fn a_service_without_pods_has_one_empty_slice() {
    let mut world = world(service(&http()));

    world.settle(&EndpointSlices);

    let slice = only(&world);
    assert_eq!(slice["endpoints"], json!([]));
    assert_eq!(slice["ports"], json!([]));
    assert_eq!(
        slice["metadata"]["labels"],
        json!({"team": "a", "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"})
    );
    assert_eq!(slice["metadata"]["ownerReferences"][0]["controller"], true);
}

#[test]
fn a_ready_pod_takes_the_empty_slice_over() {
    let mut world = world(service(&http()));
    world.settle(&EndpointSlices);
    let empty = only(&world);

    world.put("pods", pod(1, "True"));
    world.settle(&EndpointSlices);

    let slice = only(&world);
    assert_eq!(slice["metadata"]["name"], empty["metadata"]["name"]);
    assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    let endpoint = &slice["endpoints"][0];
    assert_eq!(endpoint["addresses"], json!(["10.1.0.2"]));
    assert_eq!(endpoint["conditions"], json!({"ready": true, "serving": true, "terminating": false}));
    assert_eq!((&endpoint["nodeName"], &endpoint["zone"]), (&json!("n1"), &json!("z1")));
    let annotation = &slice["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"];
    assert_eq!(annotation, NOON);
}

#[test]
fn a_pod_that_stops_serves_on_until_it_is_not_ready() {
    let mut world = world(service(&http()));
    let name = world.put("pods", pod(1, "True"));
    world.settle(&EndpointSlices);

    world.patch("pods", &name, &json!({"metadata": {"deletionTimestamp": NOON}}));
    world.settle(&EndpointSlices);

    let conditions = only(&world)["endpoints"][0]["conditions"].clone();
    assert_eq!(conditions, json!({"ready": false, "serving": true, "terminating": true}));
}

#[test]
fn a_pod_that_is_not_ready_is_named_as_such_unless_all_are_published() {
    let mut shown = service(&http());
    shown["spec"]["publishNotReadyAddresses"] = json!(true);
    for (service, ready) in [(service(&http()), false), (shown, true)] {
        let mut world = world(service);
        world.put("pods", pod(1, "False"));

        world.settle(&EndpointSlices);

        let conditions = only(&world)["endpoints"][0]["conditions"].clone();
        assert_eq!(conditions, json!({"ready": ready, "serving": false, "terminating": false}));
    }
}

#[test]
fn finished_pods_and_those_without_address_or_node_are_left_out() {
    let mut world = world(service(&http()));
    let mut finished = pod(1, "True");
    finished["status"]["phase"] = json!("Succeeded");
    let mut homeless = pod(2, "True");
    homeless["spec"]["nodeName"] = json!("elsewhere");
    let mut waiting = pod(3, "False");
    waiting["status"] = json!({"phase": "Pending"});
    for pod in [finished, homeless, waiting] {
        world.put("pods", pod);
    }

    world.settle(&EndpointSlices);

    assert_eq!(only(&world)["endpoints"], json!([]));
}

#[test]
fn pods_whose_named_port_differs_have_slices_of_their_own() {
    let ports = json!([{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}]);
    let mut world = world(service(&ports));
    for (number, port) in [(1, 8080), (2, 8080), (3, 9090)] {
        let mut pod = pod(number, "True");
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "web", "containerPort": port, "protocol": "TCP"}]);
        world.put("pods", pod);
    }

    world.settle(&EndpointSlices);

    let sizes: BTreeMap<i64, usize> = slices(&world)
        .iter()
        .map(|slice| (slice["ports"][0]["port"].as_i64().unwrap(), list(slice, "/endpoints").len()))
        .collect();
    assert_eq!(sizes, BTreeMap::from([(8080, 2), (9090, 1)]));
}

#[test]
fn both_families_have_slices() {
    let mut dual = service(&http());
    dual["spec"]["ipFamilies"] = json!(["IPv4", "IPv6"]);
    let mut world = world(dual);
    let mut pod = pod(1, "True");
    pod["status"]["podIPs"] = json!([{"ip": "10.1.0.2"}, {"ip": "fd00:0::2"}]);
    world.put("pods", pod);
    world.settle(&EndpointSlices);
    let addresses: BTreeSet<String> =
        slices(&world).iter().map(|s| s["endpoints"][0]["addresses"][0].to_string()).collect();

    world.patch("services", &in_shop("web"), &json!({"spec": {"ipFamilies": ["IPv6"]}}));
    world.settle(&EndpointSlices);

    assert_eq!(addresses, BTreeSet::from(["\"10.1.0.2\"".to_owned(), "\"fd00::2\"".to_owned()]));
    assert_eq!(only(&world)["addressType"], "IPv6");
}

#[test]
fn a_headless_service_says_so_and_names_its_pods() {
    let mut headless = service(&json!([]));
    headless["spec"]["clusterIP"] = json!("None");
    let mut world = world(headless);
    let mut pod = pod(1, "True");
    pod["spec"]["hostname"] = json!("first");
    pod["spec"]["subdomain"] = json!("web");
    world.put("pods", pod);

    world.settle(&EndpointSlices);

    let slice = only(&world);
    assert_eq!(slice["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(slice["endpoints"][0]["hostname"], "first");
    assert_eq!(slice["ports"], json!([]));
}

#[test]
fn labels_of_the_service_are_followed() {
    let mut world = world(service(&http()));
    world.settle(&EndpointSlices);

    world.patch("services", &in_shop("web"), &json!({"metadata": {"labels": {"team": null, "tier": "front"}}}));
    world.settle(&EndpointSlices);

    let labels = only(&world)["metadata"]["labels"].clone();
    assert_eq!((labels.get("team"), &labels["tier"]), (None, &json!("front")));
}

#[test]
fn services_without_selector_and_mere_names_are_left_alone() {
    let mut none = service(&http());
    none["spec"]["selector"] = json!(null);
    let mut external = service(&http());
    external["spec"]["type"] = json!("ExternalName");
    for service in [none, external] {
        let mut world = world(service);
        world.put("pods", pod(1, "True"));

        world.settle(&EndpointSlices);

        assert!(slices(&world).is_empty());
    }
}

#[test]
fn a_slice_that_belongs_to_an_older_service_goes() {
    let mut world = world(service(&http()));
    world.settle(&EndpointSlices);
    let old = only(&world);

    world.remove("services", &in_shop("web"));
    world.put("services", service(&http()));
    world.settle(&EndpointSlices);

    assert_ne!(only(&world)["metadata"]["name"], old["metadata"]["name"]);
}

#[test]
fn traffic_that_stays_close_has_hints_and_loses_them() {
    let mut close = service(&http());
    close["spec"]["trafficDistribution"] = json!("PreferSameNode");
    let mut world = world(close);
    world.put("pods", pod(1, "True"));
    world.settle(&EndpointSlices);
    let hints = only(&world)["endpoints"][0]["hints"].clone();

    world.patch("services", &in_shop("web"), &json!({"spec": {"trafficDistribution": null}}));
    world.settle(&EndpointSlices);

    assert_eq!(hints, json!({"forZones": [{"name": "z1"}], "forNodes": [{"name": "n1"}]}));
    assert_eq!(only(&world)["endpoints"][0].get("hints"), None);
}

#[test]
fn hints_by_topology_leave_none_by_distance() {
    for annotation in ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"] {
        let mut by_topology = service(&http());
        by_topology["spec"]["trafficDistribution"] = json!("PreferSameNode");
        by_topology["metadata"]["annotations"] = json!({annotation: "Auto"});
        let mut world = world(by_topology);
        world.put("pods", pod(1, "True"));

        world.settle(&EndpointSlices);

        assert_eq!(only(&world)["endpoints"][0].get("hints"), None, "{annotation}");
    }
}

#[test]
fn one_more_pod_changes_one_slice() {
    let mut world = world(service(&http()));
    for number in 0..250 {
        world.put("pods", pod(number, "True"));
    }
    world.settle(&EndpointSlices);
    let web = world.get("services", "shop", "web").unwrap();

    world.put("pods", pod(250, "True"));
    let plan = EndpointSlices.plan(&world, &web);

    assert_eq!(slices(&world).len(), 3);
    assert!(matches!(plan.steps.as_slice(), [Step::Patch { .. }]), "{plan:?}");
}

#[test]
fn pods_nodes_and_slices_concern_the_services_that_use_them() {
    let mut world = world(service(&http()));
    world.put("pods", pod(1, "True"));
    world.settle(&EndpointSlices);
    let node = world.get("nodes", "", "n1").unwrap();
    let mut other = pod(2, "True");
    other["metadata"]["labels"] = json!({"app": "db"});
    let concerned = |collection: &str, object: &Value| EndpointSlices.concerned(&world, collection, object);

    assert_eq!(concerned("pods", &pod(1, "True")), [in_shop("web")]);
    assert_eq!(concerned("pods", &other), []);
    assert_eq!(concerned("nodes", &node), [in_shop("web")]);
    assert_eq!(concerned(SLICES, &only(&world)), [in_shop("web")]);
}

/// One step of a history: a pod of this number appears, becomes ready or not, or goes.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Ready(usize),
    NotReady(usize),
    Gone(usize),
    Many(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (0..300_usize).prop_map(Happens::Ready),
        (0..300_usize).prop_map(Happens::NotReady),
        (0..300_usize).prop_map(Happens::Gone),
        (0..200_usize).prop_map(Happens::Many),
    ]
}

fn apply(world: &mut TestObjects, step: Happens) {
    let name = |number: usize| in_shop(&format!("web-{number:04}"));
    match step {
        Happens::Ready(number) => drop(world.put("pods", pod(number, "True"))),
        Happens::NotReady(number) => drop(world.put("pods", pod(number, "False"))),
        Happens::Gone(number) => world.remove("pods", &name(number)),
        Happens::Many(from) => (from..from + 100).for_each(|number| drop(world.put("pods", pod(number, "True")))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_pod_is_in_exactly_one_slice_and_none_is_too_large(history in proptest::collection::vec(happens(), 1..12)) {
        let mut world = world(service(&http()));
        for step in history {
            apply(&mut world, step);
            world.settle(&EndpointSlices);

            let slices = slices(&world);
            let mut seen: Vec<String> = Vec::new();
            for slice in &slices {
                prop_assert!(list(slice, "/endpoints").len() <= 100);
                seen.extend(list(slice, "/endpoints").iter().map(|one| one["targetRef"]["uid"].to_string()));
            }
            seen.sort();
            let mut pods: Vec<String> = world.list("pods", "shop").iter().map(|pod| pod["metadata"]["uid"].to_string()).collect();
            pods.sort();
            prop_assert_eq!(seen, pods);
            let web = world.get("services", "shop", "web").unwrap();
            prop_assert!(EndpointSlices.plan(&world, &web).steps.is_empty());
        }
    }
}
