//! A service and the pods of its namespace → which pods serve it, and by which addresses and ports.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Name, View};

/// A text at a JSON pointer; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a JSON pointer; empty where there is none.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// `metadata.labels`.
pub(crate) fn labels(object: &Value) -> Map<String, Value> {
    object.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// What a service selects its pods by. None where it is a mere name, or someone else cares for its endpoints.
fn selector(service: &Value) -> Option<&Map<String, Value>> {
    let selector = service.pointer("/spec/selector")?.as_object().filter(|selector| !selector.is_empty())?;
    (text(service, "/spec/type") != "ExternalName").then_some(selector)
}

/// Whether the service's endpoints follow its pods.
pub(crate) fn has_selector(service: &Value) -> bool {
    selector(service).is_some()
}

fn selects(service: &Value, pod: &Value) -> bool {
    let labels = &pod["metadata"]["labels"];
    selector(service).is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)))
}

/// The pods that a service selects, by name.
pub(crate) fn pods(view: &dyn View, service: &Value) -> Vec<Arc<Value>> {
    let all = view.list("pods", text(service, "/metadata/namespace"));
    all.into_iter().filter(|pod| selects(service, pod)).collect()
}

/// The services that select a pod.
pub(crate) fn services_of(view: &dyn View, pod: &Value) -> Vec<Name> {
    let all = view.list("services", text(pod, "/metadata/namespace"));
    all.iter().filter(|service| selects(service, pod)).map(|service| name_of(service)).collect()
}

/// Where an object is.
pub(crate) fn name_of(object: &Value) -> Name {
    Name { namespace: text(object, "/metadata/namespace").to_owned(), name: text(object, "/metadata/name").to_owned() }
}

/// Whether the pod's `Ready` condition is true.
pub(crate) fn is_ready(pod: &Value) -> bool {
    ready_condition(pod).is_some_and(|condition| condition["status"] == "True")
}

/// When the pod's `Ready` condition last changed; empty where it never did.
pub(crate) fn ready_since(pod: &Value) -> &str {
    ready_condition(pod).and_then(|condition| condition["lastTransitionTime"].as_str()).unwrap_or_default()
}

fn ready_condition(pod: &Value) -> Option<&Value> {
    list(pod, "/status/conditions").iter().find(|condition| condition["type"] == "Ready")
}

/// Whether the pod was told to stop.
pub(crate) fn is_going(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Whether the pod may serve anyone: it has an address and is not at its end.
pub(crate) fn has_address(pod: &Value) -> bool {
    let ended = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    !ended && (!text(pod, "/status/podIP").is_empty() || !list(pod, "/status/podIPs").is_empty())
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

/// Whether the service has no address of its own.
pub(crate) fn is_headless(service: &Value) -> bool {
    matches!(text(service, "/spec/clusterIP"), "" | "None")
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

/// A patch of a map of texts: what is new or other, and null for what has to go.
pub(crate) fn map_patch(old: &Value, new: &Map<String, Value>) -> Option<Value> {
    let old = old.as_object();
    let gone = old.into_iter().flat_map(|old| old.keys()).filter(|key| !new.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    let differs = |(key, value): &(&String, &Value)| old.and_then(|old| old.get(*key)) != Some(value);
    patch.extend(new.iter().filter(differs).map(|(key, value)| (key.clone(), value.clone())));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{find_port, hash, map_patch};

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

    #[test]
    fn a_patch_takes_away_what_is_not_wanted() {
        let new = json!({"a": "1", "b": "2"}).as_object().cloned().unwrap();

        assert_eq!(map_patch(&json!({"a": "1", "c": "3"}), &new), Some(json!({"b": "2", "c": null})));
        assert_eq!(map_patch(&json!({"a": "1", "b": "2"}), &new), None);
    }
}
