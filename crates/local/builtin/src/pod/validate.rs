//! A pod or pod template → what is wrong with its volumes, containers and policies.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::container::{validate_containers, validate_init_containers};
use crate::check::{Errors, address, one_of};
use crate::meta::{invalid, validate_annotations, validate_labels};
use crate::names;
use crate::validation::subdomain;
use crate::value::{entries, is_empty, list, number, text};

/// A template's labels, annotations and spec.
pub(crate) fn validate_template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metadata = &template["metadata"];
    let at = path.field("metadata");
    errors.extend(validate_labels(&metadata["labels"], &at.field("labels")));
    errors.extend(validate_annotations(&metadata["annotations"], &at.field("annotations")));
    validate_spec(&template["spec"], &path.field("spec"), errors);
}

/// A pod's spec.
pub(crate) fn validate_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let volumes = validate_volumes(spec, &path.field("volumes"), errors);
    validate_containers(spec, &volumes, &path.field("containers"), errors);
    validate_init_containers(spec, &volumes, &path.field("initContainers"), errors);
    one_of(errors, spec, "restartPolicy", &["Always", "OnFailure", "Never"], path);
    let policies = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(errors, spec, "dnsPolicy", policies, path);
    errors.extend(validate_labels(&spec["nodeSelector"], &path.field("nodeSelector")));
    for field in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        let name = text(spec, field);
        if !name.is_empty() {
            subdomain(errors, name, &path.field(field));
        }
    }
    if number(spec, "activeDeadlineSeconds").is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(&path.field("activeDeadlineSeconds"), &spec["activeDeadlineSeconds"], detail));
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, field);
        if !name.is_empty() {
            invalid(errors, &path.field(field), name, names::dns_label(name));
        }
    }
    validate_tolerations(spec, &path.field("tolerations"), errors);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let path = path.field("hostAliases");
        address(errors, text(alias, "ip"), &path.index(index).field("ip"));
    }
    one_of(errors, spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path);
}

/// The names of the volumes that are sound: others cannot be mounted.
fn validate_volumes<'a>(spec: &'a Value, path: &Path<'_>, errors: &mut Errors) -> Vec<&'a str> {
    let mut sound: Vec<&str> = Vec::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let before = errors.len();
        validate_sources(spec, volume, &path, errors);
        let name = text(volume, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        } else {
            invalid(errors, &path.field("name"), name, names::dns_label(name));
        }
        if !name.is_empty() && sound.contains(&name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        }
        if errors.len() == before {
            sound.push(name);
        }
    }
    sound
}

fn validate_sources(spec: &Value, volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let sources = entries(volume).filter(|(name, source)| *name != "name" && !source.is_null());
    for (name, _) in sources.skip(1) {
        errors.push(FieldError::forbidden(&path.field(name), "may not specify more than 1 volume type"));
    }
    let at = path.field("secret");
    if !volume["secret"].is_null() && is_empty(&volume["secret"]["secretName"]) {
        errors.push(FieldError::required(&at.field("secretName"), ""));
    }
    let at = path.field("configMap");
    if !volume["configMap"].is_null() && is_empty(&volume["configMap"]["name"]) {
        errors.push(FieldError::required(&at.field("name"), ""));
    }
    let at = path.field("persistentVolumeClaim");
    if !volume["persistentVolumeClaim"].is_null() && is_empty(&volume["persistentVolumeClaim"]["claimName"]) {
        errors.push(FieldError::required(&at.field("claimName"), ""));
    }
    let at = path.field("hostPath");
    if !volume["hostPath"].is_null() && is_empty(&volume["hostPath"]["path"]) {
        errors.push(FieldError::required(&at.field("path"), ""));
    }
    let at = path.field("projected");
    let at = at.field("sources");
    for (index, source) in list(&volume["projected"], "sources").iter().enumerate() {
        if !source["serviceAccountToken"].is_null() && is_empty(&spec["serviceAccountName"]) {
            let detail = "must not be specified when serviceAccountName is not set";
            errors.push(FieldError::forbidden(&at.index(index).field("serviceAccountToken"), detail));
        }
    }
}

fn validate_tolerations(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = path.index(index);
        let key = text(toleration, "key");
        if !key.is_empty() {
            invalid(errors, &path.field("key"), key, names::qualified_name(key));
        }
        let operator = text(toleration, "operator");
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&path.field("operator"), &json!(operator), detail));
        }
        if !toleration["tolerationSeconds"].is_null() && text(toleration, "effect") != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.field("effect"), &json!(text(toleration, "effect")), detail));
        }
        let value = text(toleration, "value");
        if operator == "Exists" && !value.is_empty() {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&path.field("operator"), &json!(value), detail));
        }
        one_of(errors, toleration, "operator", &["Equal", "Exists"], &path);
        one_of(errors, toleration, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path);
    }
}
