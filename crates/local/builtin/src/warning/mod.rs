//! An object that is accepted → what its author should know all the same.

mod overlap;
mod pod;

use portolan_schema::Path;
use serde_json::Value;

use crate::ip::{Network, is_mapped, is_standard, is_standard_network, read_address};
use crate::names;
use crate::quantity::Quantity;
use crate::value::{list, number, text, text_at, texts};

/// Whether an object is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It was created.
    Create,
    /// It was there before.
    Update,
}

/// Warnings about an object of a built-in kind.
pub fn warnings(kind: &str, object: &Value, moment: Moment) -> Vec<String> {
    let mut said = Vec::new();
    let root = Path::root();
    let spec = root.field("spec");
    if moment == Moment::Create {
        name(kind, text_at(object, "/metadata/name"), &mut said);
    }
    match kind {
        "Pod" => pod::of(object, &root, pod::Whole::Pod, &mut said),
        "Deployment" | "ReplicaSet" | "DaemonSet" => template(&object["spec"], &spec, &mut said),
        "StatefulSet" => stateful_set(object, moment, &spec, &mut said),
        "Job" => job(&object["spec"], &spec, &mut said),
        "CronJob" => {
            let path = spec.field("jobTemplate");
            job(&object["spec"]["jobTemplate"]["spec"], &path.field("spec"), &mut said);
        }
        "Service" => service(object, &spec, &mut said),
        "Ingress" if moment == Moment::Create => ingress(object, &mut said),
        "NetworkPolicy" => network_policy(&object["spec"], &spec, &mut said),
        "EndpointSlice" => slice(object, &mut said),
        "PersistentVolumeClaim" => claim(object, &spec, &mut said),
        _ => {}
    }
    said
}

/// Names that end up in hostnames.
fn name(kind: &str, name: &str, said: &mut Vec<String>) {
    let used = match kind {
        "Pod" => "the Pod's hostname",
        "Deployment" | "ReplicaSet" | "Job" | "CronJob" => "Pod names and hostnames",
        _ => return,
    };
    let problems = names::dns_label(name);
    if !problems.is_empty() {
        said.push(format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: \
             [{}]",
            problems.join(" ")
        ));
    }
}

fn template(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    pod::of(&spec["template"], &path.field("template"), pod::Whole::Template, said);
}

fn job(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    let count = |field: &str| number(spec, field).unwrap_or(0);
    let indexed = text(spec, "completionMode") == "Indexed";
    if indexed && count("completions") > 100_000 && count("parallelism") > 10_000 {
        said.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    template(spec, path, said);
}

fn stateful_set(set: &Value, moment: Moment, path: &Path<'_>, said: &mut Vec<String>) {
    let spec = &set["spec"];
    template(spec, path, said);
    for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let path = path.field("volumeClaimTemplates");
        let path = path.index(index);
        match moment {
            Moment::Create => claim_size(&claim["spec"], &path, said),
            // The real server names the field with a capital letter, and only here.
            Moment::Update => claim_size(&claim["spec"], &path.field("Spec"), said),
        }
    }
    if number(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        said.push(format!("spec.revisionHistoryLimit: {why}"));
    }
}

fn claim(claim: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    if claim["metadata"]["annotations"].get(CLASS).is_some() {
        let instead = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        said.push(format!("metadata.annotations[{CLASS}]: {instead}"));
    }
    claim_size(&claim["spec"], path, said);
}

fn claim_size(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    for part in ["requests", "limits"] {
        let path = path.field("resources");
        let path = path.field(part);
        whole_bytes(&spec["resources"][part]["storage"], &path.key("storage"), said);
    }
}

/// There are no parts of bytes.
fn whole_bytes(value: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    if let Some(amount) = Quantity::from_value(value).filter(|amount| !amount.is_integer()) {
        said.push(format!("{path}: fractional byte value {:?} is invalid, must be an integer", amount.canonical()));
    }
}

