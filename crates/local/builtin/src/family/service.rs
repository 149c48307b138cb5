//! `Service`. Addresses and node ports are given out elsewhere.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, PROTOCOLS, address, network, one_of, port, port_or_name, showing};
use crate::family::endpoints::special_address;
use crate::meta::{invalid, validate_labels};
use crate::names;
use crate::validation::subdomain;
use crate::value::{default, existing, is_empty, list, list_mut, number, remove, text, text_at, texts};

/// Type, affinity, ports and traffic policies.
pub(crate) fn defaults(service: &mut Value) {
    let Some(spec) = existing(service, "spec") else { return };
    default(spec, "sessionAffinity", "None");
    default(spec, "type", "ClusterIP");
    match text(spec, "sessionAffinity") {
        "None" => {
            remove(spec, "sessionAffinityConfig");
        }
        "ClientIP" if spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds").is_none() => {
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10800}});
        }
        _ => {}
    }
    for port in list_mut(spec, "ports") {
        default(port, "protocol", "TCP");
        let target = &port["targetPort"];
        if is_empty(target) || *target == json!(0) {
            port["targetPort"] = json!(number(port, "port").unwrap_or(0));
        }
    }
    let kind = text(spec, "type").to_owned();
    let external_addresses = kind == "ClusterIP" && !list(spec, "externalIPs").is_empty();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || external_addresses {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Addresses stand in two fields, and a service that has any says of which family.
pub(crate) fn prepare_create(service: &mut Value) {
    service["status"] = json!({"loadBalancer": {}});
    align_addresses(service);
}

/// Keeps `clusterIP` and the first of `clusterIPs` the same, and fills in the address family.
pub(crate) fn align_addresses(service: &mut Value) {
    let Some(spec) = existing(service, "spec") else { return };
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let address = text(spec, "clusterIP").to_owned();
    if !address.is_empty() && list(spec, "clusterIPs").is_empty() {
        spec["clusterIPs"] = json!([address]);
    } else if address.is_empty() && !list(spec, "clusterIPs").is_empty() {
        spec["clusterIP"] = spec["clusterIPs"][0].clone();
    }
    let family = if text_at(spec, "/clusterIP").contains(':') { "IPv6" } else { "IPv4" };
    // A headless service without a selector may have endpoints of both families.
    if text(spec, "clusterIP") == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        default(spec, "ipFamilyPolicy", "RequireDualStack");
        default(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
    }
    default(spec, "ipFamilyPolicy", "SingleStack");
    default(spec, "ipFamilies", json!([family]));
}

/// An update that names no address keeps the one that is there, as long as the type wants one.
pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    let both_addressed = |s: &Value| text_at(s, "/spec/type") != "ExternalName";
    if !both_addressed(new) || !both_addressed(old) {
        if !both_addressed(new)
            && let Some(spec) = existing(new, "spec")
        {
            drop_addresses(spec, &old["spec"]);
        }
        return;
    }
    let old = &old["spec"];
    let Some(spec) = existing(new, "spec") else { return };
    let changed = text(spec, "clusterIP") != text(old, "clusterIP");
    if text(spec, "clusterIP").is_empty() && list(spec, "clusterIPs").is_empty() {
        for field in ["clusterIP", "clusterIPs"] {
            crate::value::copy(spec, old, field);
        }
    } else if changed && spec["clusterIPs"] == old["clusterIPs"] {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    for field in ["ipFamilies", "ipFamilyPolicy"] {
        if is_empty(&spec[field]) {
            crate::value::copy(spec, old, field);
        }
    }
    keep_node_ports(spec, old);
    align_addresses(new);
}

/// A service that becomes a mere name gives up what it had, unless the update changed it.
fn drop_addresses(spec: &mut Value, old: &Value) {
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
        if spec.get(field) == old.get(field) {
            remove(spec, field);
        }
    }
}

fn keep_node_ports(spec: &mut Value, old: &Value) {
    if !matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        return;
    }
    for port in list_mut(spec, "ports") {
        if number(port, "nodePort").unwrap_or(0) != 0 {
            continue;
        }
        let same = |other: &&Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        if let Some(there) = list(old, "ports").iter().find(same).and_then(|there| there.get("nodePort")) {
            port["nodePort"] = there.clone();
        }
    }
}

/// Type, ports, selector and addresses. Addresses change only together with the type.
pub(crate) fn validate(service: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &service["spec"];
    if let Some(old) = old {
        addresses_stay(spec, &old["spec"], &path, errors);
    }
    let kind = text(spec, "type");
    let headless = text_at(spec, "/clusterIPs/0") == "None" || text(spec, "clusterIP") == "None";
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.field("ports"), ""));
    }
    validate_type(spec, headless, &path, errors);
    validate_ports(spec, &path, errors);
    errors.extend(validate_labels(&spec["selector"], &path.field("selector")));
    one_of(errors, spec, "sessionAffinity", &["ClientIP", "None"], &path);
    validate_addresses(spec, &path, errors);
    for (index, shown) in texts(spec, "externalIPs").into_iter().enumerate() {
        let path = path.field("externalIPs");
        let path = path.index(index);
        if let Some(parsed) = address(errors, shown, &path) {
            special_address(errors, parsed, shown, &path);
        }
    }
    one_of(errors, spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &path);
    duplicate_ports(spec, &path, errors);
    only_for_balancers(spec, &path, errors);
    traffic_policies(spec, &path, errors);
}

