//! `HorizontalPodAutoscaler`.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, required};
use crate::meta::invalid;
use crate::names;
use crate::quantity::Quantity;
use crate::resource;
use crate::value::{default, existing, is_empty, list, number, object, text};

/// Replicas, the metric and the pace of scaling.
pub(crate) fn defaults(autoscaler: &mut Value) {
    let Some(spec) = existing(autoscaler, "spec") else {
        return;
    };
    default(spec, "minReplicas", 1);
    if is_empty(&spec["metrics"]) {
        spec["metrics"] = json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    }
    let Some(behavior) = existing(spec, "behavior") else {
        return;
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    if let Some(up) = object(behavior, "scaleUp") {
        default(up, "stabilizationWindowSeconds", 0);
        default(up, "policies", json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]));
        default(up, "selectPolicy", "Max");
    }
    if let Some(down) = object(behavior, "scaleDown") {
        default(down, "policies", json!([percent]));
        default(down, "selectPolicy", "Max");
    }
}

/// Limits, what is scaled, by which metrics and how fast.
pub(crate) fn validate(autoscaler: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &autoscaler["spec"];
    let least = number(spec, "minReplicas").unwrap_or(1);
    let most = number(spec, "maxReplicas").unwrap_or(0);
    if least < 1 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.field("minReplicas"), &json!(least), detail));
    }
    if most == 0 {
        errors.push(FieldError::required(&path.field("maxReplicas"), "must be set and greater than 0"));
    } else if most < 0 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.field("maxReplicas"), &json!(most), detail));
    }
    if most < least {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path.field("maxReplicas"), &json!(most), detail));
    }
    validate_reference(&spec["scaleTargetRef"], GroupNeed::Required, &path.field("scaleTargetRef"), errors);
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        validate_metric(metric, &path.field("metrics").index(index), errors);
    }
    let measured = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == 0 && !list(spec, "metrics").iter().any(measured) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&path.field("metrics"), detail));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if !rules.is_null() {
            let path = path.field("behavior");
            validate_rules(rules, &path.field(direction), errors);
        }
    }
}

/// Whether an API version must name its group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupNeed {
    Required,
    Optional,
}

fn validate_reference(reference: &Value, group: GroupNeed, path: &Path<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        if required(errors, reference, field, path) {
            let value = text(reference, field);
            invalid(errors, &path.field(field), value, names::path_segment(value));
        }
    }
    let version = text(reference, "apiVersion");
    let detail = match version.matches('/').count() {
        0 if group == GroupNeed::Required && !is_core(reference) => "apiVersion must specify API group".to_owned(),
        0 | 1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    errors.push(FieldError::invalid(&path.field("apiVersion"), &json!(version), detail));
}

/// The one kind of the core group that can be scaled.
fn is_core(reference: &Value) -> bool {
    text(reference, "kind") == "ReplicationController" && text(reference, "apiVersion") == "v1"
}

const METRICS: &[(&str, &str)] = &[
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

fn validate_metric(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(metric, "type");
    let expected = METRICS.iter().find(|(name, _)| *name == kind).map(|(_, field)| *field);
    if kind.is_empty() {
        errors.push(FieldError::required(&path.field("type"), "must specify a metric source type"));
    }
    let unknown = || {
        let supported = &["ContainerResource", "External", "Object", "Pods", "Resource"];
        FieldError::not_supported(&path.field("type"), &json!(kind), supported)
    };
    if expected.is_none() {
        errors.push(unknown());
    }
    let given: Vec<&str> = METRICS.iter().map(|(_, field)| *field).filter(|field| !metric[*field].is_null()).collect();
    if let Some(first) = given.first() {
        validate_source(first, &metric[*first], &path.field(first), errors);
    }
    match expected {
        Some(field) if metric[field].is_null() => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.field(field), detail));
        }
        Some(_) => {}
        // The real server says it twice.
        None => errors.push(unknown()),
    }
    if given.len() != 1 {
        for field in given.into_iter().filter(|field| Some(*field) != expected) {
            errors.push(FieldError::forbidden(&path.field(field), "must populate the given metric source only"));
        }
    }
}

