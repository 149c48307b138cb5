//! The controllers of services make what the real kube-controller-manager made, stage by stage of every recorded scenario.
//!
//! `scripts/record-endpoints` writes the recording. Names of slices are compared by who keeps his; the order of endpoints
//! and subsets means nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::object::{list, name_of, text};
use crate::endpoint_slices::EndpointSlices;
use crate::endpoints::Endpoints;
use crate::testing::TestObjects;
use crate::{Controller as _, View as _};

const SLICES: &str = "endpointslices.discovery.k8s.io";

fn recording() -> Value {
    serde_json::from_str(include_str!("../data/endpoints.json")).unwrap()
}

/// Makes the objects of a collection be these, and nothing else, and lets the controllers come to rest.
fn replace(world: &mut TestObjects, collection: &str, objects: &[Value]) {
    for old in world.list(collection, "") {
        if !objects.iter().any(|new| new["metadata"]["uid"] == old["metadata"]["uid"]) {
            world.remove(collection, &name_of(&old));
            if collection == "services" {
                // Garbage collection takes the slices.
                for slice in world.list(SLICES, "").iter().filter(|s| owner(s) == old["metadata"]["uid"]) {
                    world.remove(SLICES, &name_of(slice));
                }
                let plan = Endpoints.gone(world, &name_of(&old));
                world.carry_out(plan);
            }
        }
    }
    world.settle_all(&[&EndpointSlices, &Endpoints]);
    // One by one, as they were recorded.
    for object in objects {
        world.put(collection, object.clone());
        world.settle_all(&[&EndpointSlices, &Endpoints]);
    }
}

fn owner(slice: &Value) -> Value {
    slice["metadata"]["ownerReferences"][0]["uid"].clone()
}

/// Slices by number of first appearance, without what two runs cannot have in common.
fn shown(slices: &[Value], seen: &mut Vec<String>) -> BTreeMap<usize, Value> {
    let mut sorted = slices.to_vec();
    // Slices that appear together are told apart by what is in them.
    sorted.sort_by_key(|slice| {
        (
            json!(list(slice, "/ports")).to_string(),
            text(slice, "/addressType").to_owned(),
            list(slice, "/endpoints").len(),
        )
    });
    let mut all = BTreeMap::new();
    for slice in sorted {
        let name = text(&slice, "/metadata/name").to_owned();
        let number = seen.iter().position(|known| *known == name).unwrap_or_else(|| {
            seen.push(name);
            seen.len() - 1
        });
        let mut endpoints = list(&slice, "/endpoints").to_vec();
        endpoints.sort_by_key(ToString::to_string);
        let metadata = &slice["metadata"];
        let annotations = metadata.get("annotations").filter(|a| **a != json!({})).cloned();
        let shown = json!({
            "labels": metadata["labels"], "annotations": annotations, "owner": metadata["ownerReferences"],
            "generateName": metadata["generateName"], "type": slice["addressType"], "ports": list(&slice, "/ports"),
            "endpoints": endpoints,
        });
        all.insert(number, shown);
    }
    all
}

fn shown_endpoints(endpoints: &[Value]) -> BTreeMap<String, Value> {
    let one = |object: &Value| {
        let mut subsets = list(object, "/subsets").to_vec();
        subsets.sort_by_key(ToString::to_string);
        let metadata = &object["metadata"];
        let annotations = metadata.get("annotations").filter(|a| **a != json!({})).cloned();
        json!({"labels": metadata["labels"], "annotations": annotations, "subsets": subsets})
    };
    endpoints.iter().map(|object| (text(object, "/metadata/name").to_owned(), one(object))).collect()
}

/// The real controllers forget the time of a change that they had to try twice, which happens now and then.
fn without_lost_times<K: Ord + Clone>(mut got: BTreeMap<K, Value>, wanted: &BTreeMap<K, Value>) -> BTreeMap<K, Value> {
    for (key, made) in &mut got {
        if wanted.get(key).is_some_and(|wanted| wanted["annotations"].is_null()) {
            made["annotations"].take();
        }
    }
    got
}

#[test]
fn services_are_followed_as_the_real_controllers_follow_them() {
    let recording = recording();
    let mut stages = 0;
    for scenario in list(&recording, "/scenarios") {
        let mut world = TestObjects::default();
        for node in list(&recording, "/nodes") {
            world.put("nodes", node.clone());
        }
        let (mut real, mut ours) = (Vec::new(), Vec::new());
        for (number, stage) in list(scenario, "/stages").iter().enumerate() {
            replace(&mut world, "services", list(stage, "/services"));
            replace(&mut world, "pods", list(stage, "/pods"));

            let title = format!("{} (stage {number})", scenario["scenario"]);
            let made =
                |collection: &str| -> Vec<Value> { world.list(collection, "").iter().map(|o| (**o).clone()).collect() };
            let (wanted, got) = (shown(list(stage, "/slices"), &mut real), shown(&made(SLICES), &mut ours));
            assert_eq!(json!(without_lost_times(got, &wanted)), json!(wanted), "slices of {title}");
            let (wanted, got) = (shown_endpoints(list(stage, "/endpoints")), shown_endpoints(&made("endpoints")));
            assert_eq!(json!(without_lost_times(got, &wanted)), json!(wanted), "endpoints of {title}");
            stages += 1;
        }
    }
    assert!(stages > 30, "{stages} stages");
}
