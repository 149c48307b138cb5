//! A service and a pod → the ports of a slice, in the order and under the key that Kubernetes gives them.

use serde_json::{Value, json};

use crate::common::object::{list, text};
use crate::serving::{find_port, hash};

/// The ports that a pod serves; those that it does not have are left out.
pub(super) fn of(service: &Value, pod: &Value) -> Vec<Value> {
    let mut ports: Vec<Value> = list(service, "/spec/ports").iter().filter_map(|port| one(port, pod)).collect();
    sort(&mut ports);
    ports
}

/// Puts ports into the order of a slice.
pub(crate) fn sort(ports: &mut [Value]) {
    ports.sort_by_cached_key(|port| hash(&printed(port)));
}

fn one(port: &Value, pod: &Value) -> Option<Value> {
    let number = find_port(pod, port)?;
    let mut made = json!({"name": text(port, "/name"), "port": number, "protocol": port["protocol"]});
    if let Some(protocol) = port["appProtocol"].as_str() {
        made["appProtocol"] = json!(protocol);
    }
    Some(made)
}

/// Slices with equal keys have the same ports, in whatever order.
pub(crate) fn key(ports: &[Value]) -> String {
    let mut texts: Vec<String> = ports.iter().map(printed).collect();
    texts.sort();
    texts.join("\n")
}

/// A port as Go prints it, which its place is computed from.
fn printed(port: &Value) -> String {
    let shown = |field: &str| match &port[field] {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!(
        "(v1.EndpointPort){{Name:(*string){} Protocol:(*v1.Protocol){} Port:(*int32){} AppProtocol:(*string){}}}",
        shown("name"),
        shown("protocol"),
        shown("port"),
        shown("appProtocol")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::printed;
    use crate::serving::hash;

    #[test]
    fn a_port_is_printed_as_go_does() {
        let port = json!({"name": "", "port": 8080, "protocol": "UDP", "appProtocol": "h2c"});

        assert_eq!(format!("{:032x}", hash(&printed(&port))), "ddfe06fca246fe541720ca91b5e860ab");
    }
}
