//! A pod or pod template → what is wrong with its volumes, containers and policies.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::affinity::{validate_affinity, validate_spreading};
use super::annotation::{validate_matching, validate_pod_annotations};
use super::container::{validate_containers, validate_ephemeral_containers, validate_init_containers};
use super::environment::validate_files;
use super::network::{validate_aliases, validate_gates, validate_hostname, validate_resolver};
use super::resources::{ResourceLevel, validate_pod_claims, validate_pod_resources, validate_requirements};
use super::security::{validate_host_ports, validate_pod_security};
use super::setting::{Setting, Whole};
use super::toleration::validate_tolerations;
use super::volume::validate_volumes;
use crate::check::{Errors, one_of};
use crate::meta::{validate_annotations, validate_labels};
use crate::validation::subdomain;
use crate::value::{is_empty, list, number, text};

/// A template's labels, annotations and spec.
pub(crate) fn validate_template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metadata = &template["metadata"];
    errors.extend(validate_labels(&metadata["labels"], &path.field("labels")));
    errors.extend(validate_annotations(&metadata["annotations"], &path.field("annotations")));
    let setting = Setting { spec: &template["spec"], volumes: Vec::new() };
    let spec = path.field("spec");
    validate_pod_annotations(&metadata["annotations"], &setting, &path.field("annotations"), errors);
    validate_spec(&template["spec"], Whole::Template, &spec, errors);
    validate_matching(&metadata["annotations"], &setting, &spec, errors);
    if !is_empty(&template["spec"]["ephemeralContainers"]) {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&spec.field("ephemeralContainers"), detail));
    }
}

/// What a `StatefulSet` checks once more: labels and annotations of its template.
pub(crate) fn validate_template_metadata(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metadata = &template["metadata"];
    errors.extend(validate_labels(&metadata["labels"], &path.field("labels")));
    let at = path.field("annotations");
    errors.extend(validate_annotations(&metadata["annotations"], &at));
    let setting = Setting { spec: &template["spec"], volumes: Vec::new() };
    validate_pod_annotations(&metadata["annotations"], &setting, &at, errors);
}

/// A pod's spec.
pub(super) fn validate_spec(spec: &Value, whole: Whole<'_>, path: &Path<'_>, errors: &mut Errors) {
    let volumes = validate_volumes(spec, whole, &path.field("volumes"), errors);
    let setting = Setting { spec, volumes };
    validate_pod_claims(&setting, &path.field("resourceClaims"), errors);
    validate_containers(&setting, &path.field("containers"), errors);
    validate_init_containers(&setting, &path.field("initContainers"), errors);
    validate_ephemeral_containers(&setting, &path.field("ephemeralContainers"), errors);
    validate_pod_resources(&setting, &path.field("resources"), errors);
    validate_host_ports(&setting, whole != Whole::Template, &path.field("containers"), errors);
    validate_policies(spec, path, errors);
    validate_pod_security(&setting, path, errors);
    validate_affinity(&spec["affinity"], &path.field("affinity"), errors);
    validate_resolver(spec, &path.field("dnsConfig"), errors);
    validate_gates(spec, path, errors);
    validate_spreading(spec, &path.field("topologySpreadConstraints"), errors);
    validate_hostname(&setting, path, errors);
    validate_tolerations(list(spec, "tolerations"), &path.field("tolerations"), errors);
    validate_aliases(spec, &path.field("hostAliases"), errors);
    let overhead = json!({"limits": spec["overhead"]});
    validate_requirements(&overhead, ResourceLevel::Container, &[], &path.field("overhead"), errors);
    validate_files(&setting, path, errors);
}

/// Policies, names and deadlines.
fn validate_policies(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(errors, spec, "restartPolicy", &["Always", "OnFailure", "Never"], path);
    let policies = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(errors, spec, "dnsPolicy", policies, path);
    errors.extend(validate_labels(&spec["nodeSelector"], &path.field("nodeSelector")));
    for field in ["serviceAccountName", "nodeName", "priorityClassName"] {
        let name = text(spec, field);
        if !name.is_empty() {
            subdomain(errors, name, &path.field(field));
        }
    }
    if let Some(name) = spec["runtimeClassName"].as_str() {
        subdomain(errors, name, &path.field("runtimeClassName"));
    }
    if number(spec, "activeDeadlineSeconds").is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(&path.field("activeDeadlineSeconds"), &spec["activeDeadlineSeconds"], detail));
    }
    if spec["preemptionPolicy"] == json!("") {
        errors.push(FieldError::required(&path.field("preemptionPolicy"), ""));
    } else {
        one_of(errors, spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path);
    }
}
