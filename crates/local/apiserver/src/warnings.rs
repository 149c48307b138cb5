//! What the server accepts and warns of all the same.

use serde_json::Value;

/// Warnings about an object of a built-in kind.
pub(crate) fn of(kind: &str, object: &Value) -> Vec<String> {
    let (path, spec) = match kind {
        "Pod" => ("spec", &object["spec"]),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" => {
            ("spec.template.spec", &object["spec"]["template"]["spec"])
        }
        _ => return Vec::new(),
    };
    duplicate_ports(path, spec)
}

/// The same port of two containers, or twice of one.
fn duplicate_ports(path: &str, spec: &Value) -> Vec<String> {
    let mut seen: Vec<(&Value, &Value, String)> = Vec::new();
    let mut warnings = Vec::new();
    for (c, container) in spec["containers"].as_array().into_iter().flatten().enumerate() {
        for (p, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
            let place = format!("{path}.containers[{c}].ports[{p}]");
            let same = seen
                .iter()
                .find(|(number, protocol, _)| **number == port["containerPort"] && **protocol == port["protocol"]);
            if let Some((_, _, first)) = same {
                warnings.push(format!("{place}: duplicate port definition with {first}"));
            }
            seen.push((&port["containerPort"], &port["protocol"], place));
        }
    }
    warnings
}
