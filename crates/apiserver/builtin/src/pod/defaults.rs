//! A pod spec → the pod spec with what Kubernetes fills in.

use serde_json::{Value, json};

use super::image::has_latest_tag;
use super::normalise_grace;
use super::resources::resource_totals;
use crate::resource;
use crate::value::{default, entries, existing, flag_at, is_empty, list_mut, number, object, text};

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Fills in the spec below `spec` of a pod.
pub(crate) fn pod_defaults(pod: &mut Value) {
    let Some(spec) = existing(pod, "spec") else { return };
    spec_defaults(spec);
    normalise_grace(spec);
    let host_network = flag_at(spec, "/hostNetwork");
    for name in ["containers", "initContainers"] {
        for container in list_mut(spec, name) {
            requests_from_limits(container);
            if host_network {
                host_ports(container);
            }
        }
    }
    whole_pod_resources(spec);
    default(spec, "enableServiceLinks", true);
}

/// Limits of the pod as a whole make requests of it: what its containers ask for, else the limit.
fn whole_pod_resources(spec: &mut Value) {
    let Some(resources) = spec.get("resources").filter(|resources| !resources.is_null()) else {
        return;
    };
    let mut resources = resources.clone();
    let pages = resource_totals(spec, "limits").into_iter().filter(|(name, _)| resource::is_huge_page(name));
    if !is_empty(&resources["limits"]) || !is_empty(&resources["requests"]) {
        for (name, amount) in pages.filter(|(name, _)| resources["requests"].get(name).is_none()).collect::<Vec<_>>() {
            fill(&mut resources, "limits", &name, &amount);
        }
    }
    if !is_empty(&resources["limits"]) {
        let measured = |name: &str| matches!(name, "cpu" | "memory");
        for (name, amount) in resource_totals(spec, "requests").into_iter().filter(|(name, _)| measured(name)) {
            fill(&mut resources, "requests", &name, &amount);
        }
        let limits = resources["limits"].clone();
        let supported = |name: &str| measured(name) || resource::is_huge_page(name);
        for (name, amount) in entries(&limits).filter(|(name, _)| supported(name)) {
            fill(&mut resources, "requests", name, amount);
        }
    }
    spec["resources"] = resources;
}

fn fill(resources: &mut Value, part: &str, name: &str, amount: &Value) {
    if let Some(amounts) = object(resources, part) {
        default(amounts, name, amount.clone());
    }
}

/// Fills in the spec of a pod template.
pub(crate) fn template_defaults(template: &mut Value) {
    if let Some(spec) = existing(template, "spec") {
        spec_defaults(spec);
    }
}

fn spec_defaults(spec: &mut Value) {
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "restartPolicy", "Always");
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "schedulerName", "default-scheduler");
    copy_service_account(spec);
    list_mut(spec, "volumes").iter_mut().for_each(volume_defaults);
    for name in CONTAINER_LISTS {
        list_mut(spec, name).iter_mut().for_each(container_defaults);
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always written.
fn copy_service_account(spec: &mut Value) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if name.is_empty() {
        return;
    }
    let name = json!(name);
    spec["serviceAccountName"] = name.clone();
    spec["serviceAccount"] = name;
}

fn container_defaults(container: &mut Value) {
    let policy = if has_latest_tag(text(container, "image")) { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", policy);
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    for port in list_mut(container, "ports") {
        default(port, "protocol", "TCP");
    }
    for variable in list_mut(container, "env") {
        if let Some(source) = existing(variable, "valueFrom") {
            field_reference_defaults(source);
            if let Some(key) = existing(source, "fileKeyRef") {
                default(key, "optional", false);
            }
        }
    }
    for name in PROBES {
        if let Some(probe) = existing(container, name) {
            probe_defaults(probe);
        }
    }
    if let Some(lifecycle) = existing(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(request) = existing(lifecycle, name).and_then(|handler| existing(handler, "httpGet")) {
                request_defaults(request);
            }
        }
    }
}

fn probe_defaults(probe: &mut Value) {
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        if number(probe, field).unwrap_or(0) == 0 {
            probe[field] = json!(value);
        }
    }
    if let Some(request) = existing(probe, "httpGet") {
        request_defaults(request);
    }
    if let Some(grpc) = existing(probe, "grpc")
        && grpc.get("service").is_none_or(Value::is_null)
    {
        grpc["service"] = json!("");
    }
}

