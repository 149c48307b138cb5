//! Small readings of an object, and what steps and events need to name it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{Event, EventType, Name, Step, Target};

/// The text at a pointer; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a pointer; 0 where there is none.
pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// The time at a pointer.
pub(crate) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object.pointer("/metadata/labels").and_then(Value::as_object)
}

/// An annotation, where the object has it.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key).and_then(Value::as_str)
}

/// Where the object is.
pub(crate) fn name_of(object: &Value) -> Name {
    Name { namespace: namespace(object).to_owned(), name: name(object).to_owned() }
}

/// The object as the target of a step that stays right whatever else changed.
pub(crate) fn target(collection: &'static str, object: &Value) -> Target {
    Target {
        collection,
        namespace: namespace(object).to_owned(),
        name: name(object).to_owned(),
        uid: uid(object).to_owned(),
        version: None,
    }
}

/// The object in exactly this version as the target of a step.
pub(crate) fn exact_target(collection: &'static str, object: &Value) -> Target {
    let version = Some(text(object, "/metadata/resourceVersion").to_owned());
    Target { version, ..target(collection, object) }
}

/// The owner reference with `controller: true`.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().find(|reference| reference["controller"] == true)
}

/// The reference by which an object of this kind controls others.
pub(crate) fn controller_reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// An event about an object, as a step.
pub(crate) fn event(about: &Value, event_type: EventType, reason: &'static str, message: String) -> Step {
    let metadata = &about["metadata"];
    let about = json!({
        "apiVersion": about["apiVersion"], "kind": about["kind"],
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
    });
    Step::Event(Event { about, event_type, reason, message })
}

/// A time as objects carry it, in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
