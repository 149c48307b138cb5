//! Containers of a pod spec → what is wrong with them.

use portolan_schema::{ErrorKind, FieldError, Path};
use serde_json::{Value, json};

use super::environment::{validate_environment, validate_environment_sources};
use super::handler::validate_handlers;
use super::mount::{validate_devices, validate_mounts};
use super::resources::{ResourceLevel, validate_requirements};
use super::security::validate_container_security;
use super::setting::Setting;
use crate::check::{Errors, PROTOCOLS, one_of, port, required};
use crate::meta::invalid;
use crate::names;
use crate::value::{list, number, text};

/// There must be a container, and names and host ports are used once.
pub(super) fn validate_containers(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let containers = list(setting.spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        validate_container(setting, container, &path, errors);
        once(container, &mut seen, &path, errors);
        validate_handlers(setting, container, &path, errors);
        validate_restarts(container, &path, errors);
    }
    host_ports_once(containers, path, errors);
}

/// Init containers also share names with the regular ones.
pub(super) fn validate_init_containers(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = list(setting.spec, "containers").iter().map(|c| text(c, "name")).collect();
    for (index, container) in list(setting.spec, "initContainers").iter().enumerate() {
        let all = path;
        let path = path.index(index);
        validate_container(setting, container, &path, errors);
        if container["restartPolicy"].is_null() && !list(container, "restartPolicyRules").is_empty() {
            errors.push(FieldError::required(&path.field("restartPolicy"), RULES_WITHOUT_POLICY));
        } else {
            validate_restarts(container, &path, errors);
        }
        once(container, &mut seen, &path, errors);
        host_ports_once(std::slice::from_ref(container), all, errors);
        if text(container, "restartPolicy") == "Always" {
            validate_handlers(setting, container, &path, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if !container[field].is_null() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(&path.field(field), detail));
            }
        }
        resizes_without_restart(container, &path, errors);
    }
}

/// A name is used once; every further use is an error.
fn once<'a>(container: &'a Value, seen: &mut Vec<&'a str>, path: &Path<'_>, errors: &mut Errors) {
    let name = text(container, "name");
    if seen.contains(&name) {
        errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
    } else {
        seen.push(name);
    }
}

fn resizes_without_restart(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        if text(policy, "restartPolicy") == "RestartContainer" {
            let path = path.field("resizePolicy");
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            let at = path.index(index);
            errors.push(FieldError::invalid(&at.field("restartPolicy"), &policy["restartPolicy"], detail));
        }
    }
}

fn validate_container(setting: &Setting<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(container, "name");
    if required(errors, container, "name", path) {
        invalid(errors, &path.field("name"), name, names::dns_label(name));
    }
    required(errors, container, "image", path);
    one_of(errors, container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path);
    validate_ports(container, &path.field("ports"), errors);
    validate_environment(container, &path.field("env"), errors);
    validate_environment_sources(container, &path.field("envFrom"), errors);
    validate_mounts(setting, container, &path.field("volumeMounts"), errors);
    validate_devices(setting, container, &path.field("volumeDevices"), errors);
    one_of(errors, container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path);
    let claims = setting.claims();
    validate_requirements(&container["resources"], ResourceLevel::Container, &claims, &path.field("resources"), errors);
    validate_resizing(setting, container, &path.field("resizePolicy"), errors);
    validate_container_security(setting, &container["securityContext"], &path.field("securityContext"), errors);
}

fn validate_ports(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, item) in list(container, "ports").iter().enumerate() {
        let path = path.index(index);
        let name = text(item, "name");
        if !name.is_empty() {
            let problems = names::port_name(name);
            if problems.is_empty() && seen.contains(&name) {
                errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
            } else if problems.is_empty() {
                seen.push(name);
            }
            invalid(errors, &path.field("name"), name, problems);
        }
        match number(item, "containerPort").unwrap_or(0) {
            0 => errors.push(FieldError::required(&path.field("containerPort"), "")),
            number => port(errors, number, &path.field("containerPort")),
        }
        if let Some(number) = number(item, "hostPort").filter(|number| *number != 0) {
            port(errors, number, &path.field("hostPort"));
        }
        one_of(errors, item, "protocol", PROTOCOLS, &path);
    }
}

