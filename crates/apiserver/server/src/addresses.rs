//! Cluster addresses and node ports of Services: given out when a Service is made, free again when it goes.
//!
//! Addresses are of 127.78.0.0/16, where they can be listened on without a network of their own. As on a cluster, the first
//! 256 are only for Services that ask for them, and which of the others one gets is left to chance: two servers of one machine
//! hardly ever give out the same one.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use portolan_builtin::service::{gets_ports, needs_health_port, settle};
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::api::Api;
use crate::registry::Resource;
use crate::store::Range;

const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
const RANGE: &str = "127.78.0.0/16";
/// What is given out unasked (`pkg/registry/core/service/ipallocator`: a sixteenth of the range, at most 256, is kept back).
const UNASKED: std::ops::Range<u16> = 256..u16::MAX;

/// What other Services hold.
struct TakenAddresses {
    addresses: HashSet<String>,
    ports: HashSet<i64>,
}

/// Gives a new or changed Service its address and ports, or says why it cannot have those that it asks for. The first
/// obstacle ends it, before all other checks.
pub(crate) fn allocate(api: &Api, resource: &Resource, service: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut checked = service.clone();
    let errors = settle(&mut checked, old);
    if !errors.is_empty() {
        return errors;
    }
    let taken = taken(api, resource, service);
    let errors = allocate_address(service, old, &taken);
    if !errors.is_empty() {
        return errors;
    }
    allocate_ports(service, old, &taken)
}

/// A free address, or the one that a new Service asks for.
fn allocate_address(service: &mut Value, old: Option<&Value>, taken: &TakenAddresses) -> Vec<FieldError> {
    let named = |service: &Value| service["spec"]["type"] == "ExternalName";
    let fresh = old.is_none_or(named);
    let given = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    if named(service) || given == "None" || (!fresh && !given.is_empty()) {
        return Vec::new();
    }
    let addresses = service["spec"]["clusterIPs"].clone();
    if !given.is_empty() {
        let problem = if taken.addresses.contains(&given) {
            "provided IP is already allocated".to_owned()
        } else if is_ours(&given) {
            return Vec::new();
        } else {
            format!("the provided IP ({given}) is not in the valid range. The range of valid IPs is {RANGE}")
        };
        return vec![refused(&addresses, &format!("failed to allocate IP {given}: {problem}"))];
    }
    let first = start(service["metadata"]["uid"].as_str().unwrap_or_default());
    let Some(free) = (first..UNASKED.end)
        .chain(UNASKED.start..first)
        .chain(1..UNASKED.start)
        .map(address)
        .find(|address| !taken.addresses.contains(address))
    else {
        return vec![refused(&addresses, "failed to allocate IP: range is full")];
    };
    service["spec"]["clusterIP"] = json!(free);
    service["spec"]["clusterIPs"] = json!([free]);
    Vec::new()
}

fn refused(value: &Value, detail: &str) -> FieldError {
    let root = Path::root();
    let spec = root.field("spec");
    FieldError::invalid(&spec.field("clusterIPs"), value, detail)
}

/// Ports on the nodes, for every port that wants one and for the health of the Service.
fn allocate_ports(service: &mut Value, old: Option<&Value>, taken: &TakenAddresses) -> Vec<FieldError> {
    let mut used = taken.ports.clone();
    let all = gets_ports(&service["spec"]);
    let own = old.map(|old| node_ports(old).collect::<HashSet<i64>>()).unwrap_or_default();
    if matches!(service["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        let given: Vec<(Value, i64)> = ports(service)
            .filter_map(|port| Some((port["port"].clone(), port["nodePort"].as_i64().filter(|p| *p > 0)?)))
            .collect();
        used.extend(given.iter().map(|(_, node_port)| *node_port));
        // TCP and UDP of one port share a port on the nodes.
        let mut shared: Vec<(Value, i64)> = Vec::new();
        for (index, port) in service["spec"]["ports"].as_array_mut().into_iter().flatten().enumerate() {
            let number = port["port"].clone();
            let asked = port["nodePort"].as_i64().filter(|p| *p > 0);
            if let Some(asked) = asked.filter(|asked| !own.contains(asked)) {
                let twice = old.is_none() && shared.iter().any(|(other, p)| *p == asked && *other != number);
                if let Some(error) = port_error(asked, index, twice, taken) {
                    return vec![error];
                }
            }
            if asked.is_none() && !all {
                continue;
            }
            let known = shared.iter().chain(given.iter().filter(|_| old.is_none())).find(|(p, _)| *p == number);
            let known = known.map(|(_, node_port)| *node_port).filter(|_| old.is_none());
            let Some(chosen) = asked.or(known).or_else(|| NODE_PORTS.clone().find(|p| !used.contains(p))) else {
                continue;
            };
            used.insert(chosen);
            port["nodePort"] = json!(chosen);
            shared.push((number, chosen));
        }
    }
    if needs_health_port(&service["spec"])
        && service["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0) == 0
        && let Some(free) = NODE_PORTS.clone().find(|p| !used.contains(p))
    {
        service["spec"]["healthCheckNodePort"] = json!(free);
    }
    Vec::new()
}

fn port_error(port: i64, index: usize, twice: bool, taken: &TakenAddresses) -> Option<FieldError> {
    let detail = if !NODE_PORTS.contains(&port) {
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    } else if twice || taken.ports.contains(&port) {
        "provided port is already allocated"
    } else {
        return None;
    };
    let root = Path::root();
    let spec = root.field("spec");
    let ports = spec.field("ports");
    let entry = ports.index(index);
    Some(FieldError::invalid(&entry.field("nodePort"), &json!(port), detail))
}

fn ports(service: &Value) -> impl Iterator<Item = &Value> {
    service["spec"]["ports"].as_array().into_iter().flatten()
}

fn node_ports(service: &Value) -> impl Iterator<Item = i64> {
    let health = service["spec"]["healthCheckNodePort"].as_i64();
    ports(service).filter_map(|port| port["nodePort"].as_i64()).chain(health).filter(|port| *port > 0)
}

fn address(number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 78, high, low).to_string()
}

/// Where the search for a Service's address begins: by its uid, which is left to chance, or to the server's seed.
fn start(uid: &str) -> u16 {
    let hash = uid.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(1_099_511_628_211) ^ u64::from(byte));
    let size = u64::from(UNASKED.end - UNASKED.start);
    UNASKED.start + u16::try_from((hash ^ (hash >> 32)) % size).expect("less than the size of a range of u16")
}

fn is_ours(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok_and(|address| matches!(address.octets(), [127, 78, _, _]))
}

fn taken(api: &Api, resource: &Resource, own: &Value) -> TakenAddresses {
    let mut taken = TakenAddresses { addresses: HashSet::new(), ports: HashSet::new() };
    let range = Range { collection: &resource.collection, prefix: "", after: "", at: None };
    for stored in api.store.list(&range).map(|l| l.objects).unwrap_or_default() {
        let service = api.object(resource, &stored);
        if service["metadata"]["uid"] == own["metadata"]["uid"] {
            continue;
        }
        taken
            .addresses
            .extend(service["spec"]["clusterIP"].as_str().filter(|a| !a.is_empty() && *a != "None").map(str::to_owned));
        taken.ports.extend(node_ports(&service));
    }
    taken
}
