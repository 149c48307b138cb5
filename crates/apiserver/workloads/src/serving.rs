//! A service and the pods of its namespace → which pods serve it, and by which addresses and ports.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::common::kind::{PODS, SERVICES};
use crate::common::object::{at, labels, list, name_of, namespace, text};
use crate::common::pod::{is_finished, ready_condition};
use crate::{ObjectName, View};

const HEADLESS: &str = "service.kubernetes.io/headless";
/// The annotation that says when the change happened that endpoints follow.
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// What a service selects its pods by. None where it is a mere name, or someone else cares for its endpoints.
fn selector(service: &Value) -> Option<&Map<String, Value>> {
    let selector = at(service, "/spec/selector")?.as_object().filter(|selector| !selector.is_empty())?;
    (text(service, "/spec/type") != "ExternalName").then_some(selector)
}

/// Whether the service's endpoints follow its pods.
pub(crate) fn has_selector(service: &Value) -> bool {
    selector(service).is_some()
}

fn selects(service: &Value, pod: &Value) -> bool {
    let has = |(key, value): (&String, &Value)| labels(pod).and_then(|labels| labels.get(key)) == Some(value);
    selector(service).is_some_and(|wanted| wanted.iter().all(has))
}

/// The pods that a service selects, by name.
pub(crate) fn pods(view: &dyn View, service: &Value) -> Vec<Arc<Value>> {
    selector(service).map(|wanted| view.labelled(PODS, namespace(service), wanted)).unwrap_or_default()
}

/// The services that select a pod.
pub(crate) fn services_of(view: &dyn View, pod: &Value) -> Vec<ObjectName> {
    let all = view.list(SERVICES, namespace(pod));
    all.iter().filter(|service| selects(service, pod)).map(|service| name_of(service)).collect()
}

/// When the pod's `Ready` condition last changed; empty where it never did.
fn ready_changed(pod: &Value) -> &str {
    ready_condition(pod).map(|condition| text(condition, "/lastTransitionTime")).unwrap_or_default()
}

/// When the change happened that the endpoints of a service follow: its creation at first, then when pods became ready
/// or stopped being so. None where all pods are `known` as they are, and something else changed.
pub(crate) fn trigger_time<'a>(
    service: &'a Value,
    pods: &'a [Arc<Value>],
    is_first: bool,
    known: impl Fn(&Value) -> bool,
) -> Option<&'a str> {
    if is_first {
        return Some(text(service, "/metadata/creationTimestamp"));
    }
    let changed = pods.iter().filter(|pod| !known(pod)).map(|pod| ready_changed(pod));
    changed.filter(|time| !time.is_empty()).min()
}

/// Whether the pod may serve anyone: it has an address and is not at its end.
pub(crate) fn has_address(pod: &Value) -> bool {
    !is_finished(pod) && (!text(pod, "/status/podIP").is_empty() || !list(pod, "/status/podIPs").is_empty())
}

/// The pod's addresses of a family, `IPv4` or `IPv6`.
pub(crate) fn addresses(pod: &Value, family: &str) -> Vec<String> {
    let given = list(pod, "/status/podIPs").iter().filter_map(|one| one["ip"].as_str());
    let parsed = given.filter_map(|text| text.parse::<IpAddr>().ok());
    parsed.filter(|address| address.is_ipv6() == (family == "IPv6")).map(|address| address.to_string()).collect()
}

/// The pod's own name below the service's, where it asks for one.
pub(crate) fn hostname<'a>(pod: &'a Value, service: &Value) -> Option<&'a str> {
    let below = text(pod, "/spec/subdomain") == text(service, "/metadata/name");
    Some(text(pod, "/spec/hostname")).filter(|name| !name.is_empty() && below)
}

/// A pod as an endpoint refers to it.
pub(crate) fn reference(pod: &Value) -> Value {
    let metadata = &pod["metadata"];
    json!({"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]})
}

/// The labels of a service as its endpoints carry them: with a mark where it has no address of its own.
pub(crate) fn labels_of_endpoints(service: &Value) -> Map<String, Value> {
    let mut labels = labels(service).cloned().unwrap_or_default();
    labels.remove(HEADLESS);
    if matches!(text(service, "/spec/clusterIP"), "" | "None") {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels
}

/// Annotations with these set, or taken away where they have no value.
pub(crate) fn annotated(old: &Value, changes: &[(&str, Option<&str>)]) -> Value {
    let mut annotations = old.as_object().cloned().unwrap_or_default();
    for (name, value) in changes {
        match value {
            Some(value) => annotations.insert((*name).to_owned(), json!(value)),
            None => annotations.remove(*name),
        };
    }
    Value::Object(annotations)
}

/// The number of a service's port on a pod; a port that is named has the number that the pod's containers give it.
pub(crate) fn find_port(pod: &Value, port: &Value) -> Option<i64> {
    let Some(name) = port["targetPort"].as_str() else {
        return port["targetPort"].as_i64();
    };
    let sidecars = list(pod, "/spec/initContainers").iter().filter(|c| c["restartPolicy"] == "Always");
    let ports = list(pod, "/spec/containers").iter().chain(sidecars).flat_map(|c| list(c, "/ports"));
    let mut named = ports.filter(|one| one["name"] == name && one["protocol"] == port["protocol"]);
    named.next().and_then(|one| one["containerPort"].as_i64())
}

/// FNV-1a with 128 bits. Kubernetes sorts ports by the hash of how Go prints them.
pub(crate) fn hash(text: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{find_port, hash};

    #[test]
    fn the_hash_is_the_one_of_go() {
        let printed = "(v1.EndpointPort){Name:(*string)http Protocol:(*v1.Protocol)TCP Port:(*int32)8080 AppProtocol:(*string)<nil>}";

        assert_eq!(format!("{:032x}", hash(printed)), "0e874d5677090ee5c32afa85f637c347");
    }

    #[test]
    fn a_named_port_is_looked_for_in_containers_and_sidecars() {
        let container =
            |name: &str, port: i64| json!({"ports": [{"name": name, "containerPort": port, "protocol": "TCP"}]});
        let mut sidecar = container("metrics", 9090);
        sidecar["restartPolicy"] = json!("Always");
        let pod = json!({"spec": {"containers": [container("http", 8080)], "initContainers": [container("http", 1), sidecar]}});
        let port = |target: serde_json::Value| json!({"targetPort": target, "protocol": "TCP"});

        assert_eq!(find_port(&pod, &port(json!("http"))), Some(8080));
        assert_eq!(find_port(&pod, &port(json!("metrics"))), Some(9090));
        assert_eq!(find_port(&pod, &port(json!("other"))), None);
        assert_eq!(find_port(&pod, &port(json!(7))), Some(7));
    }
}
