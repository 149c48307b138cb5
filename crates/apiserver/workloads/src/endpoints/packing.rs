//! Addresses and the ports that each offers → subsets: addresses that have the same ports stand together.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::object::text;
use crate::serving::hash;

/// An address, whether it is ready, and its ports; no port at all is a `None` among them.
pub(crate) struct Offer {
    /// Where it stood. To Kubernetes, ports with an `appProtocol` that stood in different places are different ports.
    pub(crate) place: usize,
    pub(crate) address: Value,
    pub(crate) ready: bool,
    pub(crate) ports: Vec<Option<Value>>,
}

/// An address is known by its IP and its pod's uid.
type AddressKey = (String, String);

/// The addresses of one port, and whether they are ready; without ports there is one place for all.
type Addresses = (Option<Value>, BTreeMap<AddressKey, bool>);

/// Subsets in an order of their own. Of two offers of one address, the first says what it is; it is ready where both are.
pub(crate) fn pack(offers: impl IntoIterator<Item = Offer>) -> Vec<Value> {
    let mut addresses: BTreeMap<AddressKey, Value> = BTreeMap::new();
    let mut by_port: BTreeMap<(String, usize), Addresses> = BTreeMap::new();
    for Offer { place, address, ready, ports } in offers {
        let key = (text(&address, "/ip").to_owned(), text(&address, "/targetRef/uid").to_owned());
        for port in ports {
            let name = port.as_ref().map(|port| (printed(port), if port["appProtocol"].is_null() { 0 } else { place }));
            let (_, all) = by_port.entry(name.unwrap_or_default()).or_insert((port, BTreeMap::new()));
            all.entry(key.clone()).and_modify(|before| *before &= ready).or_insert(ready);
        }
        addresses.entry(key).or_insert(address);
    }
    // Ports that the same addresses have.
    let mut by_addresses: BTreeMap<Vec<(AddressKey, bool)>, Vec<Value>> = BTreeMap::new();
    for (port, ready) in by_port.into_values() {
        by_addresses.entry(ready.into_iter().collect()).or_default().extend(port);
    }
    by_addresses.into_iter().map(|(keys, ports)| subset(&addresses, &keys, ports)).collect()
}

fn subset(addresses: &BTreeMap<AddressKey, Value>, keys: &[(AddressKey, bool)], mut ports: Vec<Value>) -> Value {
    ports.sort_by_cached_key(|port| hash(&printed(port)));
    let of = |ready: bool| -> Vec<Value> {
        keys.iter().filter(|(_, is)| *is == ready).filter_map(|(key, _)| addresses.get(key)).cloned().collect()
    };
    let mut subset = json!({});
    for (field, items) in [("addresses", of(true)), ("notReadyAddresses", of(false)), ("ports", ports)] {
        if !items.is_empty() {
            subset[field] = json!(items);
        }
    }
    subset
}

/// A port as Go prints it, which its place is computed from.
fn printed(port: &Value) -> String {
    format!(
        "(v1.EndpointPort){{Name:(string){} Port:(int32){} Protocol:(v1.Protocol){} AppProtocol:(*string){}}}",
        text(port, "/name"),
        port["port"],
        text(port, "/protocol"),
        port["appProtocol"].as_str().unwrap_or("<nil>")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(ip: &str, ready: bool, ports: &[i64]) -> Offer {
        let ports = ports.iter().map(|port| Some(json!({"port": port, "protocol": "TCP"}))).collect();
        Offer { place: 0, address: json!({"ip": ip}), ready, ports }
    }

    #[test]
    fn an_address_that_is_offered_twice_is_ready_where_both_offers_are() {
        let subsets = pack([offer("10.1.0.1", true, &[80]), offer("10.1.0.1", false, &[80])]);

        let port = json!({"port": 80, "protocol": "TCP"});
        assert_eq!(subsets, [json!({"notReadyAddresses": [{"ip": "10.1.0.1"}], "ports": [port]})]);
    }

    #[test]
    fn ports_that_the_same_addresses_have_stand_together() {
        let subsets =
            pack([offer("10.1.0.1", true, &[80]), offer("10.1.0.1", true, &[81]), offer("10.1.0.2", true, &[82])]);

        let ports: Vec<usize> = subsets.iter().map(|subset| subset["ports"].as_array().unwrap().len()).collect();
        assert_eq!(ports, [2, 1]);
    }

    #[test]
    fn an_address_without_ports_is_kept() {
        let none = Offer { place: 0, address: json!({"ip": "10.1.0.1"}), ready: true, ports: vec![None] };

        assert_eq!(pack([none]), [json!({"addresses": [{"ip": "10.1.0.1"}]})]);
    }

    #[test]
    fn ports_with_a_protocol_of_their_own_stay_where_they_stood() {
        let offer = |place: usize, ip: &str| {
            let port = json!({"port": 80, "protocol": "TCP", "appProtocol": "http"});
            Offer { place, address: json!({"ip": ip}), ready: true, ports: vec![Some(port)] }
        };

        assert_eq!(pack([offer(0, "10.1.0.1"), offer(0, "10.1.0.2")]).len(), 1);
        assert_eq!(pack([offer(0, "10.1.0.1"), offer(1, "10.1.0.2")]).len(), 2);
    }
}
