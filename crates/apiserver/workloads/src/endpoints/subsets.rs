//! A service's pods → subsets, cut where there are too many addresses.

use std::sync::Arc;

use serde_json::{Value, json};

use super::packing::{Offer, pack};
use crate::common::object::{is_deleting, list, text};
use crate::common::pod::is_ready;
use crate::serving::{self, find_port, has_address, hostname};

/// The most addresses of one object.
const MOST: usize = 1000;

/// Subsets in their canonical order.
#[derive(Debug, PartialEq)]
pub(super) struct Packed {
    pub(super) subsets: Vec<Value>,
    /// Whether addresses were left out.
    pub(super) truncated: bool,
}

/// The subsets of a service.
pub(super) fn of(service: &Value, pods: &[Arc<Value>]) -> Packed {
    let not_ready_too = service["spec"]["publishNotReadyAddresses"] == true;
    let serving = pods.iter().filter(|pod| has_address(pod) && (not_ready_too || !is_deleting(pod)));
    truncate(pack(serving.filter_map(|pod| {
        let ready = not_ready_too || is_ready(pod);
        Some(Offer { place: 0, address: address(service, pod)?, ready, ports: ports(service, pod) })
    })))
}

/// The pod's address of the service's first family.
fn address(service: &Value, pod: &Value) -> Option<Value> {
    let first = text(service, "/spec/ipFamilies/0");
    let has_colon = |pointer: &str, object: &Value| text(object, pointer).contains(':');
    let family = match text(service, "/spec/clusterIP") {
        _ if !first.is_empty() => first,
        "" | "None" if has_colon("/status/podIP", pod) => "IPv6",
        _ if has_colon("/spec/clusterIP", service) => "IPv6",
        _ => "IPv4",
    };
    let ip = serving::addresses(pod, family).into_iter().next()?;
    let mut address = json!({"ip": ip, "targetRef": serving::reference(pod)});
    let node = Some(text(pod, "/spec/nodeName")).filter(|node| !node.is_empty());
    for (field, value) in [("nodeName", node), ("hostname", hostname(pod, service))] {
        if let Some(value) = value {
            address[field] = json!(value);
        }
    }
    Some(address)
}

/// The ports that a pod serves; `None` for a headless service without any.
fn ports(service: &Value, pod: &Value) -> Vec<Option<Value>> {
    let ports = list(service, "/spec/ports");
    if ports.is_empty() {
        return if text(service, "/spec/clusterIP") == "None" { vec![None] } else { Vec::new() };
    }
    let one = |port: &Value| {
        let mut made = json!({"port": find_port(pod, port)?, "protocol": port["protocol"]});
        for field in ["name", "appProtocol"] {
            if let Some(value) = port[field].as_str().filter(|value| !value.is_empty()) {
                made[field] = json!(value);
            }
        }
        Some(made)
    };
    ports.iter().filter_map(one).map(Some).collect()
}

/// Leaves out addresses beyond the most, those that are not ready first, from each subset its share.
fn truncate(mut subsets: Vec<Value>) -> Packed {
    let count = |subset: &Value, field: &str| subset[field].as_array().map_or(0, Vec::len);
    let total = |field: &str| subsets.iter().map(|subset| count(subset, field)).sum::<usize>();
    let (ready, not_ready) = (total("addresses"), total("notReadyAddresses"));
    if ready + not_ready <= MOST {
        return Packed { subsets, truncated: false };
    }
    let (field, room, all) =
        if ready > MOST { ("addresses", MOST, ready) } else { ("notReadyAddresses", MOST - ready, not_ready) };
    let mut left = room;
    for subset in &mut subsets {
        let share = (count(subset, field) * room).div_ceil(all).min(left);
        if ready > MOST {
            drop_field(subset, "notReadyAddresses");
        }
        if let Some(items) = subset[field].as_array_mut() {
            items.truncate(share);
            left -= items.len();
        }
        if count(subset, field) == 0 {
            drop_field(subset, field);
        }
    }
    subsets.retain(|subset| count(subset, "addresses") + count(subset, "notReadyAddresses") > 0);
    Packed { subsets, truncated: true }
}

fn drop_field(subset: &mut Value, field: &str) {
    if let Some(fields) = subset.as_object_mut() {
        fields.remove(field);
    }
}

/// Whether subsets say the same; their order means nothing.
pub(super) fn equal(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().all(|subset| other.contains(subset))
}

/// Whether endpoints have a pod among the addresses that it belongs to now.
pub(super) fn is_known(endpoints: &Value, pod: &Value) -> bool {
    let field = if is_ready(pod) { "/addresses" } else { "/notReadyAddresses" };
    let mut addresses = list(endpoints, "/subsets").iter().flat_map(|subset| list(subset, field));
    addresses.any(|address| address["targetRef"]["uid"] == pod["metadata"]["uid"])
}
