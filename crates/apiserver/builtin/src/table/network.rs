//! Rows of services, endpoints and ingresses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{first_three, labels, or};
use crate::value::{list, list_at, number, text, text_at, texts};

/// Cells of a Service.
pub(crate) fn service(service: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &service["spec"];
    vec![
        name,
        json!(text(spec, "type")),
        json!(or(text_at(spec, "/clusterIPs/0"), "<none>")),
        json!(external_addresses(service)),
        json!(or(&ports(spec), "<none>")),
        age,
        json!(labels(&spec["selector"])),
    ]
}

fn ports(spec: &Value) -> String {
    let shown = |port: &Value| {
        let (number_, protocol) = (number(port, "port").unwrap_or(0), text(port, "protocol"));
        match number(port, "nodePort").filter(|node_port| *node_port > 0) {
            Some(node_port) => format!("{number_}:{node_port}/{protocol}"),
            None => format!("{number_}/{protocol}"),
        }
    };
    list(spec, "ports").iter().map(shown).collect::<Vec<_>>().join(",")
}

fn external_addresses(service: &Value) -> String {
    let spec = &service["spec"];
    let own = texts(spec, "externalIPs").join(",");
    match text(spec, "type") {
        "ClusterIP" | "NodePort" => or(&own, "<none>").to_owned(),
        "LoadBalancer" => {
            let balanced = balancers(service);
            let both: Vec<&str> = [balanced.as_str(), &own].into_iter().filter(|part| !part.is_empty()).collect();
            or(&both.join(","), "<pending>").to_owned()
        }
        "ExternalName" => text(spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Addresses or names of the load balancers in a status.
fn balancers(object: &Value) -> String {
    let ingresses = list_at(object, "/status/loadBalancer/ingress");
    let shown: BTreeSet<&str> = ingresses.iter().map(|one| or(text(one, "ip"), text(one, "hostname"))).collect();
    shown.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(",")
}

/// Addresses with ports, the first three of them.
pub(crate) fn endpoints(endpoints: &Value) -> String {
    let subsets = list(endpoints, "subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut shown = Vec::new();
    for subset in subsets {
        let addresses = || list(subset, "addresses").iter().map(|address| text(address, "ip"));
        if list(subset, "ports").is_empty() {
            shown.extend(addresses().map(str::to_owned));
        }
        for port in list(subset, "ports") {
            let port = number(port, "port").unwrap_or(0);
            shown.extend(
                addresses().map(|ip| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }),
            );
        }
    }
    first_three(&shown, shown.len())
}

/// Cells of an `EndpointSlice`.
pub(crate) fn slice(slice: &Value, name: Value, age: Value) -> Vec<Value> {
    let port = |port: &Value| match number(port, "port") {
        Some(number) => number.to_string(),
        None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = list(slice, "ports").iter().map(port).collect();
    let endpoints = list(slice, "endpoints").iter().flat_map(|endpoint| texts(endpoint, "addresses"));
    let endpoints: Vec<String> = endpoints.map(str::to_owned).collect();
    let some = |items: &[String]| {
        let shown = first_three(items, items.len());
        if shown.is_empty() { "<unset>".to_owned() } else { shown }
    };
    vec![name, json!(text(slice, "addressType")), json!(some(&ports)), json!(some(&endpoints)), age]
}

/// Cells of an Ingress.
pub(crate) fn ingress(ingress: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &ingress["spec"];
    let class = spec.get("ingressClassName").and_then(Value::as_str).unwrap_or("<none>");
    let ports = if list(spec, "tls").is_empty() { "80" } else { "80, 443" };
    vec![name, json!(class), json!(hosts(spec)), json!(balancers(ingress)), json!(ports), age]
}

fn hosts(spec: &Value) -> String {
    let rules = list(spec, "rules");
    let named: Vec<String> =
        rules.iter().map(|rule| text(rule, "host").to_owned()).filter(|host| !host.is_empty()).collect();
    if named.is_empty() {
        return "*".to_owned();
    }
    // Once three hosts are shown, every further rule counts, whether it names a host or not.
    let shown = named.iter().take(3).count();
    let third = rules.iter().enumerate().filter(|(_, rule)| !text(rule, "host").is_empty()).nth(2).map(|(at, _)| at);
    let more = shown == 3 && third.is_some_and(|at| rules.len() > at + 1);
    first_three(&named[..shown], if more { rules.len() } else { shown })
}

/// Cells of an `IngressClass`.
pub(crate) fn ingress_class(class: &Value, age: Value) -> Vec<Value> {
    let parameters = &class["spec"]["parameters"];
    let shown = if parameters.is_null() {
        "<none>".to_owned()
    } else {
        let group =
            parameters.get("apiGroup").and_then(Value::as_str).map_or(String::new(), |group| format!(".{group}"));
        format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
    };
    let name = marked_default(class, "ingressclass.kubernetes.io/is-default-class");
    vec![json!(name), json!(text_at(class, "/spec/controller")), json!(shown), age]
}

/// The name, with a mark on the default of its kind.
pub(crate) fn marked_default(object: &Value, annotation: &str) -> String {
    let name = text_at(object, "/metadata/name");
    let default = text(&object["metadata"]["annotations"], annotation) == "true";
    if default { format!("{name} (default)") } else { name.to_owned() }
}
