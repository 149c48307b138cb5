//! A new pod → what the admission plugins that are on by default add: tolerations, priority and service account.

use serde_json::{Value, json};

use super::default_service_account;
use crate::value::{copy, default, existing, list, text};

/// Adds what a pod gets on the way in. Classes are looked up before; without any the priority is zero.
pub(crate) fn admit_create(pod: &mut Value) {
    default_service_account(pod);
    let Some(spec) = existing(pod, "spec") else { return };
    if text(spec, "priorityClassName").is_empty() {
        default(spec, "priority", 0);
        default(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
    tolerate_failing_nodes(spec);
}

/// Puts back what admission gave and an update left out.
pub(crate) fn admit_update(new: &mut Value, old: &Value) {
    let Some(spec) = existing(new, "spec") else { return };
    for field in ["priority", "preemptionPolicy"] {
        if spec.get(field).is_none_or(Value::is_null) {
            copy(spec, &old["spec"], field);
        }
    }
    tolerate_failing_nodes(spec);
}

fn tolerate_failing_nodes(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(spec, key);
    }
}

/// Tolerates a node's failing condition for five minutes, unless the pod says otherwise.
fn tolerate(spec: &mut Value, key: &str) {
    let covers = |toleration: &Value| {
        let effect = text(toleration, "effect");
        let its_key = text(toleration, "key");
        (its_key.is_empty() || its_key == key) && (effect.is_empty() || effect == "NoExecute")
    };
    if list(spec, "tolerations").iter().any(covers) {
        return;
    }
    default(spec, "tolerations", json!([]));
    if let Some(tolerations) = spec["tolerations"].as_array_mut() {
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
    }
}
