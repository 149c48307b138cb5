//! `Namespace`: its own finalizer list, phase and name label.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::Errors;
use crate::meta::invalid;
use crate::names;
use crate::validation::is_finalizer_name;
use crate::value::{default, object, text_at, texts};

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

/// Names of the finalizers in the spec.
pub(crate) fn validate(namespace: &Value, errors: &mut Errors) {
    let root = Path::root();
    for finalizer in texts(&namespace["spec"], "finalizers") {
        let path = root.field("spec");
        let path = path.field("finalizers");
        invalid(errors, &path, finalizer, names::qualified_name(finalizer));
        if !is_finalizer_name(finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path, &json!(finalizer), detail));
        }
    }
}
