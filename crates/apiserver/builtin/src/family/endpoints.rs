//! `Endpoints` and `EndpointSlice`.

use std::net::IpAddr;

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, PROTOCOLS, one_of, port, same};
use crate::ip::{address, canonical_address};
use crate::meta::{invalid, validate_labels};
use crate::names;
use crate::value::{default, is_empty, list, list_mut, number, text};

/// Protocols of `Endpoints` ports.
pub(crate) fn endpoints_defaults(endpoints: &mut Value) {
    for subset in list_mut(endpoints, "subsets") {
        for port in list_mut(subset, "ports") {
            default(port, "protocol", "TCP");
        }
    }
}

/// What older versions said of an endpoint's place is not written any more.
pub(crate) fn drop_topology(slice: &mut Value) {
    for endpoint in list_mut(slice, "endpoints") {
        crate::value::remove(endpoint, "deprecatedTopology");
    }
}

/// Names and protocols of slice ports.
pub(crate) fn slice_defaults(slice: &mut Value) {
    for port in list_mut(slice, "ports") {
        if port.get("name").is_none_or(Value::is_null) {
            port["name"] = json!("");
        }
        default(port, "protocol", "TCP");
    }
}

/// Addresses and ports of `Endpoints`.
pub(crate) fn validate_endpoints(endpoints: &Value, errors: &mut Errors) {
    let root = Path::root();
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        let path = root.field("subsets");
        let path = path.index(index);
        if is_empty(&subset["addresses"]) && is_empty(&subset["notReadyAddresses"]) {
            errors.push(FieldError::required(&path, "must specify `addresses` or `notReadyAddresses`"));
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (index, item) in list(subset, field).iter().enumerate() {
                endpoint_address(errors, text(item, "ip"), &path.field(field).index(index).field("ip"));
            }
        }
        let several = list(subset, "ports").len() > 1;
        for (index, item) in list(subset, "ports").iter().enumerate() {
            endpoint_port(errors, item, several, &path.field("ports").index(index));
        }
    }
}

/// The older check runs after the newer one, and repeats it in fewer words.
fn endpoint_address(errors: &mut Errors, text: &str, path: &Path<'_>) {
    match address(errors, text, path) {
        None => errors.push(FieldError::invalid(path, &json!(text), "must be a valid IP address")),
        // Pods that are processes of this machine have such addresses; a real server refuses them.
        Some(parsed) if parsed.is_loopback() => {}
        Some(parsed) => special_address(errors, parsed, text, path),
    }
}

/// Addresses that no endpoint can have.
pub(super) fn special_address(errors: &mut Errors, address: IpAddr, text: &str, path: &Path<'_>) {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, &json!(text), detail));
    if address.is_unspecified() {
        refuse(if address.is_ipv4() { "may not be unspecified (0.0.0.0)" } else { "may not be unspecified (::)" });
    }
    if address.is_loopback() {
        refuse("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
}

fn endpoint_port(errors: &mut Errors, item: &Value, several: bool, path: &Path<'_>) {
    let name = text(item, "name");
    if !name.is_empty() {
        invalid(errors, &path.field("name"), name, names::dns_label(name));
    } else if several {
        errors.push(FieldError::required(&path.field("name"), ""));
    }
    port(errors, number(item, "port").unwrap_or(0), &path.field("port"));
    one_of(errors, item, "protocol", PROTOCOLS, path);
}

/// Address type, ports and endpoints of a slice.
pub(crate) fn validate_slice(slice: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    if let Some(old) = old
        && slice["addressType"] != old["addressType"]
    {
        address_type(slice, &root, errors);
        same(errors, slice, old, "addressType", &root);
        return;
    }
    if list(slice, "endpoints").len() > 1000 {
        errors.push(FieldError::too_many(&root.field("endpoints"), list(slice, "endpoints").len(), 1000));
        return;
    }
    address_type(slice, &root, errors);
    slice_ports(slice, &root.field("ports"), errors);
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        slice_endpoint(endpoint, text(slice, "addressType"), &root.field("endpoints").index(index), errors);
    }
}

fn address_type(slice: &Value, path: &Path<'_>, errors: &mut Errors) {
    match text(slice, "addressType") {
        "" => errors.push(FieldError::required(&path.field("addressType"), "")),
        _ => one_of(errors, slice, "addressType", &["FQDN", "IPv4", "IPv6"], path),
    }
}

fn slice_ports(slice: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    let ports = list(slice, "ports");
    if ports.len() > 20000 {
        errors.push(FieldError::too_many(path, ports.len(), 20000));
        return;
    }
    for (index, item) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(item, "name");
        if !name.is_empty() {
            invalid(errors, &path.field("name"), name, names::dns_label(name));
        }
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        }
        seen.push(name);
        one_of(errors, item, "protocol", PROTOCOLS, &path);
        if let Some(protocol) = item["appProtocol"].as_str() {
            invalid(errors, &path.field("appProtocol"), protocol, names::qualified_name(protocol));
        }
    }
}

