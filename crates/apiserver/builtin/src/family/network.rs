//! `Ingress`, `IngressClass`, `NetworkPolicy`.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, label_selector, one_of, port_or_name, required, same};
use crate::family::service::validate_ingress_name;
use crate::ip::{AddressNetwork, address, network, read_address};
use crate::meta::invalid;
use crate::names;
use crate::validation::subdomain;
use crate::value::{default, existing, is_empty, list, list_mut, number, text, texts};

/// Where an `IngressClass`'s parameters are looked for.
pub(crate) fn ingress_class_defaults(class: &mut Value) {
    if let Some(parameters) = existing(class, "spec").and_then(|spec| existing(spec, "parameters")) {
        default(parameters, "scope", "Cluster");
    }
}

/// Protocols, and the directions that a policy is about.
pub(crate) fn network_policy_defaults(policy: &mut Value) {
    let Some(spec) = existing(policy, "spec") else { return };
    for direction in ["ingress", "egress"] {
        for rule in list_mut(spec, direction) {
            for port in list_mut(rule, "ports") {
                default(port, "protocol", "TCP");
            }
        }
    }
    if is_empty(&spec["policyTypes"]) {
        let mut types = vec!["Ingress"];
        if !list(spec, "egress").is_empty() {
            types.push("Egress");
        }
        spec["policyTypes"] = json!(types);
    }
}

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Rules, backends, hosts and class of an Ingress.
pub(crate) fn validate_ingress(ingress: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &ingress["spec"];
    let annotated = text(&ingress["metadata"]["annotations"], CLASS_ANNOTATION);
    let class = text(spec, "ingressClassName");
    let both =
        ingress["metadata"]["annotations"].get(CLASS_ANNOTATION).is_some() && !spec["ingressClassName"].is_null();
    if old.is_none() && both && annotated != class {
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&root.field("annotations").field(CLASS_ANNOTATION), &json!(annotated), detail));
    }
    if is_empty(&spec["rules"]) && spec["defaultBackend"].is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&path, &spec["rules"], detail));
    }
    if !spec["defaultBackend"].is_null() {
        validate_backend(&spec["defaultBackend"], &path.field("defaultBackend"), errors);
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        validate_rule(rule, &path.field("rules").index(index), errors);
    }
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        validate_tls(tls, &path.field("tls").index(index), errors);
    }
    if !spec["ingressClassName"].is_null() {
        subdomain(errors, class, &path.field("ingressClassName"));
    }
}

fn host(errors: &mut Errors, host: &str, path: &Path<'_>) {
    let problems = if host.contains('*') { names::wildcard_subdomain(host) } else { names::dns_subdomain(host) };
    invalid(errors, path, host, problems);
}

fn validate_tls(tls: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, name) in texts(tls, "hosts").into_iter().enumerate() {
        host(errors, name, &path.field("hosts").index(index));
    }
    let secret = text(tls, "secretName");
    if !secret.is_empty() {
        subdomain(errors, secret, &path.field("secretName"));
    }
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(rule, "host");
    if read_address(name).is_some() {
        errors.push(FieldError::invalid(&path.field("host"), &json!(name), "must be a DNS name, not an IP address"));
    }
    if !name.is_empty() {
        host(errors, name, &path.field("host"));
    }
    if rule["http"].is_null() {
        return;
    }
    let path = path.field("http");
    let path = path.field("paths");
    let paths = list(&rule["http"], "paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for (index, item) in paths.iter().enumerate() {
        validate_path(item, &path.index(index), errors);
    }
}

fn validate_path(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    if item["pathType"].is_null() {
        errors.push(FieldError::required(&path.field("pathType"), "pathType must be specified"));
        return;
    }
    let value = text(item, "path");
    let mut refuse = |detail: String| errors.push(FieldError::invalid(&path.field("path"), &json!(value), detail));
    match text(item, "pathType") {
        "Exact" | "Prefix" => {
            if !value.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| value.contains(part)) {
                refuse(format!("must not contain '{part}'"));
            }
            for part in ["/..", "/."].into_iter().filter(|part| value.ends_with(part)) {
                refuse(format!("cannot end with '{part}'"));
            }
        }
        "ImplementationSpecific" => {
            if !value.is_empty() && !value.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
        }
        other => {
            let supported = &["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(&path.field("pathType"), &json!(other), supported));
        }
    }
    validate_backend(&item["backend"], &path.field("backend"), errors);
}

