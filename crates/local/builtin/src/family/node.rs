//! `Node`.

use serde_json::{Value, json};

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
