//! Containers of a pod spec → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, PROTOCOLS, not_found, one_of, port, port_or_name, required};
use crate::meta::invalid;
use crate::names;
use crate::quantity::Quantity;
use crate::validation::subdomain;
use crate::value::{entries, is_empty, list, number, text};

/// There must be a container, and names and host ports are used once.
pub(crate) fn validate_containers(spec: &Value, volumes: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let containers = list(spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        validate_container(container, volumes, &path, errors);
        let name = text(container, "name");
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        }
        seen.push(name);
        validate_handlers(container, &path, errors);
        one_of(errors, container, "restartPolicy", &["Always", "Never", "OnFailure"], &path);
    }
    host_ports_once(containers, path, errors);
}

/// Init containers also share names with the regular ones.
pub(crate) fn validate_init_containers(spec: &Value, volumes: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = list(spec, "containers").iter().map(|container| text(container, "name")).collect();
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let path = path.index(index);
        validate_container(container, volumes, &path, errors);
        one_of(errors, container, "restartPolicy", &["Always", "Never", "OnFailure"], &path);
        let name = text(container, "name");
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        }
        seen.push(name);
        if text(container, "restartPolicy") == "Always" {
            validate_handlers(container, &path, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if !container[field].is_null() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(&path.field(field), detail));
            }
        }
    }
}

fn validate_container(container: &Value, volumes: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let name = text(container, "name");
    if required(errors, container, "name", path) {
        invalid(errors, &path.field("name"), name, names::dns_label(name));
    }
    required(errors, container, "image", path);
    one_of(errors, container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path);
    validate_ports(container, &path.field("ports"), errors);
    validate_environment(container, &path.field("env"), errors);
    validate_mounts(container, volumes, &path.field("volumeMounts"), errors);
    one_of(errors, container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path);
    validate_resources(&container["resources"], &path.field("resources"), errors);
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
            }
            seen.push(key);
        }
    }
}

const SOURCES: &[&str] = &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

fn validate_environment(container: &Value, path: &Path<'_>, errors: &mut Errors) {
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
    for name in given.into_iter().filter(|name| matches!(*name, "configMapKeyRef" | "secretKeyRef")) {
        let path = path.field(name);
        subdomain(errors, text(&source[name], "name"), &path.field("name"));
        let key = text(&source[name], "key");
        if required(errors, &source[name], "key", &path) {
            invalid(errors, &path.field("key"), key, names::config_key(key));
        }
    }
}

fn validate_mounts(container: &Value, volumes: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = path.index(index);
        let name = text(mount, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        }
        if !volumes.contains(&name) {
            errors.push(not_found(&path.field("name"), name));
        }
        let target = text(mount, "mountPath");
        if target.is_empty() {
            errors.push(FieldError::required(&path.field("mountPath"), ""));
        }
        if seen.contains(&target) {
            errors.push(FieldError::invalid(&path.field("mountPath"), &json!(target), "must be unique"));
        }
        seen.push(target);
    }
}

fn validate_resources(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    for part in ["limits", "requests"] {
        let path = path.field(part);
        for (name, value) in entries(&resources[part]) {
            resource_name(errors, name, &path.key(name));
            if Quantity::from_value(value).is_some_and(|quantity| quantity.is_negative()) {
                let detail = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(&path.key(name), value, detail));
            }
        }
    }
    let path = path.field("requests");
    for (name, request) in entries(&resources["requests"]) {
        let Some(limit) = resources["limits"].get(name) else {
            continue;
        };
        if Quantity::from_value(request) > Quantity::from_value(limit) {
            let detail =
                format!("must be less than or equal to {name} limit of {}", limit.as_str().unwrap_or_default());
            errors.push(FieldError::invalid(&path, request, detail));
        }
    }
}

fn resource_name(errors: &mut Errors, name: &str, path: &Path<'_>) {
    invalid(errors, path, name, names::qualified_name(name));
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !known && !name.contains('/') {
        errors.push(FieldError::invalid(path, &json!(name), "must be a standard resource type or fully qualified"));
        errors.push(FieldError::invalid(path, &json!(name), "must be a standard resource for containers"));
    }
}

fn validate_handlers(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][hook];
        if !handler.is_null() {
            let path = path.field("lifecycle");
            validate_handler(handler, &["exec", "httpGet", "tcpSocket", "sleep"], &path.field(hook), errors);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container[probe].is_null() {
            let path = path.field(probe);
            validate_handler(&container[probe], &["exec", "httpGet", "tcpSocket", "grpc"], &path, errors);
            validate_probe(&container[probe], probe, &path, errors);
        }
    }
}

fn validate_handler(handler: &Value, kinds: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let given: Vec<&str> = kinds.iter().copied().filter(|kind| !handler[*kind].is_null()).collect();
    if given.is_empty() {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    for kind in given.iter().skip(1) {
        errors.push(FieldError::forbidden(&path.field(kind), "may not specify more than 1 handler type"));
    }
    for kind in given.into_iter().take(1) {
        let path = path.field(kind);
        match kind {
            "exec" => {
                required(errors, &handler["exec"], "command", &path);
            }
            "httpGet" | "tcpSocket" => port_or_name(errors, &handler[kind]["port"], &path.field("port")),
            "grpc" => port(errors, number(&handler["grpc"], "port").unwrap_or(0), &path.field("port")),
            _ => {}
        }
    }
}

fn validate_probe(probe: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        crate::check::not_negative(errors, probe, field, path);
    }
    if name != "readinessProbe" && number(probe, "successThreshold").is_some_and(|threshold| threshold != 1) {
        let value = &probe["successThreshold"];
        errors.push(FieldError::invalid(&path.field("successThreshold"), value, "must be 1"));
    }
}
