//! `Service`. Addresses and node ports are given out elsewhere.

use serde_json::{Value, json};

use crate::value::{default, existing, is_empty, list, list_mut, number, remove, text, text_at};

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
    let family = if text_at(spec, "/clusterIP").contains(':') {
        "IPv6"
    } else {
        "IPv4"
    };
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
    for field in [
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "internalTrafficPolicy",
    ] {
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
        if let Some(there) = list(old, "ports")
            .iter()
            .find(same)
            .and_then(|there| there.get("nodePort"))
        {
            port["nodePort"] = there.clone();
        }
    }
}