fn validate_source(field: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    match field {
        "object" => {
            let at = path.field("describedObject");
            validate_reference(&source["describedObject"], GroupNeed::Optional, &at, errors);
        }
        "resource" | "containerResource" => validate_resource(field, source, path, errors),
        _ => {}
    }
    if matches!(field, "object" | "external" | "pods") {
        validate_identifier(&source["metric"], &path.field("metric"), errors);
    }
    let target = &source["target"];
    let path = path.field("target");
    validate_target(target, &path, errors);
    let has = |name: &str| !target[name].is_null();
    let mut require = |name: &str, detail: &str| errors.push(FieldError::required(&path.field(name), detail));
    match field {
        "object" if !has("value") && !has("averageValue") => {
            require("averageValue", "must set either a target value or averageValue");
        }
        "external" if !has("value") && !has("averageValue") => {
            require("averageValue", "must set either a target value for metric or a per-pod target");
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&path.field("value"), detail));
        }
        "pods" if !has("averageValue") => require("averageValue", "must specify a positive target averageValue"),
        "resource" | "containerResource" if !has("averageUtilization") && !has("averageValue") => {
            require("averageUtilization", "must set either a target raw value or a target utilization");
        }
        "resource" | "containerResource" if has("averageUtilization") && has("averageValue") => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&path.field("averageValue"), detail));
        }
        _ => {}
    }
}

fn validate_resource(field: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(source, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.field("name"), "must specify a resource name"));
    }
    if field == "resource" {
        return;
    }
    if !name.is_empty() {
        resource::container_name(errors, name, &path.field("name"));
    }
    let container = text(source, "container");
    if container.is_empty() {
        errors.push(FieldError::required(&path.field("container"), "must specify a container"));
    } else {
        invalid(errors, &path.field("container"), container, names::dns_label(container));
    }
}

fn validate_identifier(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(metric, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.field("name"), "must specify a metric name"));
    } else {
        invalid(errors, &path.field("name"), name, names::path_segment(name));
    }
}

fn validate_target(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(target, "type");
    if kind.is_empty() {
        errors.push(FieldError::required(&path.field("type"), "must specify a metric target type"));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.field("type"), &json!(kind), detail));
    }
    for field in ["value", "averageValue"] {
        if Quantity::from_value(&target[field]).is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
            errors.push(FieldError::invalid(&path.field(field), &target[field], "must be positive"));
        }
    }
    if number(target, "averageUtilization").is_some_and(|percent| percent < 1) {
        let value = &target["averageUtilization"];
        errors.push(FieldError::invalid(&path.field("averageUtilization"), value, "must be greater than 0"));
    }
}

fn validate_rules(rules: &Value, path: &Path<'_>, errors: &mut Errors) {
    let window = &rules["stabilizationWindowSeconds"];
    let at = path.field("stabilizationWindowSeconds");
    if window.as_i64().is_some_and(|seconds| seconds < 0) {
        errors.push(FieldError::invalid(&at, window, "must be greater than or equal to zero"));
    }
    if window.as_i64().is_some_and(|seconds| seconds > 3600) {
        errors.push(FieldError::invalid(&at, window, "must be less than or equal to 3600"));
    }
    let choice = text(rules, "selectPolicy");
    let choices = &["Disabled", "Max", "Min"];
    if !rules["selectPolicy"].is_null() && !choices.contains(&choice) {
        errors.push(FieldError::not_supported(&path.field("selectPolicy"), &json!(choice), choices));
    }
    let at = path.field("policies");
    let policies = list(rules, "policies");
    if policies.is_empty() {
        errors.push(FieldError::required(&at, "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        validate_policy(policy, &at.index(index), errors);
    }
    if let Some(tolerance) = Quantity::from_value(&rules["tolerance"]).filter(Quantity::is_negative) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.field("tolerance"), &json!(tolerance.canonical()), detail));
    }
}

fn validate_policy(policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(policy, "type");
    if !matches!(kind, "Pods" | "Percent") {
        errors.push(FieldError::not_supported(&path.field("type"), &json!(kind), &["Percent", "Pods"]));
    }
    for field in ["value", "periodSeconds"] {
        let value = number(policy, field).unwrap_or(0);
        if value <= 0 {
            errors.push(FieldError::invalid(&path.field(field), &json!(value), "must be greater than zero"));
        }
    }
    let period = number(policy, "periodSeconds").unwrap_or(0);
    if period > 1800 {
        let detail = "must be less than or equal to 1800";
        errors.push(FieldError::invalid(&path.field("periodSeconds"), &json!(period), detail));
    }
}
