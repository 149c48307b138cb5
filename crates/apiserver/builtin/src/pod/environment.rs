//! Environment variables of a container → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::setting::Setting;
use crate::check::{Errors, not_found, required};
use crate::meta::invalid;
use crate::names;
use crate::paths::no_backsteps;
use crate::quantity::Quantity;
use crate::validation::subdomain;
use crate::value::{is_empty, list, text};

const SOURCES: &[&str] = &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Names of variables, and where their values come from.
pub(super) fn validate_environment(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = path.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        } else {
            invalid(errors, &path.field("name"), name, names::environment_name(name));
        }
        if !variable["valueFrom"].is_null() {
            validate_source(variable, &path.field("valueFrom"), errors);
        }
    }
}

fn validate_source(variable: &Value, path: &Path<'_>, errors: &mut Errors) {
    let source = &variable["valueFrom"];
    let given: Vec<&str> = SOURCES.iter().copied().filter(|name| !source[*name].is_null()).collect();
    for name in &given {
        let path = path.field(name);
        let reference = &source[*name];
        match *name {
            "fieldRef" => field_reference(errors, reference, FIELDS, &path),
            "resourceFieldRef" => resource_reference(errors, reference, ResourcePlace::Variable, &path),
            "fileKeyRef" => file_key(errors, reference, &path),
            _ => object_key(errors, reference, &path),
        }
    }
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, &json!(""), detail));
    if given.is_empty() {
        refuse(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !is_empty(&variable["value"]) {
        refuse("may not be specified when `value` is not empty");
    } else if given.len() > 1 {
        refuse("may not have more than one field specified at a time");
    }
}

/// A key of a `ConfigMap` or Secret.
fn object_key(errors: &mut Errors, reference: &Value, path: &Path<'_>) {
    subdomain(errors, text(reference, "name"), &path.field("name"));
    let key = text(reference, "key");
    if required(errors, reference, "key", path) {
        invalid(errors, &path.field("key"), key, names::config_key(key));
    }
}

/// A key of a file in a volume.
fn file_key(errors: &mut Errors, reference: &Value, path: &Path<'_>) {
    let key = text(reference, "key");
    if required(errors, reference, "key", path) {
        invalid(errors, &path.field("key"), key, names::environment_name(key));
    }
    let volume = text(reference, "volumeName");
    if required(errors, reference, "volumeName", path) {
        invalid(errors, &path.field("volumeName"), volume, names::dns_label(volume));
    }
    if required(errors, reference, "path", path) {
        no_backsteps(errors, text(reference, "path"), &path.field("path"));
    }
}

/// Fields of a pod that a variable can show.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields that the names of a pod's fields can be.
const KNOWN_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"];

/// A field of the pod, as `metadata.labels['app']`; `shown` are those that can be shown here.
pub(super) fn field_reference(errors: &mut Errors, reference: &Value, shown: &[&str], path: &Path<'_>) {
    let version = text(reference, "apiVersion");
    let field = text(reference, "fieldPath");
    if !required(errors, reference, "fieldPath", path) {
        return;
    }
    let at = path.field("fieldPath");
    let mut refuse = |problem: String| {
        errors.push(FieldError::invalid(&at, &json!(field), format!("error converting fieldPath: {problem}")));
    };
    if version != "v1" {
        refuse(format!("unsupported pod version: {version}"));
        return;
    }
    match subscripted(field) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            invalid(errors, path, &key, names::qualified_name(&key));
        }
        Some(("metadata.labels", key)) => invalid(errors, path, key, names::qualified_name(key)),
        Some(_) => refuse(format!("field label does not support subscript: {field}")),
        None => {
            let field = if field == "spec.host" { "spec.nodeName" } else { field };
            if !FIELDS.contains(&field) && !KNOWN_FIELDS.contains(&field) {
                refuse(format!("field label not supported: {field}"));
            } else if !shown.contains(&field) {
                errors.push(FieldError::not_supported(&at, &json!(field), shown));
            }
        }
    }
}

/// `metadata.labels['app']` → `metadata.labels` and `app`.
fn subscripted(field: &str) -> Option<(&str, &str)> {
    let (field, key) = field.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// Where an amount of a resource is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourcePlace {
    Variable,
    Volume,
}

const AMOUNTS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// A container's limit or request.
pub(super) fn resource_reference(errors: &mut Errors, reference: &Value, place: ResourcePlace, path: &Path<'_>) {
    let resource = text(reference, "resource");
    let pages = ["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if place == ResourcePlace::Volume && is_empty(&reference["containerName"]) {
        errors.push(FieldError::required(&path.field("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.field("resource"), ""));
    } else if !AMOUNTS.contains(&resource) && !pages {
        errors.push(FieldError::not_supported(&path.field("resource"), &json!(resource), AMOUNTS));
    }
    validate_divisor(errors, reference, resource, path);
}

const UNITS: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

fn validate_divisor(errors: &mut Errors, reference: &Value, resource: &str, path: &Path<'_>) {
    let Some(divisor) = Quantity::from_value(&reference["divisor"]).filter(|divisor| !divisor.is_zero()) else {
        return;
    };
    let what = match resource.split_once('.').map_or("", |(_, name)| name) {
        "cpu" => "cpu",
        "memory" => "memory",
        "ephemeral-storage" => "local ephemeral storage",
        name if name.starts_with("hugepages-") => "hugepages",
        _ => return,
    };
    let units = if what == "cpu" { &["1m", "1"] } else { UNITS };
    if !units.contains(&divisor.canonical().as_str()) {
        let named = if what == "cpu" { "1m and 1".to_owned() } else { UNITS.join(", ") };
        let detail = format!("only divisor's values {named} are supported with the {what} resource");
        errors.push(FieldError::invalid(&path.field("divisor"), &json!(resource), detail));
    }
}

/// Whole `ConfigMaps` and Secrets as variables.
pub(super) fn validate_environment_sources(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let at = path.index(index);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            invalid(errors, &at.field("prefix"), prefix, names::environment_name(prefix));
        }
        let given: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|name| !source[*name].is_null()).collect();
        for name in &given {
            let at = at.field(name);
            if required(errors, &source[*name], "name", &at) {
                subdomain(errors, text(&source[*name], "name"), &at.field("name"));
            }
        }
        let detail = match given.len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(path, &json!(""), detail));
    }
}

/// Files that variables are read from lie in empty directories of the pod.
pub(super) fn validate_files(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    for (field, index, container) in setting.containers() {
        for (inner, variable) in list(container, "env").iter().enumerate() {
            let reference = &variable["valueFrom"]["fileKeyRef"];
            if reference.is_null() {
                continue;
            }
            let path = path.field(field);
            let path = path.index(index);
            let path = path.field("env");
            let path = path.index(inner);
            let path = path.field("valueFrom");
            let path = path.field("fileKeyRef");
            let name = text(reference, "volumeName");
            let volume = list(setting.spec, "volumes").iter().find(|volume| text(volume, "name") == name);
            match volume {
                None => errors.push(not_found(&path.field("volumeName"), name)),
                Some(volume) if volume["emptyDir"].is_null() => {
                    let detail = "referenced volume must be of type emptyDir";
                    errors.push(FieldError::invalid(&path.field("volumeName"), &json!(name), detail));
                }
                Some(_) => {}
            }
        }
    }
}
