//! `Endpoints` → what their slices shall hold, by address family and ports.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use crate::common::object::{list, text};
use crate::endpoint_slices::endpoint::EndpointIdentity;
use crate::endpoint_slices::ports;
use crate::endpoints::packing::{Offer, pack};

/// The most addresses of a subset that are mirrored.
pub(super) const MOST: usize = 1000;

/// An address family and a set of ports.
pub(super) type SliceKey = (&'static str, String);

/// What one slice shall hold.
pub(super) struct SliceContent {
    pub(super) ports: Vec<Value>,
    pub(super) endpoints: BTreeMap<EndpointIdentity, Value>,
}

/// What all slices shall hold.
#[derive(Default)]
pub(super) struct Desired {
    pub(super) contents: BTreeMap<SliceKey, SliceContent>,
    /// How many addresses are too many.
    pub(super) skipped: usize,
}

impl Desired {
    pub(super) fn of(endpoints: &Value) -> Self {
        let mut desired = Self::default();
        for subset in repacked(endpoints) {
            desired.add(&subset);
        }
        desired
    }

    fn add(&mut self, subset: &Value) {
        let mut ports: Vec<Value> = list(subset, "/ports").iter().map(port).collect();
        ports::sort(&mut ports);
        let key = ports::key(&ports);
        let ready = list(subset, "/addresses").iter().map(|address| (address, true));
        let all = ready.chain(list(subset, "/notReadyAddresses").iter().map(|address| (address, false)));
        let made: Vec<(&'static str, Value)> = all.filter_map(|(address, ready)| endpoint(address, ready)).collect();
        self.skipped += made.len().saturating_sub(MOST);
        for (family, endpoint) in made.into_iter().take(MOST) {
            let content = || SliceContent { ports: ports.clone(), endpoints: BTreeMap::new() };
            let place = self.contents.entry((family, key.clone())).or_insert_with(content);
            place.endpoints.insert(EndpointIdentity::of(&endpoint), endpoint);
        }
    }
}

/// The subsets with every address once under all its ports.
fn repacked(endpoints: &Value) -> Vec<Value> {
    let offers = list(endpoints, "/subsets").iter().enumerate().flat_map(|(place, subset)| {
        let ports = match list(subset, "/ports") {
            [] => vec![None],
            ports => ports.iter().cloned().map(Some).collect(),
        };
        let of = |field: &str, ready: bool| -> Vec<Offer> {
            let one = |address: &Value| Offer { place, address: address.clone(), ready, ports: ports.clone() };
            list(subset, field).iter().map(one).collect()
        };
        of("/addresses", true).into_iter().chain(of("/notReadyAddresses", false)).collect::<Vec<_>>()
    });
    pack(offers)
}

fn port(port: &Value) -> Value {
    let mut made = json!({"name": text(port, "/name"), "port": port["port"], "protocol": port["protocol"]});
    if let Some(protocol) = port["appProtocol"].as_str() {
        made["appProtocol"] = json!(protocol);
    }
    made
}

fn endpoint(address: &Value, ready: bool) -> Option<(&'static str, Value)> {
    let ip = parse(text(address, "/ip"))?;
    let mut endpoint = json!({"addresses": [ip.to_string()], "conditions": {"ready": ready}});
    for field in ["nodeName", "hostname", "targetRef"] {
        if let Some(value) = address.get(field).filter(|value| !value.is_null() && *value != "") {
            endpoint[field] = value.clone();
        }
    }
    Some((if ip.is_ipv4() { "IPv4" } else { "IPv6" }, endpoint))
}

/// Numbers may begin with zeros, and an IPv4 address may stand within an IPv6 one.
fn parse(text: &str) -> Option<IpAddr> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ip.to_canonical());
    }
    let parts: Vec<u8> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    <[u8; 4]>::try_from(parts).ok().map(|parts| IpAddr::V4(Ipv4Addr::from(parts)))
}
