//! Annotations that mean something to a pod → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::setting::Setting;
use super::toleration::validate_tolerations;
use crate::check::Errors;
use crate::paths::descending;
use crate::value::{entries, text};

const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const CONTAINER_SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Annotations of a pod or template.
pub(super) fn validate_pod_annotations(
    annotations: &Value,
    setting: &Setting<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if annotations.get(MIRROR).is_some() && text(setting.spec, "nodeName").is_empty() {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), &annotations[MIRROR], detail));
    }
    validate_old_tolerations(text(annotations, TOLERATIONS), path, errors);
    let cost = text(annotations, COST);
    if annotations.get(COST).is_some() && !is_cost(cost) {
        errors.push(FieldError::invalid(&path.key(COST), &json!(cost), "must be a 32bit integer"));
    }
    if annotations.get(SECCOMP).is_some() {
        validate_seccomp(text(annotations, SECCOMP), &path.field(SECCOMP), errors);
    }
    for (key, value) in entries(annotations) {
        let value = value.as_str().unwrap_or_default();
        if key.starts_with(CONTAINER_SECCOMP) {
            validate_seccomp(value, &path.field(key), errors);
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            validate_app_armor(setting, container, value, &path.key(key), errors);
        }
    }
}

/// The form in which the server itself would write the number.
fn is_cost(text: &str) -> bool {
    text.parse::<i32>().is_ok_and(|cost| cost.to_string() == text)
}

fn validate_old_tolerations(given: &str, path: &Path<'_>, errors: &mut Errors) {
    if given.is_empty() {
        return;
    }
    if let Ok(Value::Array(tolerations)) = serde_json::from_str(given) {
        validate_tolerations(&tolerations, &path.field(TOLERATIONS), errors);
    }
}

fn validate_seccomp(profile: &str, path: &Path<'_>, errors: &mut Errors) {
    if matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
        return;
    }
    match profile.strip_prefix("localhost/") {
        Some(file) => descending(errors, file, path),
        None => errors.push(FieldError::invalid(path, &json!(profile), "must be a valid seccomp profile")),
    }
}

fn validate_app_armor(setting: &Setting<'_>, container: &str, profile: &str, path: &Path<'_>, errors: &mut Errors) {
    if !setting.containers().any(|(_, _, known)| text(known, "name") == container) {
        errors.push(FieldError::invalid(path, &json!(container), "container not found"));
    }
    let known = matches!(profile, "" | "runtime/default" | "unconfined") || profile.starts_with("localhost/");
    if !known {
        let detail = format!("invalid AppArmor profile name: {profile:?}");
        errors.push(FieldError::invalid(path, &json!(profile), detail));
    }
}

/// Annotations that must say the same as the fields that have taken their place.
pub(super) fn validate_matching(annotations: &Value, setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let pod = &setting.spec["securityContext"];
    let at = path.field("securityContext");
    if let Some(given) = annotations.get(SECCOMP).and_then(Value::as_str) {
        matches(given, &pod["seccompProfile"], "seccomp", &at.field("seccompProfile"), errors);
    }
    for (field, index, container) in setting.containers() {
        let name = text(container, "name");
        let path = path.field(field);
        let path = path.index(index);
        let path = path.field("securityContext");
        let own = &container["securityContext"];
        if let Some(given) = annotations.get(format!("{CONTAINER_SECCOMP}{name}")).and_then(Value::as_str) {
            matches(given, &own["seccompProfile"], "seccomp", &path.field("seccompProfile"), errors);
        }
        if let Some(given) = annotations.get(format!("{APP_ARMOR}{name}")).and_then(Value::as_str)
            && setting.system() != Some("windows")
        {
            let profile = if own["appArmorProfile"].is_null() { pod } else { own };
            matches(given, &profile["appArmorProfile"], "apparmor", &path.field("appArmorProfile"), errors);
        }
    }
}

fn matches(annotation: &str, profile: &Value, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let file = annotation.strip_prefix("localhost/");
    let same = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default" || (annotation == "docker/default" && what == "seccomp"),
        "Localhost" => file.is_some(),
        _ => return,
    };
    if !same {
        let detail = format!("{what} type in annotation and field must match");
        errors.push(FieldError::forbidden(&path.field("type"), detail));
    } else if text(profile, "type") == "Localhost" && file != profile["localhostProfile"].as_str() {
        let detail = format!("{what} profile in annotation and field must match");
        errors.push(FieldError::forbidden(&path.field("localhostProfile"), detail));
    }
}

/// Annotations that stay as they are for the life of a pod.
pub(super) fn validate_annotation_change(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let what = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        key if key.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    };
    for (key, value) in entries(old) {
        if let Some(what) = what(key).filter(|_| new.get(key) != Some(value)) {
            errors.push(FieldError::forbidden(&path.key(key), format!("may not remove or update {what}")));
        }
    }
    for (key, _) in entries(new).filter(|(key, _)| old.get(key.as_str()).is_none()) {
        if let Some(what) = what(key) {
            errors.push(FieldError::forbidden(&path.key(key), format!("may not add {what}")));
        }
    }
}
