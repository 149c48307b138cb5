//! What slices shall hold, and the slices that are there → the steps that make them so.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::CONTROLLER;
use super::desired::{Desired, SliceContent, SliceKey};
use crate::Step;
use crate::common::diff::{map_patch, or_null};
use crate::common::kind::WRITTEN_ENDPOINTS;
use crate::common::object::{self, is_deleting, list, name};
use crate::common::owner::controller_reference;
use crate::common::step::{change, delete, exact_target};
use crate::endpoint_slices::endpoint::{EndpointIdentity, says_the_same};
use crate::endpoint_slices::{MANAGED_BY, SERVICE_NAME, SLICES, ports};
use crate::serving::{TRIGGER_TIME, annotated};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// Creations first, deletions last. A slice that nobody needs any longer takes the place of a new one of its family.
pub(super) fn steps(endpoints: &Value, desired: &Desired, there: Vec<Arc<Value>>) -> Vec<Step> {
    let (mut groups, mut spare) = grouped(there);
    let (mut create, mut update) = (Vec::new(), Vec::new());
    for (key, content) in &desired.contents {
        let mut group = groups.remove(key).unwrap_or_default();
        match group.pop_front() {
            Some(slice) => update.extend(changed(endpoints, content, &slice)),
            None => create.push((key.0, content)),
        }
        spare.extend(group);
    }
    spare.extend(groups.into_values().flatten());
    let mut steps = Vec::new();
    for (family, content) in create {
        let taken = spare.iter().position(|slice| slice["addressType"] == family).map(|index| spare.remove(index));
        match taken {
            Some(slice) => update.extend(rewritten(endpoints, content, &slice, &prefix(endpoints))),
            None if is_deleting(endpoints) => {}
            None => steps.push(created(endpoints, content, family)),
        }
    }
    steps.extend(update);
    let going = spare.iter().filter(|slice| !is_deleting(slice));
    steps.extend(going.map(|slice| delete(exact_target(SLICES, slice))));
    steps
}

/// Slices by what they are for.
type Groups = BTreeMap<SliceKey, VecDeque<Arc<Value>>>;

/// Slices by what they are for, and those that are for nothing.
fn grouped(there: Vec<Arc<Value>>) -> (Groups, Vec<Arc<Value>>) {
    let (mut groups, mut others) = (Groups::new(), Vec::new());
    for slice in there {
        match ["IPv4", "IPv6"].into_iter().find(|family| slice["addressType"] == *family) {
            Some(family) => {
                groups.entry((family, ports::key(list(&slice, "/ports")))).or_default().push_back(slice);
            }
            None => others.push(slice),
        }
    }
    (groups, others)
}

/// The step that corrects a slice, where anything is wrong with it.
fn changed(endpoints: &Value, content: &SliceContent, slice: &Value) -> Option<Step> {
    let here = list(slice, "/endpoints");
    let is_wanted =
        |one: &Value| content.endpoints.get(&EndpointIdentity::of(one)).is_some_and(|want| is_same(want, one));
    let same = here.len() == content.endpoints.len()
        && here.iter().all(is_wanted)
        && slice["metadata"]["labels"] == labels(endpoints)
        && map_patch(&slice["metadata"]["annotations"], &annotations(endpoints)).is_none()
        && !is_of_another(slice, endpoints);
    if same { None } else { rewritten(endpoints, content, slice, &Value::Null) }
}

fn is_same(one: &Value, other: &Value) -> bool {
    says_the_same(one, other) && one["targetRef"] == other["targetRef"]
}

/// Whether a slice belongs to endpoints of the same name that were there before.
fn is_of_another(slice: &Value, endpoints: &Value) -> bool {
    let metadata = &endpoints["metadata"];
    list(slice, "/metadata/ownerReferences").iter().any(|owner| {
        owner["kind"] == "Endpoints" && owner["name"] == metadata["name"] && owner["uid"] != metadata["uid"]
    })
}

/// The step that makes a slice anew; nothing of it but its name is kept. Only one that takes the place of a new slice
/// says what its name is drawn from.
fn rewritten(endpoints: &Value, content: &SliceContent, slice: &Value, drawn_from: &Value) -> Option<Step> {
    let mut metadata = Map::new();
    for (field, new) in [("labels", labels(endpoints)), ("annotations", annotations(endpoints))] {
        metadata.extend(map_patch(&slice["metadata"][field], &new).map(|patch| (field.to_owned(), patch)));
    }
    let mut patch = Map::new();
    let owner = json!([owner(endpoints)]);
    if slice["metadata"]["ownerReferences"] != owner {
        metadata.insert("ownerReferences".to_owned(), owner);
    }
    if slice["metadata"]["generateName"] != *drawn_from {
        metadata.insert("generateName".to_owned(), drawn_from.clone());
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    for (field, new) in [("endpoints", endpoints_of(content)), ("ports", content.ports.clone())] {
        if list(slice, &format!("/{field}")) != new.as_slice() {
            patch.insert(field.to_owned(), or_null(new));
        }
    }
    (!patch.is_empty()).then(|| change(exact_target(SLICES, slice), Value::Object(patch)))
}

fn created(endpoints: &Value, content: &SliceContent, family: &str) -> Step {
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "generateName": prefix(endpoints), "namespace": endpoints["metadata"]["namespace"],
            "labels": labels(endpoints), "annotations": annotations(endpoints), "ownerReferences": [owner(endpoints)],
        },
        "addressType": family, "endpoints": endpoints_of(content), "ports": content.ports,
    });
    Step::Create { collection: SLICES, object }
}

fn endpoints_of(content: &SliceContent) -> Vec<Value> {
    content.endpoints.values().cloned().collect()
}

fn owner(endpoints: &Value) -> Value {
    controller_reference(endpoints, &WRITTEN_ENDPOINTS)
}

fn prefix(endpoints: &Value) -> Value {
    let name = name(endpoints);
    if name.len() < LONGEST_NAME { json!(format!("{name}-")) } else { json!(name) }
}

/// The labels of the endpoints, and those that say whose slice it is.
fn labels(endpoints: &Value) -> Value {
    let mut labels = object::labels(endpoints).cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), endpoints["metadata"]["name"].clone());
    labels.insert(MANAGED_BY.to_owned(), json!(CONTROLLER));
    Value::Object(labels)
}

fn annotations(endpoints: &Value) -> Value {
    annotated(&endpoints["metadata"]["annotations"], &[(TRIGGER_TIME, None), (LAST_APPLIED, None)])
}
