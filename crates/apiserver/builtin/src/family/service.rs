//! `Service`: defaults, what goes with a change of type, and what is wrong with one. Addresses and node ports are given
//! out elsewhere.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

pub use super::service_address::{gets_ports, settle};
use super::service_address::{validate_addresses, validate_change};
use crate::check::{Errors, PROTOCOLS, one_of, port, port_or_name, showing};
use crate::family::endpoints::special_address;
use crate::ip::{address, network, read_address};
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
        "ClientIP" if spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds").is_none_or(Value::is_null) => {
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
    if is_external(spec) {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(text(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer") {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") != "LoadBalancer" {
        return;
    }
    default(spec, "allocateLoadBalancerNodePorts", true);
    if let Some(balancer) = existing(service, "status").and_then(|status| existing(status, "loadBalancer")) {
        for ingress in list_mut(balancer, "ingress").iter_mut().filter(|ingress| !is_empty(&ingress["ip"])) {
            default(ingress, "ipMode", "VIP");
        }
    }
}

/// A new service's status is empty, and its addresses stand in two fields.
pub(crate) fn prepare_create(service: &mut Value) {
    service["status"] = json!({"loadBalancer": {}});
    settle(service, None);
}

/// An update that names no address keeps the one that is there; what belongs to the old type goes.
pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    settle(new, Some(old));
    let balanced = text_at(new, "/spec/type") == "LoadBalancer";
    if let Some(spec) = existing(new, "spec") {
        drop_with_type(spec, &old["spec"]);
    }
    if !balanced {
        new["status"]["loadBalancer"] = json!({});
    }
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

/// Whether load balancers need a port to ask for the service's health.
pub fn needs_health_port(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn is_external(spec: &Value) -> bool {
    has_node_ports(spec) || (text(spec, "type") == "ClusterIP" && !list(spec, "externalIPs").is_empty())
}

fn is_balanced(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer"
}

/// What a service had for its old type goes with it, unless the update changed it.
fn drop_with_type(spec: &mut Value, old: &Value) {
    let addressed = |spec: &Value| text(spec, "type") != "ExternalName";
    drop(spec, old, addressed, &["clusterIP", "clusterIPs"]);
    drop(spec, old, addressed, &["ipFamilies"]);
    drop(spec, old, addressed, &["ipFamilyPolicy"]);
    if has_node_ports(old) && !has_node_ports(spec) {
        let ports = |spec: &Value| -> Vec<i64> {
            list(spec, "ports").iter().filter_map(|port| number(port, "nodePort")).collect()
        };
        let before = ports(old);
        if ports(spec).iter().all(|port| before.contains(port)) {
            for port in list_mut(spec, "ports") {
                remove(port, "nodePort");
            }
        }
    }
    drop(spec, old, needs_health_port, &["healthCheckNodePort"]);
    drop(spec, old, is_balanced, &["allocateLoadBalancerNodePorts"]);
    drop(spec, old, is_balanced, &["loadBalancerClass"]);
    drop(spec, old, is_external, &["externalTrafficPolicy"]);
    if text(spec, "type") == "ExternalName" {
        // Shown when a service is read, and not for names.
        remove(spec, "internalTrafficPolicy");
    }
}

/// Takes fields out that only mattered before, if they are as before.
fn drop(spec: &mut Value, old: &Value, matters: impl Fn(&Value) -> bool, fields: &[&str]) {
    let same = fields.iter().all(|field| spec.get(*field) == old.get(*field));
    if matters(old) && !matters(spec) && same {
        for field in fields {
            remove(spec, field);
        }
    }
}

/// Type, ports, selector and addresses. Addresses change only together with the type.
pub(crate) fn validate(service: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &service["spec"];
    if let Some(old) = old {
        validate_change(spec, &old["spec"], &path, errors);
        validate_class(spec, Some(&old["spec"]), &path, errors);
        if needs_health_port(spec)
            && needs_health_port(&old["spec"])
            && spec["healthCheckNodePort"] != old["spec"]["healthCheckNodePort"]
        {
            errors.push(FieldError::forbidden(&path.field("healthCheckNodePort"), "field is immutable"));
        }
    }
    validate_topology(&service["metadata"]["annotations"], errors);
    let headless = is_headless(spec);
    if list(spec, "ports").is_empty() && !headless && text(spec, "type") != "ExternalName" {
        errors.push(FieldError::required(&path.field("ports"), ""));
    }
    validate_type(spec, headless, &path, errors);
    validate_ports(spec, &path, errors);
    errors.extend(validate_labels(&spec["selector"], &path.field("selector")));
    validate_affinity(spec, &path, errors);
    validate_addresses(spec, old.map(|old| &old["spec"]), &path, errors);
    let known = old.map(|old| texts(&old["spec"], "externalIPs")).unwrap_or_default();
    for (index, shown) in texts(spec, "externalIPs").into_iter().enumerate() {
        let path = path.field("externalIPs");
        let path = path.index(index);
        let parsed = if known.contains(&shown) { read_address(shown) } else { address(errors, shown, &path) };
        if let Some(parsed) = parsed {
            special_address(errors, parsed, shown, &path);
        }
    }
    one_of(errors, spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &path);
    duplicate_ports(spec, &path, errors);
    only_for_balancers(service, old, &path, errors);
    validate_class(spec, None, &path, errors);
    traffic_policies(spec, &path, errors);
}

/// Whether a service has no address of its own.
pub(super) fn is_headless(spec: &Value) -> bool {
    list(spec, "clusterIPs").len() == 1 && text_at(spec, "/clusterIPs/0") == "None"
}

fn validate_topology(annotations: &Value, errors: &mut Errors) {
    const MODE: &str = "service.kubernetes.io/topology-mode";
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    if let (Some(mode), Some(hints)) = (annotations.get(MODE), annotations.get(HINTS))
        && mode != hints
    {
        let root = Path::root();
        let path = root.field("metadata");
        let path = path.field("annotations");
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.push(FieldError::invalid(&path.key(MODE), mode, detail));
    }
}

fn validate_affinity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(errors, spec, "sessionAffinity", &["ClientIP", "None"], path);
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    let bad = seconds.as_i64().is_some_and(|seconds| !(1..=86400).contains(&seconds));
    if text(spec, "sessionAffinity") == "ClientIP" && bad {
        let path = path.field("sessionAffinityConfig");
        let path = path.field("clientIP");
        let detail = "must be greater than 0 and less than 86400";
        errors.push(FieldError::invalid(&path.field("timeoutSeconds"), seconds, detail));
    }
}

const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const FOR_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

/// Fields that only mean something for load balancers.
fn only_for_balancers(service: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let spec = &service["spec"];
    let ranges = texts(spec, "loadBalancerSourceRanges");
    let annotated = service["metadata"]["annotations"].get(RANGES);
    if !ranges.is_empty() {
        // The real server writes this field with a capital letter.
        let at = path.field("LoadBalancerSourceRanges");
        if !is_balanced(spec) {
            errors.push(FieldError::forbidden(&at, FOR_BALANCERS));
        }
        let known = old.map(|old| texts(&old["spec"], "loadBalancerSourceRanges")).unwrap_or_default();
        let known: Vec<&str> = known.into_iter().map(str::trim).collect();
        for (index, range) in ranges.iter().map(|range| range.trim()).enumerate() {
            if !known.contains(&range) {
                network(errors, range, &at.index(index));
            }
        }
    } else if let Some(annotated) = annotated {
        let root = Path::root();
        let at = root.field("metadata");
        let at = at.field("annotations");
        if !is_balanced(spec) {
            errors.push(FieldError::forbidden(&at.key(RANGES), FOR_BALANCERS));
        }
        let unchanged = old.is_some_and(|old| old["metadata"]["annotations"].get(RANGES) == Some(annotated));
        let given = annotated.as_str().unwrap_or_default().trim();
        for range in given.split(',').filter(|_| !unchanged && !given.is_empty()) {
            network(errors, range.trim(), &at.key(RANGES));
        }
    }
    if !spec["allocateLoadBalancerNodePorts"].is_null() && !is_balanced(spec) {
        errors.push(FieldError::forbidden(&path.field("allocateLoadBalancerNodePorts"), FOR_BALANCERS));
    }
}

/// The class of load balancers, which never changes.
fn validate_class(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("loadBalancerClass");
    let class = &spec["loadBalancerClass"];
    if let Some(old) = old
        && is_balanced(old)
        && is_balanced(spec)
        && old["loadBalancerClass"] != *class
    {
        errors.push(FieldError::invalid(&path, class, "may not change once set"));
    }
    if let Some(name) = class.as_str() {
        if is_balanced(spec) {
            invalid(errors, &path, name, names::qualified_name(name));
        } else {
            errors.push(FieldError::forbidden(&path, FOR_BALANCERS));
        }
    }
}

fn traffic_policies(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policies = &["Cluster", "Local"];
    if is_external(spec) {
        one_of(errors, spec, "externalTrafficPolicy", policies, path);
    } else if !is_empty(&spec["externalTrafficPolicy"]) {
        let detail = "may only be set for externally-accessible services";
        let value = &spec["externalTrafficPolicy"];
        errors.push(FieldError::invalid(&path.field("externalTrafficPolicy"), value, detail));
    }
    let health = number(spec, "healthCheckNodePort").unwrap_or(0);
    if needs_health_port(spec) {
        if health != 0 {
            port(errors, health, &path.field("healthCheckNodePort"));
        }
    } else if health != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path.field("healthCheckNodePort"), &json!(health), detail));
    }
    one_of(errors, spec, "internalTrafficPolicy", policies, path);
    if let Some(distribution) = spec["trafficDistribution"].as_str() {
        let supported = &["PreferClose", "PreferSameZone", "PreferSameNode"];
        if !supported.contains(&distribution) {
            let path = path.field("trafficDistribution");
            errors.push(FieldError::not_supported(&path, &json!(distribution), supported));
        }
    }
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
                if !is_empty(&spec[field]) {
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
        if let Some(protocol) = item["appProtocol"].as_str() {
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

/// Only load balancers have addresses in their status.
pub(crate) fn validate_status(service: &Value, old: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    let given = list(&service["status"]["loadBalancer"], "ingress");
    if !is_balanced(&service["spec"]) {
        if !given.is_empty() {
            errors.push(FieldError::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'"));
        }
        return;
    }
    let known: Vec<&str> = list(&old["status"]["loadBalancer"], "ingress").iter().map(|i| text(i, "ip")).collect();
    for (index, ingress) in given.iter().enumerate() {
        let path = path.index(index);
        let shown = text(ingress, "ip");
        if !shown.is_empty() && !known.contains(&shown) {
            address(errors, shown, &path.field("ip"));
        }
        if shown.is_empty() && !ingress["ipMode"].is_null() {
            errors.push(FieldError::forbidden(&path.field("ipMode"), "may not be specified when `ip` is not set"));
        } else {
            one_of(errors, ingress, "ipMode", &["Proxy", "VIP"], &path);
        }
        validate_ingress_name(errors, text(ingress, "hostname"), &path.field("hostname"));
    }
}

/// A name under which a balancer is reached.
pub(super) fn validate_ingress_name(errors: &mut Errors, name: &str, path: &Path<'_>) {
    if name.is_empty() {
        return;
    }
    subdomain(errors, name, path);
    if read_address(name).is_some() {
        errors.push(FieldError::invalid(path, &json!(name), "must be a DNS name, not an IP address"));
    }
}