fn slice_endpoint(endpoint: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    slice_addresses(endpoint, kind, path, errors);
    if let Some(node) = endpoint["nodeName"].as_str() {
        invalid(errors, &path.field("nodeName"), node, names::dns_subdomain(node));
    }
    errors.extend(validate_labels(&endpoint["deprecatedTopology"], &path.field("deprecatedTopology")));
    if let Some(hostname) = endpoint["hostname"].as_str() {
        invalid(errors, &path.field("hostname"), hostname, names::dns_label(hostname));
    }
    let hints = path.field("hints");
    for (field, rule) in
        [("forZones", names::label_value as fn(&str) -> Vec<String>), ("forNodes", names::dns_subdomain)]
    {
        slice_hints(list(&endpoint["hints"], field), rule, &hints.field(field), errors);
    }
}

/// Where an endpoint should be used from: at most eight places, each once.
fn slice_hints(hints: &[Value], rule: fn(&str) -> Vec<String>, path: &Path<'_>, errors: &mut Errors) {
    if hints.len() > 8 {
        errors.push(FieldError::too_many(path, hints.len(), 8));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, hint) in hints.iter().enumerate() {
        let path = path.index(index);
        let name = text(hint, "name");
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        }
        seen.push(name);
        invalid(errors, &path.field("name"), name, rule(name));
    }
}

fn slice_addresses(endpoint: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("addresses");
    let all = path;
    let addresses = list(endpoint, "addresses");
    if addresses.is_empty() {
        errors.push(FieldError::required(&path, "must contain at least 1 address"));
    } else if addresses.len() > 100 {
        errors.push(FieldError::too_many(&path, addresses.len(), 100));
    }
    for (index, item) in addresses.iter().enumerate() {
        let shown = item.as_str().unwrap_or_default();
        let path = path.index(index);
        match kind {
            "FQDN" => domain_name(errors, shown, &path),
            "IPv4" | "IPv6" => {
                let read = if kind == "IPv4" { address } else { canonical_address };
                if let Some(parsed) = read(errors, shown, &path) {
                    if parsed.is_ipv4() != (kind == "IPv4") {
                        let detail = format!("must be an {kind} address");
                        errors.push(FieldError::invalid(&all, item, detail));
                    }
                    // As for `Endpoints`: pods may be processes of this machine.
                    if !parsed.is_loopback() {
                        special_address(errors, parsed, shown, &path);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A name of two labels or more; only the first problem is told.
fn domain_name(errors: &mut Errors, name: &str, path: &Path<'_>) {
    let mut refuse = |shown: &str, detail: String| errors.push(FieldError::invalid(path, &json!(shown), detail));
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let problems = names::dns_subdomain(name);
    if !problems.is_empty() {
        refuse(name, problems.join(","));
    } else if !name.contains('.') {
        refuse(name, "should be a domain with at least two segments separated by dots".to_owned());
    } else if let Some(label) = name.split('.').find(|label| !names::dns_label(label).is_empty()) {
        refuse(label, names::dns_label(label).join(","));
    }
}