fn service(service: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = &service["spec"];
    if service["metadata"]["annotations"].get(HINTS).is_some() {
        let instead = "service.kubernetes.io/topology-mode";
        said.push(format!("annotation {HINTS} is deprecated, please use {instead} instead"));
    }
    let headless = text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None";
    if headless {
        let ignored = [
            (!text(spec, "loadBalancerIP").is_empty(), "loadBalancerIP"),
            (!list(spec, "externalIPs").is_empty(), "externalIPs"),
            (text(spec, "sessionAffinity") != "None", "SessionAffinity"),
        ];
        for (_, field) in ignored.iter().filter(|(is, _)| *is) {
            said.push(format!("spec.{field} is ignored for headless services"));
        }
    } else {
        for (index, shown) in texts(spec, "clusterIPs").into_iter().enumerate() {
            address(shown, &path.field("clusterIPs").index(index), said);
        }
    }
    service_externals(spec, headless, path, said);
    if text(spec, "trafficDistribution") == "PreferClose" {
        said.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
}

fn service_externals(spec: &Value, headless: bool, path: &Path<'_>, said: &mut Vec<String>) {
    let external = texts(spec, "externalIPs");
    let named = text(spec, "type") == "ExternalName";
    for (index, shown) in external.iter().enumerate() {
        address(shown, &path.field("externalIPs").index(index), said);
    }
    if !external.is_empty() && !headless && !named {
        said.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    address(text(spec, "loadBalancerIP"), &path.field("loadBalancerIP"), said);
    for (index, range) in texts(spec, "loadBalancerSourceRanges").into_iter().enumerate() {
        network(range, &path.field("loadBalancerSourceRanges").index(index), said);
    }
    if named && !external.is_empty() {
        said.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !named && !text(spec, "externalName").is_empty() {
        said.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
}

fn ingress(ingress: &Value, said: &mut Vec<String>) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let annotated = ingress["metadata"]["annotations"].get(CLASS).is_some();
    if annotated && ingress["spec"]["ingressClassName"].is_null() {
        said.push(format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

fn network_policy(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = path.field(direction);
            let path = path.index(index);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                let path = path.field(peers);
                let path = path.index(index);
                let path = path.field("ipBlock");
                network(text(&peer["ipBlock"], "cidr"), &path.field("cidr"), said);
                for (index, range) in texts(&peer["ipBlock"], "except").into_iter().enumerate() {
                    network(range, &path.field("except").index(index), said);
                }
            }
        }
    }
}

fn slice(slice: &Value, said: &mut Vec<String>) {
    if text(slice, "addressType") == "FQDN" {
        said.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = text(&slice["metadata"]["labels"], "endpointslice.kubernetes.io/managed-by");
    if manager.starts_with("endpointslice-controller") || manager.starts_with("endpointslicemirroring-controller") {
        return;
    }
    let root = Path::root();
    let path = root.field("endpoints");
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        let path = path.index(index);
        for (index, shown) in texts(endpoint, "addresses").into_iter().enumerate() {
            address(shown, &path.field("addresses").index(index), said);
        }
    }
}

/// An address that is not written as it should be.
fn address(shown: &str, path: &Path<'_>, said: &mut Vec<String>) {
    let Some(parsed) = read_address(shown) else { return };
    let canonical = parsed.to_string();
    if !is_standard(shown) {
        said.push(format!("{path}: non-standard IP address {shown:?} is invalid: use {canonical:?}"));
    } else if parsed.is_ipv6() && canonical != shown {
        said.push(format!("{path}: IPv6 address {shown:?} should be in RFC 5952 canonical format ({canonical:?})"));
    }
}

/// A network that is not written as it should be.
fn network(shown: &str, path: &Path<'_>, said: &mut Vec<String>) {
    let Some(parsed) = Network::read(shown) else { return };
    let before = said.len();
    let canonical = parsed.canonical();
    if parsed.first() != parsed.address {
        let all = if parsed.address.is_ipv4() { 32 } else { 128 };
        let single = format!("{}/{all}", parsed.address);
        said.push(format!(
            "{path}: CIDR value {shown:?} is ambiguous in this context (should be {canonical:?} or {single:?}?)"
        ));
    }
    let mapped = shown.split('/').next().is_some_and(is_mapped);
    if !is_standard_network(shown) || mapped {
        said.push(format!("{path}: non-standard CIDR value {shown:?} is invalid: use {canonical:?}"));
    }
    if said.len() == before && parsed.address.is_ipv6() && canonical != shown {
        said.push(format!("{path}: IPv6 CIDR value {shown:?} should be in RFC 5952 canonical format ({canonical:?})"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_that_hides_a_variable_is_warned_of() {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "env": [
            {"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A):3"}]}]}});

        assert_eq!(
            warnings("Pod", &pod, Moment::Create),
            ["spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply"]
        );
    }

    #[test]
    fn a_name_with_dots_is_warned_of_once() {
        let job = json!({"metadata": {"name": "a.b"}});

        assert!(
            warnings("Job", &job, Moment::Create)[0].ends_with("a DNS label is recommended: [must not contain dots]")
        );
        assert!(warnings("Job", &job, Moment::Update).is_empty());
    }
}
