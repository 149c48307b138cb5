//! A pod or pod template → what its author should know: deprecated fields, and definitions that hide each other.

use portolan_schema::Path;
use serde_json::{Value, json};

use super::overlap::overlapping_paths;
use super::{address, claim_size, whole_bytes};
use crate::names;
use crate::value::{entries, is_empty, list, number, text, texts};

/// Whether this is a pod or a template of one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Pod,
    Template,
}

/// Everything about a pod or template; `path` leads to it.
pub(super) fn of(pod: &Value, path: &Path<'_>, whole: Whole, said: &mut Vec<String>) {
    let spec = &pod["spec"];
    let at = path.field("spec");
    node_labels(spec, &at, said);
    annotations(pod, path, said);
    volumes(spec, &at, said);
    overlapping_paths(list(spec, "volumes"), said);
    duplicates(spec, "hostAliases", "ip", &at, said);
    duplicates(spec, "imagePullSecrets", "name", &at, said);
    for (index, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            let path = at.field("imagePullSecrets");
            said.push(format!("{}: invalid empty name \"\"", path.index(index).field("name")));
        }
    }
    for name in ["memory", "ephemeral-storage"] {
        whole_bytes(&spec["overhead"][name], &at.field("overhead").key(name), said);
    }
    seccomp(pod, "seccomp.security.alpha.kubernetes.io/pod", &spec["securityContext"], path, said);
    for (field, index, container) in containers(spec) {
        let at = at.field(field);
        of_container(pod, container, whole, path, &at.index(index), said);
    }
    ports(spec, &at, said);
    if number(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        said.push(format!("{}: {why}", at.field("terminationGracePeriodSeconds")));
    }
    affinity(&spec["affinity"], &at.field("affinity"), said);
    for (index, server) in texts(&spec["dnsConfig"], "nameservers").into_iter().enumerate() {
        let at = at.field("dnsConfig");
        address(server, &at.field("nameservers").index(index), said);
    }
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        address(text(alias, "ip"), &at.field("hostAliases").index(index).field("ip"), said);
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |field| {
        list(spec, field).iter().enumerate().map(move |(index, container)| (field, index, container))
    })
}

/// What is said about a label of nodes that has been replaced.
pub(super) fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => "deprecated since v1.22; use Taints and Tolerations instead",
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

fn node_labels(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    for (key, _) in entries(&spec["nodeSelector"]) {
        if let Some(message) = deprecated_label(key) {
            said.push(format!("{}: {message}", path.field("nodeSelector").key(key)));
        }
    }
    let affinity = &spec["affinity"]["nodeAffinity"];
    let at = path.field("affinity");
    let at = at.field("nodeAffinity");
    let required = at.field("requiredDuringSchedulingIgnoredDuringExecution");
    let terms = list(&affinity["requiredDuringSchedulingIgnoredDuringExecution"], "nodeSelectorTerms");
    for (index, term) in terms.iter().enumerate() {
        node_term(term, &required.field("nodeSelectorTerms").index(index), said);
    }
    let preferred = at.field("preferredDuringSchedulingIgnoredDuringExecution");
    for (index, term) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
        let path = preferred.index(index);
        let path = path.field("preference");
        node_term(&term["preference"], &path, said);
        values(&term["preference"], &path, said);
    }
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = path.field("topologySpreadConstraints");
        let path = path.index(index);
        let key = text(constraint, "topologyKey");
        if let Some(message) = deprecated_label(key) {
            said.push(format!("{}: {key} is {message}", path.field("topologyKey")));
        }
        no_selector(constraint, &path, said);
    }
}

fn no_selector(term: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    if term["labelSelector"].is_null() {
        said.push(format!("{}: a null labelSelector results in matching no pod", path.field("labelSelector")));
    }
}

pub(super) fn node_term(term: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let key = text(expression, "key");
        if let Some(message) = deprecated_label(key) {
            let path = path.field("matchExpressions");
            said.push(format!("{}: {key} is {message}", path.index(index).field("key")));
        }
    }
}

/// Values that no label can have; where nodes are only preferred they are let through.
fn values(term: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.field("matchExpressions");
        let path = path.index(index);
        let path = path.field("values");
        for (index, value) in texts(expression, "values").into_iter().enumerate() {
            for problem in names::label_value(value) {
                said.push(format!("{}: {value} is invalid, {problem}", path.index(index)));
            }
        }
    }
}

fn annotations(pod: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    let deprecated = [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead",
        ),
        ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ];
    for (key, message) in deprecated {
        if pod["metadata"]["annotations"].get(key).is_some() {
            let path = path.field("metadata");
            said.push(format!("{}: {message}", path.field("annotations").key(key)));
        }
    }
}

/// Kinds of volume that no longer work: the field, its name in messages, and since when.
const DEPRECATED_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// A volume whose source is of the kind `field`, where that is deprecated.
pub(super) fn deprecated_volume(volume: &Value, field: &str, path: &Path<'_>, said: &mut Vec<String>) {
    let known = DEPRECATED_VOLUMES.iter().find(|(known, ..)| *known == field);
    if let Some((_, shown, message)) = known.filter(|_| !volume[field].is_null()) {
        said.push(format!("{}: {message}", path.field(shown)));
    }
}

