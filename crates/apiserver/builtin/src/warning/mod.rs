//! An object that is accepted → what its author should know all the same.

mod key_pair;
mod overlap;
mod pod;

use portolan_schema::Path;
use serde_json::Value;

use crate::ip::{AddressNetwork, is_mapped, is_standard, is_standard_network, read_address};
use crate::names;
use crate::quantity::Quantity;
use crate::value::{list, number, text, text_at, texts};

/// The write that an object is looked at for.
#[derive(Clone, Copy, Debug)]
pub enum WriteMoment<'a> {
    /// It is new.
    Create,
    /// It was this before.
    Update(&'a Value),
    /// Its status alone is written.
    Status,
}

impl WriteMoment<'_> {
    fn is_create(self) -> bool {
        matches!(self, Self::Create)
    }

    /// Whether a number that counts changes moved, as it has for every new object.
    fn moved(self, object: &Value, counter: &str) -> bool {
        match self {
            Self::Create => true,
            Self::Update(old) => object.pointer(counter) != old.pointer(counter),
            Self::Status => false,
        }
    }
}

/// Warnings about an object of a built-in kind.
pub fn warnings(kind: &str, object: &Value, moment: WriteMoment<'_>) -> Vec<String> {
    let mut said = Vec::new();
    match moment {
        WriteMoment::Status => of_status(kind, &object["status"], &mut said),
        WriteMoment::Create | WriteMoment::Update(_) => of_object(kind, object, moment, &mut said),
    }
    said
}

fn of_object(kind: &str, object: &Value, moment: WriteMoment<'_>, said: &mut Vec<String>) {
    let root = Path::root();
    let spec = root.field("spec");
    let changed = moment.moved(object, "/metadata/generation");
    if moment.is_create() {
        name(kind, text_at(object, "/metadata/name"), said);
    }
    match kind {
        "Pod" if moment.is_create() => pod::of(object, &root, pod::Whole::Pod, said),
        "Deployment" | "ReplicaSet" if changed => template(&object["spec"], &spec, said),
        // Here the changes of the template are counted, not those of all else.
        "DaemonSet" if moment.moved(object, "/spec/template") => template(&object["spec"], &spec, said),
        "StatefulSet" => stateful_set(object, moment, &spec, said),
        "Job" if changed => job(&object["spec"], &spec, said),
        "CronJob" => cron_job(&object["spec"], moment, changed, &spec, said),
        "Service" => service(object, &spec, said),
        "Ingress" if moment.is_create() => ingress(object, said),
        "NetworkPolicy" => network_policy(&object["spec"], &spec, said),
        "EndpointSlice" => slice(object, moment, said),
        "Endpoints" => endpoints(object, said),
        "PersistentVolumeClaim" => claim(object, &spec, said),
        "PersistentVolume" => volume(object, &spec, said),
        "StorageClass" => storage_class(object, said),
        "Secret" => said.extend(key_pair::problem(object)),
        "ServiceAccount" => account(object, moment, said),
        "Node" => node(&object["spec"], &spec, said),
        _ => {}
    }
}

/// Addresses that a status tells.
fn of_status(kind: &str, status: &Value, said: &mut Vec<String>) {
    let root = Path::root();
    let path = root.field("status");
    match kind {
        "Pod" => {
            for field in ["podIPs", "hostIPs"] {
                for (index, shown) in list(status, field).iter().enumerate() {
                    address(text(shown, "ip"), &path.field(field).index(index).field("ip"), said);
                }
            }
        }
        "Service" | "Ingress" => {
            let path = path.field("loadBalancer");
            for (index, shown) in list(&status["loadBalancer"], "ingress").iter().enumerate() {
                address(text(shown, "ip"), &path.field("ingress").index(index), said);
            }
        }
        _ => {}
    }
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

fn cron_job(spec: &Value, moment: WriteMoment<'_>, changed: bool, path: &Path<'_>, said: &mut Vec<String>) {
    if changed {
        let path = path.field("jobTemplate");
        job(&spec["jobTemplate"]["spec"], &path.field("spec"), said);
    }
    if !moment.is_create() && text(spec, "schedule").contains("TZ") {
        // The real server doubles the first part of the path.
        said.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
}

fn stateful_set(set: &Value, moment: WriteMoment<'_>, path: &Path<'_>, said: &mut Vec<String>) {
    let spec = &set["spec"];
    if moment.moved(set, "/metadata/generation") {
        template(spec, path, said);
    }
    for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let path = path.field("volumeClaimTemplates");
        let path = path.index(index);
        if moment.is_create() {
            claim_size(&claim["spec"], &path, said);
        } else {
            // The real server names the field with a capital letter, and only here.
            claim_size(&claim["spec"], &path.field("Spec"), said);
        }
    }
    if number(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        said.push(format!("spec.revisionHistoryLimit: {why}"));
    }
}

const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS_INSTEAD: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

fn annotation(object: &Value, key: &str, instead: &str, said: &mut Vec<String>) {
    if object["metadata"]["annotations"].get(key).is_some() {
        said.push(format!("metadata.annotations[{key}]: {instead}"));
    }
}

fn volume(volume: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    let spec = &volume["spec"];
    annotation(volume, CLASS, CLASS_INSTEAD, said);
    let instead = "deprecated since v1.31; use \"mountOptions\" attribute instead";
    annotation(volume, "volume.beta.kubernetes.io/mount-options", instead, said);
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        said.push(format!(
            "{}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
             provisioning.",
            path.field("persistentVolumeReclaimPolicy")
        ));
    }
    let at = path.field("nodeAffinity");
    let at = at.field("required");
    for (index, term) in list(&spec["nodeAffinity"]["required"], "nodeSelectorTerms").iter().enumerate() {
        pod::node_term(term, &at.field("nodeSelectorTerms").index(index), said);
    }
    for field in ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"] {
        pod::deprecated_volume(spec, field, path, said);
    }
}

