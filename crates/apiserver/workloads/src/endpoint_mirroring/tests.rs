use std::sync::Arc;

use serde_json::{Value, json};

use super::{ENDPOINTS, Mirroring, SERVICES};
use crate::endpoint_slices::SLICES;
use crate::testing::{TestObjects, in_shop};
use crate::{Controller as _, ObjectName, View as _};

fn web() -> ObjectName {
    in_shop("web")
}

fn subset(addresses: &[&str], port: i64) -> Value {
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"addresses": addresses, "ports": [{"port": port, "protocol": "TCP"}]})
}

fn world(subsets: Value) -> TestObjects {
    let mut world = TestObjects::default();
    world.put(SERVICES, json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"clusterIP": "10.0.0.7"}}));
    let metadata = json!({"name": "web", "namespace": "shop", "labels": {"team": "blue"}});
    world.put(ENDPOINTS, json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}));
    world.settle(&Mirroring);
    world
}

fn slices(world: &TestObjects) -> Vec<Arc<Value>> {
    world.list(SLICES, "shop")
}

fn names(world: &TestObjects) -> Vec<Value> {
    slices(world).iter().map(|slice| slice["metadata"]["name"].clone()).collect()
}

/// Changes the endpoints and lets the controller come to rest.
fn change(world: &mut TestObjects, patch: &Value) {
    world.patch(ENDPOINTS, &web(), patch);
    world.settle(&Mirroring);
}

#[test]
fn a_subset_becomes_a_slice_that_the_endpoints_own() {
    let world = world(json!([subset(&["10.1.0.1"], 80)]));

    let [slice] = slices(&world).try_into().unwrap();
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["endpoints"], json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": true}}]));
    assert_eq!(slice["ports"], json!([{"name": "", "port": 80, "protocol": "TCP"}]));
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Endpoints");
    assert_eq!(
        slice["metadata"]["labels"],
        json!({
            "team": "blue", "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        })
    );
}

#[test]
fn every_family_has_its_slice() {
    let world = world(json!([subset(&["010.1.0.1", "FD00:0::1", "::ffff:10.1.0.2"], 80)]));

    let told: Vec<(Value, usize)> = slices(&world)
        .iter()
        .map(|slice| (slice["addressType"].clone(), slice["endpoints"].as_array().unwrap().len()))
        .collect();
    assert_eq!(told, [(json!("IPv4"), 2), (json!("IPv6"), 1)]);
    assert_eq!(slices(&world)[1]["endpoints"][0]["addresses"], json!(["fd00::1"]));
}

#[test]
fn a_slice_of_other_ports_takes_the_place_of_a_new_one() {
    let mut world = world(json!([subset(&["10.1.0.1"], 80)]));
    let before = names(&world);

    change(&mut world, &json!({"subsets": [subset(&["10.1.0.2"], 90)]}));

    assert_eq!(names(&world), before);
    assert_eq!(slices(&world)[0]["ports"][0]["port"], 90);
    assert_eq!(slices(&world)[0]["endpoints"][0]["addresses"], json!(["10.1.0.2"]));
}

#[test]
fn marks_of_the_endpoints_are_followed_but_not_when_they_were_applied() {
    let mut world = world(json!([subset(&["10.1.0.1"], 80)]));

    let annotations = json!({"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "{}"});
    change(&mut world, &json!({"metadata": {"labels": {"team": null}, "annotations": annotations}}));

    let [slice] = slices(&world).try_into().unwrap();
    assert_eq!(slice["metadata"]["annotations"], json!({"note": "kept"}));
    assert!(slice["metadata"]["labels"].get("team").is_none());
}

#[test]
fn a_label_a_lock_a_selector_and_a_missing_service_end_the_mirroring() {
    let ends: [fn(&mut TestObjects); 5] = [
        |world| world.patch(ENDPOINTS, &web(), &json!({"metadata": {"labels": {super::SKIP: "true"}}})),
        |world| world.patch(ENDPOINTS, &web(), &json!({"metadata": {"annotations": {super::LEADER: ""}}})),
        |world| world.patch(SERVICES, &web(), &json!({"spec": {"selector": {"app": "web"}}})),
        |world| world.remove(SERVICES, &web()),
        |world| world.patch(ENDPOINTS, &web(), &json!({"subsets": null})),
    ];
    for end in ends {
        let mut world = world(json!([subset(&["10.1.0.1"], 80)]));
        end(&mut world);

        world.settle(&Mirroring);

        assert!(slices(&world).is_empty());
    }
}

#[test]
fn slices_go_with_the_endpoints_and_follow_others_of_their_name() {
    let mut world = world(json!([subset(&["10.1.0.1"], 80)]));
    let before = names(&world);
    let old = world.get(ENDPOINTS, "shop", "web").unwrap();

    world.remove(ENDPOINTS, &web());
    let mut new = (*old).clone();
    new["metadata"]["uid"] = json!("another");
    world.put(ENDPOINTS, new);
    world.settle(&Mirroring);

    assert_eq!(names(&world), before);
    assert_eq!(slices(&world)[0]["metadata"]["ownerReferences"][0]["uid"], "another");

    world.remove(ENDPOINTS, &web());
    let plan = Mirroring.gone(&world, &web());
    world.carry_out(plan);

    assert!(slices(&world).is_empty());
}

#[test]
fn what_is_too_much_for_a_slice_is_left_out_and_told_once() {
    let all: Vec<String> = (0..1002).map(|number| format!("10.1.{}.{}", number / 250, number % 250)).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();

    let world = world(json!([subset(&all, 80)]));

    assert_eq!(slices(&world)[0]["endpoints"].as_array().unwrap().len(), 1000);
    let told: Vec<&str> = world.events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(
        told,
        ["A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped"]
    );
}

#[test]
fn slices_of_others_concern_nobody() {
    let labels = json!({"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "someone"});
    let slice = json!({"metadata": {"name": "web-1", "namespace": "shop", "labels": labels}});

    assert!(Mirroring.concerned(&TestObjects::default(), SLICES, &slice).is_empty());
}
