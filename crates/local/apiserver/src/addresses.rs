//! Cluster addresses and node ports of Services: given out when a Service is made, free again when it goes.
//!
//! Addresses are of 127.78.0.0/16, where they can be listened on without a network of their own.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::api::Api;
use crate::registry::Resource;
use crate::store::Range;

const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// What other Services hold.
struct Taken {
    addresses: HashSet<String>,
    ports: HashSet<i64>,
}

/// Gives a new or changed Service its address and ports, or says why it cannot have those that it asks for.
pub(crate) fn allocate(api: &Api, resource: &Resource, service: &mut Value) -> Vec<FieldError> {
    let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    if kind == "ExternalName" {
        return Vec::new();
    }
    let taken = taken(api, resource, service);
    let mut errors = Vec::new();
    let asked = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    match asked.as_str() {
        "None" => {}
        "" => match (1..=u16::MAX).map(address).find(|a| !taken.addresses.contains(a)) {
            Some(free) => {
                service["spec"]["clusterIP"] = json!(free);
                service["spec"]["clusterIPs"] = json!([free]);
            }
            None => errors.push(refused(&json!(""), "failed to allocate a serviceIP: range is full")),
        },
        given if taken.addresses.contains(given) => {
            let detail = format!("failed to allocate IP {given}: provided IP is already allocated");
            errors.push(refused(&json!([given]), &detail));
        }
        _ => {}
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        errors.extend(allocate_ports(service, &taken));
    }
    errors
}

fn refused(value: &Value, detail: &str) -> FieldError {
    let root = Path::root();
    let spec = root.field("spec");
    FieldError::invalid(&spec.field("clusterIPs"), value, detail)
}

fn allocate_ports(service: &mut Value, taken: &Taken) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut used = taken.ports.clone();
    if service["spec"]["allocateLoadBalancerNodePorts"] == json!(false) {
        return errors;
    }
    for (index, port) in service["spec"]["ports"].as_array_mut().into_iter().flatten().enumerate() {
        match port["nodePort"].as_i64() {
            Some(given) if given > 0 => {
                if taken.ports.contains(&given) {
                    let root = Path::root();
                    let spec = root.field("spec");
                    let ports = spec.field("ports");
                    let entry = ports.index(index);
                    errors.push(FieldError::invalid(
                        &entry.field("nodePort"),
                        &json!(given),
                        "provided port is already allocated",
                    ));
                }
                used.insert(given);
            }
            _ => {
                if let Some(free) = NODE_PORTS.clone().find(|p| !used.contains(p)) {
                    used.insert(free);
                    port["nodePort"] = json!(free);
                }
            }
        }
    }
    errors
}

fn address(number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 78, high, low).to_string()
}

fn taken(api: &Api, resource: &Resource, own: &Value) -> Taken {
    let mut taken = Taken { addresses: HashSet::new(), ports: HashSet::new() };
    let range = Range { collection: &resource.collection, prefix: "", after: "", at: None };
    for stored in api.store.list(&range).map(|l| l.objects).unwrap_or_default() {
        let service = api.object(resource, &stored);
        if service["metadata"]["uid"] == own["metadata"]["uid"] {
            continue;
        }
        taken
            .addresses
            .extend(service["spec"]["clusterIP"].as_str().filter(|a| !a.is_empty() && *a != "None").map(str::to_owned));
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        taken.ports.extend(ports.filter_map(|p| p["nodePort"].as_i64()));
    }
    taken
}