fn storage_class(class: &Value, said: &mut Vec<String>) {
    let root = Path::root();
    for (index, topology) in list(class, "allowedTopologies").iter().enumerate() {
        let path = root.field("allowedTopologies");
        let path = path.index(index);
        for (index, expression) in list(topology, "matchLabelExpressions").iter().enumerate() {
            if let Some(message) = pod::deprecated_label(text(expression, "key")) {
                said.push(format!("{}: {message}", path.field("matchLabelExpressions").index(index).field("key")));
            }
        }
    }
}

fn account(account: &Value, moment: WriteMoment<'_>, said: &mut Vec<String>) {
    const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";
    let before = matches!(moment, WriteMoment::Update(old) if old["metadata"]["annotations"].get(ENFORCED).is_some());
    if !before {
        let instead = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        annotation(account, ENFORCED, instead, said);
    }
}

fn node(spec: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    if !spec["configSource"].is_null() {
        said.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(spec, "externalID").is_empty() {
        said.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for (index, range) in texts(spec, "podCIDRs").into_iter().enumerate() {
        network(range, &path.field("podCIDRs").index(index), said);
    }
}

fn claim(claim: &Value, path: &Path<'_>, said: &mut Vec<String>) {
    annotation(claim, CLASS, CLASS_INSTEAD, said);
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

fn endpoints(endpoints: &Value, said: &mut Vec<String>) {
    if text(&endpoints["metadata"]["labels"], "endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
        return;
    }
    let root = Path::root();
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        let path = root.field("subsets");
        let path = path.index(index);
        for field in ["addresses", "notReadyAddresses"] {
            for (index, shown) in list(subset, field).iter().enumerate() {
                address(text(shown, "ip"), &path.field(field).index(index).field("ip"), said);
            }
        }
    }
}

fn slice(slice: &Value, moment: WriteMoment<'_>, said: &mut Vec<String>) {
    if moment.is_create() && text(slice, "addressType") == "FQDN" {
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
    let Some(parsed) = AddressNetwork::read(shown) else { return };
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
            warnings("Pod", &pod, WriteMoment::Create),
            ["spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply"]
        );
    }

    #[test]
    fn a_name_with_dots_is_warned_of_once() {
        let job = json!({"metadata": {"name": "a.b"}});

        assert!(
            warnings("Job", &job, WriteMoment::Create)[0]
                .ends_with("a DNS label is recommended: [must not contain dots]")
        );
        assert!(warnings("Job", &job, WriteMoment::Update(&job)).is_empty());
    }

    #[test]
    fn a_template_is_looked_at_again_only_when_the_object_changed() {
        let port = json!({"containerPort": 80, "protocol": "TCP"});
        let template = json!({"spec": {"containers": [{"ports": [port]}, {"ports": [port]}]}});
        let deployment = |generation: i64| json!({"metadata": {"name": "a", "generation": generation}, "spec": {"template": template}});
        let told = |moment: WriteMoment<'_>| warnings("Deployment", &deployment(2), moment).len();

        assert_eq!(told(WriteMoment::Create), 1);
        assert_eq!(told(WriteMoment::Update(&deployment(1))), 1);
        assert_eq!(told(WriteMoment::Update(&deployment(2))), 0);
        assert_eq!(told(WriteMoment::Status), 0);
    }

    #[test]
    fn addresses_of_a_status_are_looked_at_when_it_is_written() {
        let pod = json!({"status": {"podIPs": [{"ip": "010.0.0.1"}], "hostIPs": [{"ip": "10.0.0.1"}]}});

        assert_eq!(
            warnings("Pod", &pod, WriteMoment::Status),
            ["status.podIPs[0].ip: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""]
        );
        assert!(warnings("Pod", &pod, WriteMoment::Update(&pod)).is_empty());
    }

    #[test]
    fn an_annotation_that_was_there_before_is_not_told_again() {
        let account = json!({"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}});

        assert_eq!(warnings("ServiceAccount", &account, WriteMoment::Create).len(), 1);
        assert_eq!(warnings("ServiceAccount", &account, WriteMoment::Update(&json!({}))).len(), 1);
        assert!(warnings("ServiceAccount", &account, WriteMoment::Update(&account)).is_empty());
    }
}
