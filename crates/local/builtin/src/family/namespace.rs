//! `Namespace`: its own finalizer list, phase and name label.

use serde_json::{Value, json};

use crate::value::{default, object, text_at};

/// The label that carries the name, and the phase.
pub(crate) fn defaults(namespace: &mut Value) {
    let name = text_at(namespace, "/metadata/name").to_owned();
    if !name.is_empty()
        && let Some(labels) = object(namespace, "metadata").and_then(|metadata| object(metadata, "labels"))
    {
        labels["kubernetes.io/metadata.name"] = json!(name);
    }
    if let Some(status) = object(namespace, "status") {
        default(status, "phase", "Active");
    }
}

/// A new namespace is active and held by its content until that is gone.
pub(crate) fn prepare_create(namespace: &mut Value) {
    namespace["status"] = json!({"phase": "Active"});
    let Some(spec) = object(namespace, "spec") else { return };
    default(spec, "finalizers", json!([]));
    let Some(finalizers) = spec["finalizers"].as_array_mut() else {
        return;
    };
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push(json!("kubernetes"));
    }
    defaults(namespace);
}
