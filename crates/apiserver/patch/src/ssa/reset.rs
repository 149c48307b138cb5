//! The fields that an endpoint does not let through, so that nobody comes to own them there: the main one leaves
//! `status` alone, the status one leaves `spec` alone and, for some kinds, `metadata`.

use std::sync::LazyLock;

use crate::ssa::set::FieldSet;

static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["status"]]));
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["spec"]]));
static SPEC_AND_STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["status"]]));
static METADATA_AND_SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[&["metadata"], &["spec"]]));
static DEPLOYMENT_STATUS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["metadata", "labels"]]));
static POD_STATUS: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
});
static REQUEST_STATUS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["status", "conditions"]]));
static REQUEST_APPROVAL: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_fields(&[&["spec"], &["status", "certificate"]]));

/// For endpoints that let everything through, such as the main one of a kind without a status subresource.
pub fn nothing() -> &'static FieldSet {
    &NOTHING
}

/// For the main endpoint of a custom kind with a status subresource.
pub fn custom_main() -> &'static FieldSet {
    &STATUS
}

/// For the status endpoint of a custom kind.
pub fn custom_status() -> &'static FieldSet {
    &METADATA_AND_SPEC
}

/// For an endpoint of a built-in kind; `group` is empty for the core group, `subresource` for the main endpoint.
pub fn built_in(group: &str, kind: &str, subresource: &str) -> &'static FieldSet {
    if !has_status(group, kind) {
        return &NOTHING;
    }
    match (kind, subresource) {
        ("CertificateSigningRequest", "") => &SPEC_AND_STATUS,
        ("CertificateSigningRequest", "status") => &REQUEST_STATUS,
        ("CertificateSigningRequest", "approval") => &REQUEST_APPROVAL,
        ("ServiceCIDR", "") => &NOTHING,
        ("Namespace", "finalize") | (_, "") => &STATUS,
        ("Deployment", "status") => &DEPLOYMENT_STATUS,
        ("Pod", "status") => &POD_STATUS,
        (
            "APIService"
            | "CustomResourceDefinition"
            | "FlowSchema"
            | "PriorityLevelConfiguration"
            | "ResourceClaim"
            | "ServiceCIDR"
            | "ValidatingAdmissionPolicy"
            | "VolumeAttachment",
            "status",
        ) => &METADATA_AND_SPEC,
        (_, "status") => &SPEC,
        _ => &NOTHING,
    }
}

fn has_status(group: &str, kind: &str) -> bool {
    let kinds: &[&str] = match group {
        "" => &[
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "ReplicationController",
            "ResourceQuota",
            "Service",
        ],
        "admissionregistration.k8s.io" => &["ValidatingAdmissionPolicy"],
        "apiextensions.k8s.io" => &["CustomResourceDefinition"],
        "apiregistration.k8s.io" => &["APIService"],
        "apps" => &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
        "autoscaling" => &["HorizontalPodAutoscaler"],
        "batch" => &["CronJob", "Job"],
        "certificates.k8s.io" => &["CertificateSigningRequest"],
        "flowcontrol.apiserver.k8s.io" => &["FlowSchema", "PriorityLevelConfiguration"],
        "networking.k8s.io" => &["Ingress", "ServiceCIDR"],
        "policy" => &["PodDisruptionBudget"],
        "resource.k8s.io" => &["ResourceClaim"],
        "storage.k8s.io" => &["VolumeAttachment"],
        _ => &[],
    };
    kinds.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_endpoint_leaves_the_status_alone() {
        assert_eq!(built_in("apps", "Deployment", "").to_string(), ".status");
        assert_eq!(built_in("", "ConfigMap", "").to_string(), "");
        assert_eq!(custom_main().to_string(), ".status");
    }

    #[test]
    fn status_endpoints_leave_the_rest_alone() {
        assert_eq!(built_in("", "Service", "status").to_string(), ".spec");
        assert_eq!(built_in("apps", "Deployment", "status").to_string(), ".spec\n.metadata.labels");
        assert_eq!(custom_status().to_string(), ".metadata\n.spec");
        assert_eq!(built_in("apps", "Deployment", "scale").to_string(), "");
    }
}
