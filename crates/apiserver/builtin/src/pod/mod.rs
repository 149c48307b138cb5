//! Pods and pod templates: defaults, admission, validation, and what an update may change.

mod account;
mod admission;
mod affinity;
mod annotation;
mod container;
mod defaults;
mod disabled;
mod environment;
mod handler;
mod image;
mod mount;
mod network;
mod parts;
mod projected;
mod quality;
mod resources;
mod security;
mod setting;
mod status;
mod toleration;
mod update;
mod validate;
mod volume;
mod windows;

pub use account::{AccountNeed, account_need, admit_account};
pub(crate) use admission::{admit_create, admit_update};
pub(crate) use defaults::{pod_defaults, source_defaults, template_defaults};
pub(crate) use disabled::drop_disabled;
use quality::quality_class;
use setting::{Setting, Whole};

pub(crate) use affinity::validate_node_selector;
pub use parts::{prepare_ephemeral_containers, prepare_resize, validate_ephemeral_containers, validate_resize};
pub(crate) use status::{keep_quality_class, validate_status};
pub(crate) use validate::{validate_template, validate_template_metadata};
pub(crate) use volume::validate_kind as validate_volume_kind;

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::Errors;
use crate::value::{list, list_at, object, text, text_at};

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

/// A pod, unlike a template, cannot have less than no time to stop.
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
    let metadata = root.field("metadata");
    let annotations = &pod["metadata"]["annotations"];
    let setting = Setting { spec: &pod["spec"], volumes: Vec::new() };
    let at = metadata.field("annotations");
    annotation::validate_pod_annotations(annotations, &setting, &at, errors);
    let name = text_at(pod, "/metadata/name");
    validate::validate_spec(&pod["spec"], Whole::Pod(name), &path, errors);
    validate_tokens(&pod["spec"], &path, errors);
    for field in ["containers", "initContainers"] {
        trimmed_images(&pod["spec"], field, &path.field(field), errors);
    }
    let Some(old) = old else {
        validate_new(&setting, &path, errors);
        annotation::validate_matching(annotations, &setting, &path, errors);
        return;
    };
    annotation::validate_annotation_change(annotations, &old["metadata"]["annotations"], &at, errors);
    // The real server looks at them twice.
    annotation::validate_pod_annotations(annotations, &setting, &at, errors);
    update::validate_change(&pod["spec"], &old["spec"], &path, errors);
}

/// What only a running pod may have.
fn validate_new(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    if !list(setting.spec, "ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.field("ephemeralContainers"), "cannot be set on create"));
    }
    if !text(setting.spec, "nodeName").is_empty() && !list(setting.spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.field("nodeName"), detail));
    }
}

/// Tokens are those of the pod's account.
fn validate_tokens(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !text(spec, "serviceAccountName").is_empty() {
        return;
    }
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.field("volumes");
        let path = path.index(index);
        let path = path.field("projected");
        let path = path.field("sources");
        for (index, source) in list(&volume["projected"], "sources").iter().enumerate() {
            if !source["serviceAccountToken"].is_null() {
                let detail = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&path.index(index).field("serviceAccountToken"), detail));
            }
        }
    }
}

/// Images of a pod have no space around them; templates may.
fn trimmed_images(spec: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    for (index, container) in list(spec, field).iter().enumerate() {
        let image = text(container, "image");
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path.index(index).field("image"), &json!(image), detail));
        }
    }
}