fn validate_backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_null(), resource.is_null()) {
        (false, false) => {
            let detail = "cannot set both resource and service backends";
            errors.push(FieldError::invalid(path, &json!(""), detail));
        }
        (true, true) => {
            errors.push(FieldError::invalid(path, &json!(""), "resource or service backend is required"));
        }
        (true, false) => {
            typed_reference(resource, &path.field("resource"), errors);
        }
        (false, true) => validate_service_backend(service, path, errors),
    }
}

/// Group, kind and name of an object.
fn typed_reference(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(group) = reference["apiGroup"].as_str() {
        subdomain(errors, group, &path.field("apiGroup"));
    }
    for field in ["kind", "name"] {
        if required(errors, reference, field, path) {
            let value = text(reference, field);
            invalid(errors, &path.field(field), value, names::path_segment(value));
        }
    }
}

fn validate_service_backend(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("service");
    let name = text(service, "name");
    if required(errors, service, "name", &at) {
        invalid(errors, &at.field("name"), name, names::dns_label(name));
    }
    let port = &service["port"];
    let (port_name, port_number) = (text(port, "name"), number(port, "number").unwrap_or(0));
    let at = at.field("port");
    match (port_name.is_empty(), port_number == 0) {
        (false, false) => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid(path, &json!(""), detail));
        }
        (true, true) => errors.push(FieldError::required(path, "port name or number is required")),
        (false, true) => invalid(errors, &at.field("name"), port_name, names::port_name(port_name)),
        (true, false) => crate::check::port(errors, port_number, &at.field("number")),
    }
}

/// Controller and parameters of an `IngressClass`; the controller never changes.
pub(crate) fn validate_ingress_class(class: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &class["spec"];
    if let Some(old) = old {
        same(errors, spec, &old["spec"], "controller", &path);
    }
    let controller = text(spec, "controller");
    if controller.len() > 250 {
        errors.push(FieldError::too_long(&path.field("controller"), 250));
    }
    domain_path(errors, controller, &path.field("controller"));
    let parameters = &spec["parameters"];
    if parameters.is_null() {
        return;
    }
    let path = path.field("parameters");
    typed_reference(parameters, &path, errors);
    one_of(errors, parameters, "scope", &["Cluster", "Namespace"], &path);
    let at = path.field("namespace");
    match (text(parameters, "scope"), parameters["namespace"].as_str()) {
        ("Namespace", None) => errors.push(FieldError::required(&at, "`parameters.scope` is set to 'Namespace'")),
        ("Namespace", Some(name)) => invalid(errors, &at, name, names::dns_label(name)),
        ("Cluster", Some(_)) => errors.push(FieldError::forbidden(&at, "`parameters.scope` is set to 'Cluster'")),
        _ => {}
    }
}

/// `acme.io/foo`.
pub(super) fn domain_path(errors: &mut Errors, value: &str, path: &Path<'_>) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if let Some((domain, rest)) = value.split_once('/').filter(|(d, rest)| !d.is_empty() && !rest.is_empty()) {
        invalid(errors, path, domain, names::dns_subdomain(domain));
        if !rest.bytes().all(allowed) {
            let detail = names::pattern("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
            errors.push(FieldError::invalid(path, &json!(rest), detail));
        }
    } else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(path, &json!(value), detail));
    }
}

/// Selectors, peers and ports of a policy.
pub(crate) fn validate_network_policy(policy: &Value, old: Option<&Value>, errors: &mut Errors) {
    let known = old.map(|old| networks(&old["spec"])).unwrap_or_default();
    let root = Path::root();
    let path = root.field("spec");
    let spec = &policy["spec"];
    label_selector(errors, &spec["podSelector"], &path.field("podSelector"));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = path.field(direction);
            let path = path.index(index);
            for (index, port) in list(rule, "ports").iter().enumerate() {
                validate_policy_port(port, &path.field("ports").index(index), errors);
            }
            for (index, peer) in list(rule, peers).iter().enumerate() {
                validate_peer(peer, &known, &path.field(peers).index(index), errors);
            }
        }
    }
    validate_policy_types(spec, &path, errors);
}

