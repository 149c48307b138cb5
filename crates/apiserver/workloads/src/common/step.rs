//! Objects → the steps that change them or tell about them.

use serde_json::{Map, Value, json};

use super::object::{name, namespace, text, uid};
use crate::{Dependents, Endpoint, Event, EventType, Step, StepTarget};

/// The object as the target of a step that stays right whatever else changed.
pub(crate) fn target(collection: &'static str, object: &Value) -> StepTarget {
    StepTarget {
        collection,
        namespace: namespace(object).to_owned(),
        name: name(object).to_owned(),
        uid: uid(object).to_owned(),
        version: None,
    }
}

/// The object in exactly this version as the target of a step: for patches that replace a list, or follow from what the
/// object says.
pub(crate) fn exact_target(collection: &'static str, object: &Value) -> StepTarget {
    let version = Some(text(object, "/metadata/resourceVersion").to_owned());
    StepTarget { version, ..target(collection, object) }
}

/// A patch of an object.
pub(crate) fn change(target: StepTarget, patch: Value) -> Step {
    Step::Patch { target, part: Endpoint::Main, patch }
}

/// A patch of its status; `patch` says what is below `status`.
pub(crate) fn change_status(target: StepTarget, patch: Value) -> Step {
    let patch = Value::Object(Map::from_iter([("status".to_owned(), patch)]));
    Step::Patch { target, part: Endpoint::Status, patch }
}

/// Its deletion; what it owns goes after it.
pub(crate) fn delete(target: StepTarget) -> Step {
    Step::Delete { target, dependents: Dependents::After }
}

/// An event about an object.
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