fn volumes(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.field("volumes");
        let path = path.index(index);
        for (field, ..) in DEPRECATED_VOLUMES {
            deprecated_volume(volume, field, &path, said);
        }
        let template = &volume["ephemeral"]["volumeClaimTemplate"];
        if !template.is_null() {
            let path = path.field("ephemeral");
            let path = path.field("volumeClaimTemplate");
            claim_size(&template["spec"], &path.field("spec"), said);
        }
    }
}

fn duplicates(spec: &Value, field: &str, key: &str, path: &Path<'_>, said: &mut Vec<String>) {
    let items = list(spec, field);
    for (index, item) in items.iter().enumerate() {
        let value = text(item, key);
        if items[..index].iter().any(|other| text(other, key) == value) {
            let path = path.field(field);
            said.push(format!("{}: duplicate {key} {value:?}", path.index(index).field(key)));
        }
    }
}

/// An annotation for which there is a field by now.
fn seccomp(pod: &Value, key: &str, context: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    if context["seccompProfile"].is_null() && pod["metadata"]["annotations"].get(key).is_some() {
        let path = path.field("metadata");
        let path = path.field("annotations");
        let instead = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
        said.push(format!("{}: {instead}", path.key(key)));
    }
}

fn of_container(pod: &Value, container: &Value, whole: Whole, path: &Path<'_>, at: &Path<'_>, said: &mut Vec<String>) {
    let name = text(container, "name");
    let context = &container["securityContext"];
    seccomp(pod, &format!("container.seccomp.security.alpha.kubernetes.io/{name}"), context, path, said);
    if whole == Whole::Template && context["appArmorProfile"].is_null() {
        app_armor(pod, name, path, said);
    }
    for resource in ["memory", "ephemeral-storage"] {
        for part in ["limits", "requests"] {
            let at = at.field("resources");
            let at = at.field(part);
            whole_bytes(&container["resources"][part][resource], &at.key(resource), said);
        }
    }
    let variables = list(container, "env");
    for (index, variable) in variables.iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        let reference = format!("$({name})");
        let extends = variable["valueFrom"].is_null() && value != reference && value.contains(&reference);
        if variables[..index].iter().any(|other| text(other, "name") == name) && !extends {
            let why = "which may be dropped when using apply";
            said.push(format!("{}: hides previous definition of {name:?}, {why}", at.field("env").index(index)));
        }
    }
}

fn app_armor(pod: &Value, container: &str, path: &Path<'_>, said: &mut Vec<String>) {
    let key = format!("container.apparmor.security.beta.kubernetes.io/{container}");
    let Some(given) = pod["metadata"]["annotations"].get(&key).and_then(Value::as_str) else {
        return;
    };
    let profile = match given.strip_prefix("localhost/") {
        Some(file) => json!({"type": "Localhost", "localhostProfile": file}),
        None if given == "unconfined" => json!({"type": "Unconfined"}),
        None => json!({"type": "RuntimeDefault"}),
    };
    if pod["spec"]["securityContext"]["appArmorProfile"] != profile {
        let path = path.field("metadata");
        let path = path.field("annotations");
        let instead = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        said.push(format!("{}: {instead}", path.key(&key)));
    }
}

/// Ports that two containers have, or one has twice.
fn ports(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    let mut seen: Vec<(String, &Value)> = Vec::new();
    for (field, index, container) in containers(spec) {
        for (inner, port) in list(container, "ports").iter().enumerate() {
            let place = format!("{path}.{field}[{index}].ports[{inner}]");
            if !is_empty(&port["hostIP"]) && host_port(port) == 0 {
                let (name, own) = (text(port, "name"), number(port, "containerPort").unwrap_or(0));
                let (protocol, address) = (text(port, "protocol"), text(port, "hostIP"));
                said.push(format!(
                    "{place}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{own} \
                     Protocol:{protocol} HostIP:{address}}}"
                ));
            }
            let same = |other: &Value| {
                other["containerPort"] == port["containerPort"] && other["protocol"] == port["protocol"]
            };
            for (other_place, other) in seen.iter().filter(|(_, other)| same(other)) {
                if let Some(how) = clash(port, other) {
                    said.push(format!("{place}: {how} port definition with {other_place}"));
                }
            }
            seen.push((place, port));
        }
    }
    for (index, (place, port)) in seen.iter().enumerate() {
        let name = text(port, "name");
        let first = seen[..index].iter().find(|(_, other)| !name.is_empty() && text(other, "name") == name);
        if let Some((first, _)) = first {
            said.push(format!(
                "{place}: duplicate port name {name:?} with {first}, services and probes that select ports by name will \
                 use {first}"
            ));
        }
    }
}

fn host_port(port: &Value) -> i64 {
    number(port, "hostPort").unwrap_or(0)
}

/// How two ports of one number and protocol get into each other's way.
fn clash(port: &Value, other: &Value) -> Option<&'static str> {
    let (address, other_address) = (text(port, "hostIP"), text(other, "hostIP"));
    let same_port = host_port(port) == host_port(other);
    if address == other_address && same_port {
        Some("duplicate")
    } else if host_port(port) == 0 || host_port(other) == 0 {
        Some("overlapping")
    } else if same_port && address.is_empty() != other_address.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn affinity(affinity: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    for field in ["podAffinity", "podAntiAffinity"] {
        let path = path.field(field);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list(&affinity[field], required).iter().enumerate() {
            no_selector(term, &path.field(required).index(index), said);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list(&affinity[field], preferred).iter().enumerate() {
            let path = path.field(preferred);
            no_selector(&term["podAffinityTerm"], &path.index(index).field("podAffinityTerm"), said);
        }
    }
}
