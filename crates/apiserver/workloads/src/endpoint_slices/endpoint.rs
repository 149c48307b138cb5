//! A pod → its endpoint in a slice, and what makes two endpoints the same.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::common::object::{at, is_deleting, label, list, text};
use crate::common::pod::is_ready;
use crate::serving::{addresses, hostname, reference};

const ZONE: &str = "topology.kubernetes.io/zone";

/// What an endpoint is known by; everything else about it may change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointIdentity {
    namespace: String,
    name: String,
    hostname: String,
    addresses: Vec<String>,
}

impl EndpointIdentity {
    pub(crate) fn of(endpoint: &Value) -> Self {
        let mut addresses: Vec<String> =
            list(endpoint, "/addresses").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        addresses.sort();
        let own = |pointer: &str| text(endpoint, pointer).to_owned();
        Self {
            namespace: own("/targetRef/namespace"),
            name: own("/targetRef/name"),
            hostname: own("/hostname"),
            addresses,
        }
    }
}

/// The endpoint of a pod.
pub(super) fn of(pod: &Value, node: Option<&Value>, service: &Value, family: &str) -> Value {
    let (serving, terminating) = (is_ready(pod), is_deleting(pod));
    let ready = service["spec"]["publishNotReadyAddresses"] == true || (serving && !terminating);
    let mut endpoint = json!({
        "addresses": addresses(pod, family),
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": reference(pod),
    });
    let zone = node.and_then(|node| label(node, ZONE));
    let optional =
        [("nodeName", Some(text(pod, "/spec/nodeName"))), ("zone", zone), ("hostname", hostname(pod, service))];
    for (field, value) in optional {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            endpoint[field] = json!(value);
        }
    }
    endpoint
}

/// Whether two endpoints of one identity say the same.
pub(crate) fn says_the_same(one: &Value, other: &Value) -> bool {
    const COMPARED: [&str; 6] =
        ["/nodeName", "/zone", "/conditions/ready", "/conditions/serving", "/conditions/terminating", "/targetRef/uid"];
    COMPARED.iter().all(|pointer| at(one, pointer) == at(other, pointer))
}

/// Whether slices have an endpoint of a pod that says whether it serves now.
pub(super) fn is_known(slices: &[Arc<Value>], pod: &Value) -> bool {
    let mut endpoints = slices.iter().flat_map(|slice| list(slice, "/endpoints"));
    endpoints
        .any(|one| one["targetRef"]["uid"] == pod["metadata"]["uid"] && one["conditions"]["serving"] == is_ready(pod))
}
