//! `Node`.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, one_of, showing};
use crate::ip::network;
use crate::meta::invalid;
use crate::names;
use crate::value::{default, existing, is_empty, list, object, text};

/// What can be given out is what is there, until the node says otherwise; the address range stands in two fields.
pub(crate) fn defaults(node: &mut Value) {
    if let Some(status) = existing(node, "status")
        && is_empty(&status["allocatable"])
        && !is_empty(&status["capacity"])
    {
        status["allocatable"] = status["capacity"].clone();
    }
    let Some(spec) = existing(node, "spec") else { return };
    let range = text(spec, "podCIDR").to_owned();
    if !range.is_empty() && list(spec, "podCIDRs").is_empty() {
        spec["podCIDRs"] = json!([range]);
    }
}

/// A new node is not ready until its agent says so.
pub(crate) fn admit_create(node: &mut Value) {
    let Some(spec) = object(node, "spec") else { return };
    let key = "node.kubernetes.io/not-ready";
    default(spec, "taints", json!([]));
    if let Some(taints) = spec["taints"].as_array_mut()
        && !taints.iter().any(|taint| taint["key"] == key)
    {
        taints.push(json!({"key": key, "effect": "NoSchedule"}));
    }
}

/// Taints and addresses; what a node is once told to be, it stays.
pub(crate) fn validate(node: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let spec = &node["spec"];
    // The real server files the taints under `metadata`.
    validate_taints(spec, &root.field("metadata").field("taints"), errors);
    for (index, range) in list(spec, "podCIDRs").iter().enumerate() {
        network(errors, range.as_str().unwrap_or_default(), &root.field("spec").field("podCIDRs").index(index));
    }
    let Some(old) = old else { return };
    for (field, name) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
        let before = &old["spec"][field];
        if !is_empty(before) && spec[field] != *before {
            let detail = format!("node updates may not change {name} except from \"\" to valid");
            errors.push(FieldError::forbidden(&root.field("spec").field(field), detail));
        }
    }
}

fn validate_taints(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let taints = list(spec, "taints");
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        invalid(errors, &path.field("key"), text(taint, "key"), names::qualified_name(text(taint, "key")));
        let value = text(taint, "value");
        invalid(errors, &path.field("value"), value, names::label_value(value));
        one_of(errors, taint, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path);
        let same = |other: &Value| other["key"] == taint["key"] && other["effect"] == taint["effect"];
        if taints[..index].iter().any(same) {
            let mut error = FieldError::duplicate(&path, taint);
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            let (value, time) = (json!(value), Value::Null);
            let fields =
                [("Key", &taint["key"]), ("Value", &value), ("Effect", &taint["effect"]), ("TimeAdded", &time)];
            errors.push(showing(error, &fields));
        }
    }
}