fn host_ports_once(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        for (inner, item) in list(container, "ports").iter().enumerate() {
            let Some(host_port) = number(item, "hostPort").filter(|number| *number != 0) else {
                continue;
            };
            let key = format!("{}/{}/{host_port}", text(item, "protocol"), text(item, "hostIP"));
            if seen.contains(&key) {
                let path = path.index(index);
                let path = path.field("ports");
                errors.push(FieldError::duplicate(&path.index(inner).field("hostPort"), &json!(key)));
            } else {
                seen.push(key);
            }
        }
    }
}

/// How a container follows a change of its resources.
fn validate_resizing(setting: &Setting<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, item) in list(container, "resizePolicy").iter().enumerate() {
        let resource = text(item, "resourceName");
        if seen.contains(&resource) {
            errors.push(FieldError::duplicate(&path.index(index), &json!(resource)));
        }
        seen.push(resource);
        listed(errors, resource, &["cpu", "memory"], path);
        let policy = text(item, "restartPolicy");
        listed(errors, policy, &["NotRequired", "RestartContainer"], path);
        if setting.never_restarts() && policy != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, &json!(policy), detail));
        }
    }
}

/// A value must be there and be one of these.
fn listed(errors: &mut Errors, value: &str, supported: &[&str], path: &Path<'_>) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, &json!(value), supported));
    }
}

const RULES_WITHOUT_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// A container's own restart policy, and the exit codes that it makes exceptions for.
fn validate_restarts(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = list(container, "restartPolicyRules");
    if container["restartPolicy"].is_null() && !rules.is_empty() {
        errors.push(FieldError::required(&path.field("restartPolicy"), RULES_WITHOUT_POLICY));
    }
    if let Some(policy) = container["restartPolicy"].as_str()
        && !matches!(policy, "Always" | "Never" | "OnFailure")
    {
        let supported = &["Always", "Never", "OnFailure"];
        errors.push(FieldError::not_supported(&path.field("restartPolicy"), &json!(policy), supported));
    }
    let path = path.field("restartPolicyRules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&path, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let action = text(rule, "action");
        if !matches!(action, "Restart" | "RestartAllContainers") {
            let supported = &["Restart", "RestartAllContainers"];
            errors.push(FieldError::not_supported(&path.field("action"), &json!(action), supported));
        }
        validate_exit_codes(rule, &path.field("exitCodes"), errors);
    }
}

fn validate_exit_codes(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let codes = &rule["exitCodes"];
    if codes.is_null() {
        errors.push(FieldError::required(path, "must be specified"));
        return;
    }
    let operator = text(codes, "operator");
    if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::not_supported(&path.field("operator"), &json!(operator), &["In", "NotIn"]));
    }
    let count = list(codes, "values").len();
    if count > 255 {
        errors.push(FieldError::too_many(&path.field("values"), count, 255));
    }
}

/// What containers for debugging cannot have.
fn only_for_lasting_containers(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    const DETAIL: &str = "cannot be set for an Ephemeral Container";
    const LISTS: [&str; 4] = ["ports", "resources", "resizePolicy", "restartPolicyRules"];
    let fields = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    for field in fields {
        let value = &container[field];
        if !(value.is_null() || LISTS.contains(&field) && crate::value::is_empty(value)) {
            errors.push(FieldError::forbidden(&path.field(field), DETAIL));
        }
    }
    let path = path.field("volumeMounts");
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        for field in ["subPath", "subPathExpr"].into_iter().filter(|field| !text(mount, field).is_empty()) {
            errors.push(FieldError::forbidden(&path.index(index).field(field), DETAIL));
        }
    }
}

/// Containers that were added to a running pod, where a status or spec has them.
pub(super) fn validate_ephemeral_containers(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let names = |field: &str| list(setting.spec, field).iter().map(|container| text(container, "name"));
    let others: Vec<&str> = names("containers").chain(names("initContainers")).collect();
    let mut seen = others.clone();
    for (index, container) in list(setting.spec, "ephemeralContainers").iter().enumerate() {
        let path = path.index(index);
        validate_container(setting, container, &path, errors);
        once(container, &mut seen, &path, errors);
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(&target) {
            let path = path.field("targetContainerName");
            errors.push(FieldError::with_value(ErrorKind::NotFound, &path, &json!(target), ""));
        }
        only_for_lasting_containers(container, &path, errors);
    }
}