/// Fields that only mean something for load balancers.
fn only_for_balancers(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let balanced = text(spec, "type") == "LoadBalancer";
    let detail = "may only be used when `type` is 'LoadBalancer'";
    let ranges = texts(spec, "loadBalancerSourceRanges");
    // The real server writes this field with a capital letter.
    let at = path.field("LoadBalancerSourceRanges");
    if !ranges.is_empty() && !balanced {
        errors.push(FieldError::forbidden(&at, detail));
    }
    for (index, range) in ranges.iter().enumerate() {
        network(errors, range.trim(), &at.index(index));
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if !spec[field].is_null() && !balanced {
            errors.push(FieldError::forbidden(&path.field(field), detail));
        }
    }
}

fn traffic_policies(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policies = &["Cluster", "Local"];
    one_of(errors, spec, "externalTrafficPolicy", policies, path);
    let local = text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
    if number(spec, "healthCheckNodePort").unwrap_or(0) != 0 && !local {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path.field("healthCheckNodePort"), &spec["healthCheckNodePort"], detail));
    }
    one_of(errors, spec, "internalTrafficPolicy", policies, path);
}

fn validate_type(spec: &Value, headless: bool, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(spec, "type");
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path.field("clusterIPs").index(0), &json!("None"), detail));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let set = !is_empty(&spec[field]) || (field == "clusterIPs" && !is_empty(&spec["clusterIP"]));
                if set {
                    errors.push(FieldError::forbidden(&path.field(field), "may not be set for ExternalName services"));
                }
            }
            let name = text(spec, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(FieldError::required(&path.field("externalName"), ""));
            } else {
                subdomain(errors, name, &path.field("externalName"));
            }
        }
        _ => {}
    }
}

fn validate_ports(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let ports = list(spec, "ports");
    let mut seen: Vec<&str> = Vec::new();
    let path = path.field("ports");
    for (index, item) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(item, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&path.field("name"), ""));
            }
        } else {
            invalid(errors, &path.field("name"), name, names::dns_label(name));
            if seen.contains(&name) {
                errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
            }
            seen.push(name);
        }
        port(errors, number(item, "port").unwrap_or(0), &path.field("port"));
        one_of(errors, item, "protocol", PROTOCOLS, &path);
        port_or_name(errors, &item["targetPort"], &path.field("targetPort"));
        let protocol = text(item, "appProtocol");
        if !protocol.is_empty() {
            invalid(errors, &path.field("appProtocol"), protocol, names::qualified_name(protocol));
        }
    }
}

fn duplicate_ports(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let ports = list(spec, "ports");
    let path = path.field("ports");
    if text(spec, "type") == "ClusterIP" {
        for (index, item) in ports.iter().enumerate() {
            if number(item, "nodePort").unwrap_or(0) != 0 {
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.push(FieldError::forbidden(&path.index(index).field("nodePort"), detail));
            }
        }
    }
    let twice = |index: usize, field: &str| {
        let same = |other: &Value| other[field] == ports[index][field] && other["protocol"] == ports[index]["protocol"];
        ports[..index].iter().any(same)
    };
    for (index, item) in ports.iter().enumerate() {
        if number(item, "nodePort").unwrap_or(0) != 0 && twice(index, "nodePort") {
            errors.push(FieldError::duplicate(&path.index(index).field("nodePort"), &item["nodePort"]));
        }
    }
    for (index, item) in ports.iter().enumerate() {
        if twice(index, "port") {
            let (name, none, zero) = (json!(""), Value::Null, json!(0));
            let fields = [
                ("Name", &name),
                ("Protocol", &item["protocol"]),
                ("AppProtocol", &none),
                ("Port", &item["port"]),
                ("TargetPort", &zero),
                ("NodePort", &zero),
            ];
            errors.push(showing(FieldError::duplicate(&path.index(index), item), &fields));
        }
    }
}

fn validate_addresses(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let families = list(spec, "ipFamilies");
    let path = path.field("clusterIPs");
    for (index, item) in list(spec, "clusterIPs").iter().enumerate() {
        let shown = item.as_str().unwrap_or_default();
        if shown == "None" && index == 0 {
            continue;
        }
        let path = path.index(index);
        let Some(parsed) = address(errors, shown, &path) else {
            continue;
        };
        let family = if parsed.is_ipv4() { "IPv4" } else { "IPv6" };
        if let Some(wanted) = families.get(index).and_then(Value::as_str).filter(|wanted| *wanted != family) {
            let detail = format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(&path, item, detail));
        }
    }
}

/// The first address never changes, unless the service is, or was, a mere name.
fn addresses_stay(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let named = |spec: &Value| text(spec, "type") == "ExternalName";
    if named(spec) || named(old) {
        return;
    }
    let before = text_at(old, "/clusterIPs/0");
    if !before.is_empty() && text_at(spec, "/clusterIPs/0") != before {
        let detail = "may not change once set";
        errors.push(FieldError::invalid(&path.field("clusterIPs").index(0), &spec["clusterIPs"], detail));
    }
}

/// Only load balancers have addresses in their status.
pub(crate) fn validate_status(service: &Value, errors: &mut Errors) {
    let root = Path::root();
    let balanced = !is_empty(&service["status"]["loadBalancer"]["ingress"]);
    if balanced && text_at(service, "/spec/type") != "LoadBalancer" {
        let path = root.field("status");
        let path = path.field("loadBalancer");
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden(&path.field("ingress"), detail));
    }
}