/// The networks that a policy names.
fn networks(spec: &Value) -> Vec<&str> {
    let of = |direction: &'static str, peers: &'static str| {
        list(spec, direction).iter().flat_map(move |rule| list(rule, peers)).flat_map(|peer| {
            let block = &peer["ipBlock"];
            texts(block, "except").into_iter().chain(std::iter::once(text(block, "cidr")))
        })
    };
    of("ingress", "from").chain(of("egress", "to")).collect()
}

fn validate_policy_types(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let types = texts(spec, "policyTypes");
    let path = path.field("policyTypes");
    if types.len() > 2 {
        errors.push(FieldError::invalid(&path, &spec["policyTypes"], "may not specify more than two policyTypes"));
        return;
    }
    for (index, name) in types.iter().enumerate() {
        if !matches!(*name, "Ingress" | "Egress") {
            errors.push(FieldError::not_supported(&path.index(index), &json!(name), &["Ingress", "Egress"]));
        }
    }
}

fn validate_policy_port(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(errors, item, "protocol", &["TCP", "UDP", "SCTP"], path);
    let port = &item["port"];
    let end = number(item, "endPort");
    if port.is_null() {
        if end.is_some() {
            let detail = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(&path.field("endPort"), &item["endPort"], detail));
        }
        return;
    }
    port_or_name(errors, port, &path.field("port"));
    match (port.as_i64(), end) {
        (Some(first), Some(last)) => {
            if last < first {
                let detail = "must be greater than or equal to `port`";
                // The real server shows the port here.
                errors.push(FieldError::invalid(&path.field("endPort"), port, detail));
            }
            crate::check::port(errors, last, &path.field("endPort"));
        }
        (None, Some(_)) => {
            let detail = "may not be specified when `port` is non-numeric";
            errors.push(FieldError::invalid(&path.field("endPort"), &item["endPort"], detail));
        }
        _ => {}
    }
}

fn validate_peer(peer: &Value, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"];
    let mut selecting = 0;
    for field in selectors.into_iter().filter(|field| !peer[*field].is_null()) {
        selecting += 1;
        label_selector(errors, &peer[field], &path.field(field));
    }
    let block = &peer["ipBlock"];
    if !block.is_null() {
        validate_block(block, known, &path.field("ipBlock"), errors);
    }
    match (selecting, block.is_null()) {
        (0, true) => errors.push(FieldError::required(path, "must specify a peer")),
        (1.., false) => errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer")),
        _ => {}
    }
}

/// A network and exceptions from it; those in `known` were there before and may be wrong.
fn validate_block(block: &Value, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if !required(errors, block, "cidr", path) {
        return;
    }
    let mut read = |text: &str, path: &Path<'_>| {
        if known.contains(&text) { AddressNetwork::read(text) } else { network(errors, text, path) }
    };
    let Some(outer) = read(text(block, "cidr"), &path.field("cidr")) else {
        return;
    };
    let mut outside = Vec::new();
    for (index, except) in texts(block, "except").into_iter().enumerate() {
        let path = path.field("except");
        let path = path.index(index);
        if read(except, &path).is_some_and(|inner| !outer.strictly_contains(&inner)) {
            outside.push(FieldError::invalid(&path, &json!(except), "must be a strict subset of `cidr`"));
        }
    }
    errors.extend(outside);
}

/// Addresses and names in an Ingress's status.
pub(crate) fn validate_ingress_status(ingress: &Value, old: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    let of = |ingress: &Value| list(&ingress["status"]["loadBalancer"], "ingress").to_vec();
    let before = of(old);
    for (index, item) in of(ingress).iter().enumerate() {
        let path = path.index(index);
        let shown = text(item, "ip");
        if !shown.is_empty() && !before.iter().any(|known| text(known, "ip") == shown) {
            address(errors, shown, &path.field("ip"));
        }
        validate_ingress_name(errors, text(item, "hostname"), &path.field("hostname"));
    }
}
