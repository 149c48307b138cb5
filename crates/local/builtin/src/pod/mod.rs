//! Pods and pod templates: defaults, admission, validation, and what an update may change.

mod admission;
mod defaults;
mod quality;

pub(crate) use admission::{admit_create, admit_update};
pub(crate) use defaults::{pod_defaults, template_defaults};
pub(crate) use quality::quality_class;

use serde_json::{Value, json};

use crate::value::{object, text_at};

/// A new pod's status is the server's own.
pub(crate) fn prepare_create(pod: &mut Value) {
    let class = quality_class(pod);
    pod["status"] = json!({"phase": "Pending", "qosClass": class});
}

/// Updates of the main resource leave the status alone.
pub(crate) fn normalise_grace(spec: &mut Value) {
    if spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|seconds| seconds < 0)
    {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
}

/// Fills in the service account that the pod runs under.
pub(crate) fn default_service_account(pod: &mut Value) {
    let Some(spec) = object(pod, "spec") else { return };
    let name = match text_at(spec, "/serviceAccountName") {
        "" => text_at(spec, "/serviceAccount"),
        name => name,
    };
    let name = if name.is_empty() { "default" } else { name }.to_owned();
    spec["serviceAccountName"] = json!(name);
    spec["serviceAccount"] = json!(name);
}
