//! `LimitRange` and `ResourceQuota`.

use portolan_schema::{FieldError, Path};
use serde_json::{Map, Value, json};

use crate::check::Errors;
use crate::meta::invalid;
use crate::names;
use crate::quantity::Quantity;
use crate::resource;
use crate::value::{entries, existing, is_empty, list, list_mut, text, texts};

/// A range without a name is called after itself.
pub(crate) fn name_range(range: &mut Value) {
    if let Some(metadata) = existing(range, "metadata")
        && text(metadata, "name").is_empty()
    {
        metadata["name"] = metadata["uid"].clone();
    }
}

/// Defaults of container limits follow from maximum and minimum.
pub(crate) fn limit_range_defaults(range: &mut Value) {
    let Some(spec) = existing(range, "spec") else { return };
    for item in list_mut(spec, "limits") {
        if text(item, "type") != "Container" {
            continue;
        }
        fill(item, "default", "max");
        fill(item, "defaultRequest", "default");
        fill(item, "defaultRequest", "min");
    }
}

fn fill(item: &mut Value, to: &str, from: &str) {
    let Some(values) = item.get(from).and_then(Value::as_object).cloned() else {
        return;
    };
    let slot = &mut item[to];
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    let Some(target) = slot.as_object_mut() else { return };
    for (name, value) in values {
        target.entry(name).or_insert(value);
    }
}

/// Names, and minimum, defaults and maximum in their order, each type once.
pub(crate) fn validate_limit_range(range: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("limits");
    let items = list(&range["spec"], "limits");
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        validate_type(text(item, "type"), &path.field("type"), errors);
        if items[..index].iter().any(|other| other["type"] == item["type"]) {
            errors.push(FieldError::duplicate(&path.field("type"), &item["type"]));
        }
        validate_names(item, &path, errors);
        in_order(item, &path, errors);
        validate_ratios(item, &path, errors);
    }
}

fn validate_type(kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let problems = names::qualified_name(kind);
    if problems.is_empty() && !kind.contains('/') && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim") {
        let detail = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(path, &json!(kind), detail));
    }
    invalid(errors, path, kind, problems);
}

fn validate_names(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(item, "type");
    let check = if matches!(kind, "Pod" | "Container") { resource::container_name } else { resource::any_name };
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if kind == "Pod" && field.starts_with("default") {
            if !is_empty(&item[field]) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.field(field), detail));
            }
            continue;
        }
        for (name, _) in entries(&item[field]) {
            check(errors, name, &path.field(field).key(name));
        }
    }
    let sized = |field: &str| item[field].get("storage").is_some();
    if kind == "PersistentVolumeClaim" && !sized("min") && !sized("max") {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.field("limits"), detail));
    }
}

fn in_order(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    let pairs = [
        ("min", "max", "min", "min value", "max value"),
        ("min", "defaultRequest", "defaultRequest", "min value", "default request value"),
        ("defaultRequest", "max", "defaultRequest", "default request value", "max value"),
        ("defaultRequest", "default", "defaultRequest", "default request value", "default limit value"),
        ("min", "default", "default", "min value", "default value"),
        ("default", "max", "default", "default value", "max value"),
    ];
    for (low, high, field, low_words, high_words) in pairs {
        if text(item, "type") == "Pod" && (low.starts_with("default") || high.starts_with("default")) {
            continue;
        }
        for (name, value) in entries(&item[low]) {
            let (Some(small), Some(large)) = (Quantity::from_value(value), item[high].get(name)) else {
                continue;
            };
            let Some(large) = Quantity::from_value(large) else {
                continue;
            };
            if small > large {
                // What is shown is not always the field's own value; the real server is no better.
                let shown = if field == "defaultRequest" && low == "min" { &large } else { &small };
                let detail =
                    format!("{low_words} {} is greater than {high_words} {}", small.canonical(), large.canonical());
                let path = path.field(field);
                errors.push(FieldError::invalid(&path.key(name), &json!(shown.canonical()), detail));
            }
        }
    }
}

