//! Probes and lifecycle handlers of a container → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::setting::Setting;
use crate::check::{Errors, not_negative, port, port_or_name, required};
use crate::meta::invalid;
use crate::names;
use crate::value::{list, number, text};

/// Everything that is done to a container while it runs.
pub(super) fn validate_handlers(setting: &Setting<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let lifecycle = &container["lifecycle"];
    for hook in ["postStart", "preStop"] {
        let handler = &lifecycle[hook];
        if !handler.is_null() {
            let path = path.field("lifecycle");
            let kinds = &["exec", "httpGet", "tcpSocket", "sleep"];
            validate_handler(setting, handler, kinds, &path.field(hook), errors);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container[probe].is_null() {
            let path = path.field(probe);
            let kinds = &["exec", "httpGet", "tcpSocket", "grpc"];
            validate_handler(setting, &container[probe], kinds, &path, errors);
            validate_probe(&container[probe], probe, &path, errors);
        }
    }
}

fn validate_handler(setting: &Setting<'_>, handler: &Value, kinds: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let given: Vec<&str> = kinds.iter().copied().filter(|kind| !handler[*kind].is_null()).collect();
    if given.is_empty() {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    for kind in given.iter().skip(1) {
        errors.push(FieldError::forbidden(&path.field(kind), "may not specify more than 1 handler type"));
    }
    let Some(kind) = given.first() else { return };
    let path = path.field(kind);
    match *kind {
        "exec" => {
            required(errors, &handler["exec"], "command", &path);
        }
        "httpGet" => validate_request(&handler["httpGet"], &path, errors),
        "tcpSocket" => port_or_name(errors, &handler["tcpSocket"]["port"], &path.field("port")),
        "grpc" => port(errors, number(&handler["grpc"], "port").unwrap_or(0), &path.field("port")),
        _ => validate_sleep(setting, &handler["sleep"], &path, errors),
    }
}

fn validate_request(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(errors, request, "path", path);
    port_or_name(errors, &request["port"], &path.field("port"));
    let scheme = text(request, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.push(FieldError::not_supported(&path.field("scheme"), &json!(scheme), &["HTTP", "HTTPS"]));
    }
    for header in list(request, "httpHeaders") {
        let name = text(header, "name");
        invalid(errors, &path.field("httpHeaders"), name, names::header_name(name));
    }
}

fn validate_sleep(setting: &Setting<'_>, sleep: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(grace) = setting.grace() else { return };
    let seconds = number(sleep, "seconds").unwrap_or(0);
    if seconds < 0 || seconds > grace {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(path, &json!(seconds), detail));
    }
}

fn validate_probe(probe: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        not_negative(errors, probe, field, path);
    }
    let grace = &probe["terminationGracePeriodSeconds"];
    let at = path.field("terminationGracePeriodSeconds");
    if grace.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.push(FieldError::invalid(&at, grace, "must be greater than 0"));
    }
    if name == "readinessProbe" {
        if !grace.is_null() {
            errors.push(FieldError::invalid(&at, grace, "must not be set for readinessProbes"));
        }
    } else if number(probe, "successThreshold").is_some_and(|threshold| threshold != 1) {
        let value = &probe["successThreshold"];
        errors.push(FieldError::invalid(&path.field("successThreshold"), value, "must be 1"));
    }
}
