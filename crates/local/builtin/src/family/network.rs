//! `Ingress`, `IngressClass`, `NetworkPolicy`.

use serde_json::{Value, json};

use crate::value::{default, existing, is_empty, list, list_mut};

/// Where an IngressClass's parameters are looked for.
pub(crate) fn ingress_class_defaults(class: &mut Value) {
    if let Some(parameters) = existing(class, "spec").and_then(|spec| existing(spec, "parameters")) {
        default(parameters, "scope", "Cluster");
    }
}

/// Protocols, and the directions that a policy is about.
pub(crate) fn network_policy_defaults(policy: &mut Value) {
    let Some(spec) = existing(policy, "spec") else { return };
    for direction in ["ingress", "egress"] {
        for rule in list_mut(spec, direction) {
            for port in list_mut(rule, "ports") {
                default(port, "protocol", "TCP");
            }
        }
    }
    if is_empty(&spec["policyTypes"]) {
        let mut types = vec!["Ingress"];
        if !list(spec, "egress").is_empty() {
            types.push("Egress");
        }
        spec["policyTypes"] = json!(types);
    }
}