/// How far limits may be above requests.
fn validate_ratios(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    let amount = |field: &str, name: &str| item[field].get(name).and_then(Quantity::from_value);
    let one = Quantity::parse("1");
    for (name, value) in entries(&item["maxLimitRequestRatio"]) {
        let Some(ratio) = Quantity::from_value(value) else { continue };
        let shown = ratio.canonical();
        let path = path.field("maxLimitRequestRatio");
        let mut refuse = |detail: String| errors.push(FieldError::invalid(&path.key(name), &json!(shown), detail));
        if one.is_some_and(|one| ratio < one) {
            refuse(format!("ratio {shown} is less than 1"));
        }
        if let (Some(least), Some(most), Some(one)) = (amount("min", name), amount("max", name), one) {
            let possible = most.ratio_to(&least);
            if ratio.ratio_to(&one) > possible {
                refuse(format!("ratio {shown} is greater than max/min = {possible:.6}"));
            }
        }
    }
    for (name, value) in entries(&item["default"]).filter(|(name, _)| !resource::can_be_overcommitted(name)) {
        let (Some(limit), Some(request)) = (Quantity::from_value(value), amount("defaultRequest", name)) else {
            continue;
        };
        if limit != request && text(item, "type") != "Pod" {
            let (limit, request) = (limit.canonical(), request.canonical());
            let detail = format!("default value {limit} must equal to defaultRequest value {request} in {name}");
            let path = path.field("defaultRequest");
            errors.push(FieldError::invalid(&path.key(name), &json!(request), detail));
        }
    }
}

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const OF_PODS: &[&str] = &["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

/// Whether a quota of this scope can count the resource.
fn covers(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        scope if SCOPES.contains(&scope) => OF_PODS.contains(&resource),
        _ => true,
    }
}

/// Names and amounts of a quota; its scopes never change.
pub(crate) fn validate_quota(quota: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &quota["spec"];
    let at = path.field("hard");
    for (name, value) in entries(&spec["hard"]) {
        resource::quota_name(errors, name, &at.key(name));
        resource::amount(errors, name, value, &at.key(name));
    }
    let at = path.field("scopes");
    let scopes = texts(spec, "scopes");
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.push(FieldError::invalid(&at, &spec["scopes"], "unsupported scope"));
        }
        for _ in uncovered(spec, scope) {
            errors.push(FieldError::invalid(&at, &spec["scopes"], "unsupported scope applied to resource"));
        }
    }
    conflicting(&scopes, spec, &at, errors);
    if !spec["scopeSelector"].is_null() {
        validate_scope_selector(spec, &path.field("scopeSelector").field("matchExpressions"), errors);
    }
    if let Some(old) = old {
        let (mut new, mut before) = (scopes, texts(&old["spec"], "scopes"));
        for list in [&mut new, &mut before] {
            list.sort_unstable();
            list.dedup();
        }
        if new != before {
            errors.push(FieldError::invalid(&at, &spec["scopes"], "field is immutable"));
        }
    }
}

/// The resources of a quota that its scope cannot count.
fn uncovered<'a>(spec: &'a Value, scope: &str) -> Vec<&'a String> {
    let names = entries(&spec["hard"]).map(|(name, _)| name);
    names.filter(|name| resource::is_quota_name(name) && !covers(scope, name)).collect()
}

fn conflicting(scopes: &[&str], spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.push(FieldError::invalid(path, &spec["scopes"], "conflicting scopes"));
        }
    }
}

fn validate_scope_selector(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let requirements = list(&spec["scopeSelector"], "matchExpressions");
    for requirement in requirements {
        let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        let mut refuse = |field: &str, value: &Value, detail: &str| {
            errors.push(FieldError::invalid(&path.field(field), value, detail));
        };
        if !SCOPES.contains(&scope) {
            refuse("scopeName", &json!(scope), "unsupported scope");
        }
        let plain = !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && SCOPES.contains(&scope);
        if plain && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            refuse("operator", &json!(operator), detail);
        }
        let values = &requirement["values"];
        match operator {
            "In" | "NotIn" if is_empty(values) => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&path.field("values"), detail));
            }
            "Exists" | "DoesNotExist" if !is_empty(values) => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                refuse("values", values, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => refuse("operator", &json!(other), "not a valid selector operator"),
        }
        for _ in uncovered(spec, scope) {
            let detail = "unsupported scope applied to resource";
            errors.push(FieldError::invalid(path, &spec["scopeSelector"], detail));
        }
    }
    let scopes: Vec<&str> = requirements.iter().map(|requirement| text(requirement, "scopeName")).collect();
    conflicting(&scopes, spec, path, errors);
}
