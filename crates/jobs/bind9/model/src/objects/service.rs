//! What holds for a server → the Service that the world asks, and the one by which it is controlled.
//!
//! They are two: the first may lead out of the cluster, the second never does, and leads to pods whether they are ready or not.

use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::defaults;
use crate::names;
use crate::objects::{ObjectSet, metadata, selector};

/// Fields of a Service that a user may say. The selector is never among them.
const FIELDS: [&str; 17] = [
    "type",
    "loadBalancerIP",
    "sessionAffinity",
    "sessionAffinityConfig",
    "clusterIP",
    "clusterIPs",
    "externalTrafficPolicy",
    "loadBalancerSourceRanges",
    "externalIPs",
    "loadBalancerClass",
    "healthCheckNodePort",
    "publishNotReadyAddresses",
    "allocateLoadBalancerNodePorts",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
    "trafficDistribution",
];

pub(crate) fn service(set: &ObjectSet<'_>) -> Value {
    let name = set.instance.name_any();
    let mut metadata = metadata(set, &name);
    if let Some(annotations) = &set.settings.service.annotations {
        metadata["annotations"] = json!(annotations);
    }
    let mut spec = json!({"type": "ClusterIP", "selector": selector(&name), "ports": ports()});
    if let Some(Value::Object(asked)) = &set.settings.service.spec {
        merge(spec.as_object_mut().expect("a spec is an object"), asked);
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
}

fn ports() -> Vec<Value> {
    let port = |name: &str, protocol: &str| json!({"name": name, "port": defaults::SERVICE_PORT, "targetPort": defaults::DNS_PORT, "protocol": protocol});
    vec![port("dns-tcp", "TCP"), port("dns-udp", "UDP")]
}

/// What is asked for over what there is: fields as they are, ports by their names.
fn merge(spec: &mut Map<String, Value>, asked: &Map<String, Value>) {
    for field in FIELDS {
        if let Some(value) = asked.get(field).filter(|value| !value.is_null()) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    let (Some(Value::Array(own)), Some(Value::Array(more))) = (spec.get_mut("ports"), asked.get("ports")) else {
        return;
    };
    for port in more.iter().filter_map(Value::as_object) {
        let same = |one: &&mut Value| one["name"].as_str() == port.get("name").and_then(Value::as_str);
        match own.iter_mut().find(same) {
            Some(Value::Object(there)) => there.extend(port.clone()),
            Some(_) | None => own.push(Value::Object(port.clone())),
        }
    }
}

pub(crate) fn control(set: &ObjectSet<'_>) -> Value {
    let name = set.instance.name_any();
    let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": port, "protocol": protocol});
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(set, &names::control_service(&name)),
        "spec": {
            "type": "ClusterIP", "clusterIP": "None", "publishNotReadyAddresses": true, "selector": selector(&name),
            "ports": [
                port("rndc", defaults::CONTROL_PORT, "TCP"),
                port("dns-tcp", defaults::DNS_PORT, "TCP"),
                port("dns-udp", defaults::DNS_PORT, "UDP"),
            ],
        },
    })
}
