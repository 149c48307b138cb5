//! `LimitRange` and `ResourceQuota`.

use portolan_schema::{FieldError, Path};
use serde_json::{Map, Value, json};

use crate::check::{Errors, same};
use crate::quantity::Quantity;
use crate::value::{entries, existing, list, list_mut, text, texts};

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

/// Minimum, defaults and maximum in their order, each type once.
pub(crate) fn validate_limit_range(range: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("limits");
    let items = list(&range["spec"], "limits");
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        if items[..index].iter().any(|other| other["type"] == item["type"]) {
            errors.push(FieldError::duplicate(&path.field("type"), &item["type"]));
        }
        in_order(item, &path, errors);
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

/// Resources that can be counted only as a whole.
const COUNTED: &[&str] = &[
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// Further resources that a quota may name without a domain.
const MEASURED: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// Names and amounts of a quota; its scopes never change.
pub(crate) fn validate_quota(quota: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    if let Some(old) = old {
        same(errors, &quota["spec"], &old["spec"], "scopes", &path);
    }
    let scopes = texts(&quota["spec"], "scopes");
    if scopes.iter().any(|scope| !SCOPES.contains(scope)) {
        errors.push(FieldError::invalid(&path.field("scopes"), &quota["spec"]["scopes"], "unsupported scope"));
    }
    let path = path.field("hard");
    for (name, value) in entries(&quota["spec"]["hard"]) {
        let path = path.key(name);
        let known = COUNTED.contains(&name.as_str()) || MEASURED.contains(&name.as_str());
        if !known && !name.contains('/') && !name.starts_with("hugepages-") {
            errors.push(FieldError::invalid(
                &path,
                &json!(name),
                "must be a standard resource type or fully qualified",
            ));
            errors.push(FieldError::invalid(&path, &json!(name), "must be a standard resource for quota"));
        }
        let Some(amount) = Quantity::from_value(value) else {
            continue;
        };
        if amount.is_negative() {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&path, &json!(amount.canonical()), detail));
        }
        let counted = COUNTED.contains(&name.as_str()) || name.starts_with("count/");
        if counted && !amount.is_integer() {
            errors.push(FieldError::invalid(&path, &json!(amount.canonical()), "must be an integer"));
        }
    }
}
