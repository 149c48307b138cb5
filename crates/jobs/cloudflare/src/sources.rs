//! Services, Ingresses, Gateways, `HTTPRoutes` and Nodes → the addresses that a record publishes.
//!
//! Objects come as plain JSON, since only a few fields of many versions are looked at. Pure: whoever reads them hands
//! them in.

use kube::core::ApiResource;
use portolan_core::{Problem, reasons};
pub use portolan_dns::{Address, Family};
use serde_json::Value;

use crate::blocks::{NamedObject, NodeAddress, ServiceAddress, SourceChoice, SourceReference};

/// What became of the object that a record is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// It is there, perhaps without an address yet.
    Found {
        /// Its addresses, in its own order, each once.
        addresses: Vec<Address>,
        /// Its `resourceVersion`.
        version: String,
    },
    /// There is no such object.
    Gone,
}

/// A Gateway that an `HTTPRoute` is attached to.
#[derive(Clone, Debug)]
pub struct Parent {
    /// Where the API server has it.
    pub resource: ApiResource,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// The further objects that the addresses of a source stand in: the Gateways of an `HTTPRoute`, each once.
pub fn parents(reference: &SourceReference, object: &Value, from: Option<&str>) -> Vec<Parent> {
    let Some(choice @ SourceChoice::HttpRoute(_)) = reference.choice() else { return Vec::new() };
    let own = choice.named(from).namespace;
    let is_gateway = |parent: &&Value| parent.get("kind").is_none_or(|kind| kind == "Gateway");
    let mut parents: Vec<Parent> = Vec::new();
    for parent in items(object, "/spec/parentRefs").iter().filter(is_gateway) {
        let namespace = parent.get("namespace").and_then(Value::as_str).or(own);
        let Some(name) = parent.get("name").and_then(Value::as_str) else { continue };
        let gateway = NamedObject { kind: "Gateway", namespace, name };
        if !parents.iter().any(|there| there.namespace.as_deref() == namespace && there.name == name) {
            parents.push(Parent {
                resource: gateway.resource(),
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            });
        }
    }
    parents
}

/// Whether one of the `ReferenceGrants` of a source's namespace lets the records of namespace `from` publish it.
pub fn granted(grants: &[Value], from: &str, source: &NamedObject<'_>) -> bool {
    let says = |entry: &Value, field: &str, wanted: &str| entry.get(field).and_then(Value::as_str) == Some(wanted);
    let group = source.resource().group;
    let lets = |entry: &Value| {
        says(entry, "group", "networking.cloudflare-operator.io")
            && says(entry, "kind", "DNSRecord")
            && says(entry, "namespace", from)
    };
    let means = |entry: &Value| {
        let name = entry.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        says(entry, "group", &group) && says(entry, "kind", source.kind) && name.is_none_or(|name| name == source.name)
    };
    grants.iter().any(|grant| items(grant, "/spec/from").iter().any(lets) && items(grant, "/spec/to").iter().any(means))
}

/// The addresses of a source that exists, handed in with its parents.
pub fn addresses(reference: &SourceReference, object: &Value, parents: &[Value]) -> Result<AddressSource, Problem> {
    let texts = match reference.choice() {
        Some(SourceChoice::Service(service)) => service_addresses(object, service.address_type),
        Some(SourceChoice::Ingress(_)) => balancer(object, &["ip", "hostname"]),
        Some(SourceChoice::Gateway(_)) => gateway_addresses(object),
        Some(SourceChoice::Node(node)) => node_addresses(object, node.address_type),
        Some(SourceChoice::HttpRoute(_)) => parents.iter().flat_map(gateway_addresses).collect(),
        None => {
            let why = "set exactly one of service, ingress, httpRoute, gateway and node in sourceRef";
            return Err(Problem::invalid(reasons::INVALID_CONFIG, why));
        }
    };
    let versions: Vec<&str> = std::iter::once(object).chain(parents).map(version).collect();
    Ok(found(texts, versions.join(".")))
}

fn found(texts: Vec<String>, version: String) -> AddressSource {
    let mut addresses: Vec<Address> = Vec::new();
    for address in texts.iter().filter(|text| !text.is_empty()).map(|text| Address::parse(text)) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    AddressSource::Found { addresses, version }
}

fn service_addresses(service: &Value, from: ServiceAddress) -> Vec<String> {
    match from {
        ServiceAddress::LoadBalancerIP => balancer(service, &["ip"]),
        ServiceAddress::LoadBalancerHostname => balancer(service, &["hostname"]),
        ServiceAddress::ExternalIP => strings(items(service, "/spec/externalIPs")),
        ServiceAddress::ExternalName => strings(one(service, "/spec/externalName")),
        ServiceAddress::ClusterIP => cluster_addresses(service),
    }
}

/// A headless Service says `None`, which is no address.
fn cluster_addresses(service: &Value) -> Vec<String> {
    let several = items(service, "/spec/clusterIPs");
    let mut addresses = strings(if several.is_empty() { one(service, "/spec/clusterIP") } else { several });
    addresses.retain(|address| address != "None");
    addresses
}

/// The load balancer's entries: of each the first of the fields that it has.
fn balancer(object: &Value, fields: &[&str]) -> Vec<String> {
    let text = |entry: &Value| fields.iter().find_map(|field| entry.get(field)?.as_str().map(str::to_owned));
    items(object, "/status/loadBalancer/ingress").iter().filter_map(text).collect()
}

fn gateway_addresses(gateway: &Value) -> Vec<String> {
    let text = |entry: &Value| entry.get("value").and_then(Value::as_str).map(str::to_owned);
    items(gateway, "/status/addresses").iter().filter_map(text).collect()
}

fn node_addresses(node: &Value, from: NodeAddress) -> Vec<String> {
    let wanted = match from {
        NodeAddress::InternalIP => "InternalIP",
        NodeAddress::ExternalIP => "ExternalIP",
        NodeAddress::Hostname => "Hostname",
    };
    let text = |entry: &Value| entry.get("address").and_then(Value::as_str).map(str::to_owned);
    let fits = |entry: &&Value| entry.get("type").is_some_and(|kind| kind == wanted);
    items(node, "/status/addresses").iter().filter(fits).filter_map(text).collect()
}

fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn one<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).map(std::slice::from_ref).unwrap_or_default()
}

fn strings(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
