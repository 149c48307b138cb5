//! Pods and pod templates: defaults, admission, validation, and what an update may change.

mod admission;
mod container;
mod defaults;
mod quality;
mod update;
mod validate;

pub(crate) use admission::{admit_create, admit_update};
pub(crate) use defaults::{pod_defaults, template_defaults};
use quality::quality_class;

pub(crate) use validate::validate_template;

use portolan_schema::Path;
use serde_json::{Value, json};

use crate::check::Errors;
use crate::value::{list_at, object, text_at};

/// A new pod's status is the server's own.
pub(crate) fn prepare_create(pod: &mut Value) {
    let class = quality_class(pod);
    pod["status"] = json!({"phase": "Pending", "qosClass": class});
    if !list_at(pod, "/spec/schedulingGates").is_empty() {
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": pod["metadata"]["creationTimestamp"],
        }]);
    }
}

/// Updates of the main resource leave the status alone.
pub(crate) fn normalise_grace(spec: &mut Value) {
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
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

/// A pod's spec, and on updates what changed of it.
pub(crate) fn validate(pod: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    validate::validate_spec(&pod["spec"], &path, errors);
    if let Some(old) = old {
        update::validate_change(&pod["spec"], &old["spec"], &path, errors);
    }
}