fn request_defaults(request: &mut Value) {
    default(request, "path", "/");
    default(request, "scheme", "HTTP");
}

fn field_reference_defaults(source: &mut Value) {
    if let Some(reference) = existing(source, "fieldRef") {
        default(reference, "apiVersion", "v1");
    }
}

fn volume_defaults(volume: &mut Value) {
    if let Some(object) = volume.as_object_mut()
        && object.keys().all(|key| key == "name")
    {
        object.insert("emptyDir".to_owned(), json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = existing(volume, name) {
            default(source, "defaultMode", 420);
        }
    }
    if let Some(path) = existing(volume, "hostPath")
        && path.get("type").is_none_or(Value::is_null)
    {
        path["type"] = json!("");
    }
    if let Some(image) = existing(volume, "image") {
        let policy = if has_latest_tag(text(image, "reference")) { "Always" } else { "IfNotPresent" };
        default(image, "pullPolicy", policy);
    }
    if let Some(downward) = existing(volume, "downwardAPI") {
        list_mut(downward, "items").iter_mut().for_each(field_reference_defaults);
    }
    if let Some(projected) = existing(volume, "projected") {
        list_mut(projected, "sources").iter_mut().for_each(projection_defaults);
    }
    if let Some(claim) = existing(volume, "ephemeral").and_then(|e| existing(e, "volumeClaimTemplate"))
        && let Some(spec) = existing(claim, "spec")
    {
        default(spec, "volumeMode", "Filesystem");
    }
    source_defaults(volume);
}

/// What the sources of volumes get that stand below `holder`, in a pod or in a volume of its own.
pub(crate) fn source_defaults(holder: &mut Value) {
    const TEXTS: [(&str, &str, &str); 9] = [
        ("iscsi", "iscsiInterface", "default"),
        ("rbd", "pool", "rbd"),
        ("rbd", "user", "admin"),
        ("rbd", "keyring", "/etc/ceph/keyring"),
        ("azureDisk", "cachingMode", "ReadWrite"),
        ("azureDisk", "kind", "Shared"),
        ("azureDisk", "fsType", "ext4"),
        ("scaleIO", "storageMode", "ThinProvisioned"),
        ("scaleIO", "fsType", "xfs"),
    ];
    for (source, field, value) in TEXTS {
        if let Some(source) = existing(holder, source) {
            default(source, field, value);
        }
    }
    if let Some(disk) = existing(holder, "azureDisk") {
        default(disk, "readOnly", false);
    }
}

fn projection_defaults(source: &mut Value) {
    if let Some(token) = existing(source, "serviceAccountToken") {
        default(token, "expirationSeconds", 3600);
    }
    if let Some(downward) = existing(source, "downwardAPI") {
        list_mut(downward, "items").iter_mut().for_each(field_reference_defaults);
    }
}

/// A limit without a request is the request as well.
fn requests_from_limits(container: &mut Value) {
    let Some(resources) = existing(container, "resources") else {
        return;
    };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    if is_empty(&resources["requests"]) {
        resources["requests"] = json!({});
    }
    let Some(requests) = resources["requests"].as_object_mut() else {
        return;
    };
    for (name, quantity) in limits {
        requests.entry(name).or_insert(quantity);
    }
}

fn host_ports(container: &mut Value) {
    for port in list_mut(container, "ports") {
        if number(port, "hostPort").unwrap_or(0) == 0 {
            port["hostPort"] = port["containerPort"].clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_latest_without_tag_and_digest() {
        assert!(has_latest_tag("nginx"));
        assert!(has_latest_tag("registry:5000/nginx"));
        assert!(has_latest_tag("nginx:latest"));
        assert!(!has_latest_tag("nginx:1.2"));
        assert!(!has_latest_tag("nginx@sha256:0"));
    }

    #[test]
    fn a_volume_without_a_source_is_an_empty_directory() {
        let mut template = json!({"spec": {"volumes": [{"name": "v"}], "containers": []}});

        template_defaults(&mut template);

        assert_eq!(template["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    }
}
