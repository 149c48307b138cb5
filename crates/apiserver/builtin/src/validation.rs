//! An object → what the real server would refuse it for.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::Kind;
use crate::check::Errors;
use crate::family::{
    autoscaling, batch, config, endpoints, event, lease, limits, namespace, network, node, persistent, policy, rbac,
    scheduling, service, storage, webhook, workload,
};
use crate::meta::{NameRule, invalid, validate_metadata, validate_metadata_update};
use crate::names;
use crate::pod;
use crate::value::texts;

/// Everything that is wrong with a new object.
pub fn validate_create(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    create_metadata(kind, object, &mut errors);
    content(kind, object, None, &mut errors);
    errors
}

/// Everything that is wrong with an update of the main resource. Real servers check metadata more than once, and
/// repeat what they find; so does this.
pub fn validate_update(kind: &Kind, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = Path::root();
    let path = root.field("metadata");
    errors.extend(validate_metadata(&new["metadata"], kind.namespaced, NameRule::PathSegment, &path));
    errors.extend(validate_metadata_update(&new["metadata"], &old["metadata"], &path));
    for check in metadata_checks(kind) {
        match check {
            MetadataCheck::Whole => create_metadata(kind, new, &mut errors),
            MetadataCheck::Update => {
                errors.extend(validate_metadata_update(&new["metadata"], &old["metadata"], &path));
                finalizer_names(&new["metadata"], &mut errors);
            }
            MetadataCheck::PlainUpdate => {
                errors.extend(validate_metadata_update(&new["metadata"], &old["metadata"], &path));
            }
        }
    }
    content(kind, new, Some(old), &mut errors);
    errors
}

/// Everything that is wrong with an update of `/status`: metadata, and little else.
pub fn validate_status_update(kind: &Kind, new: &Value, old: &Value) -> Vec<FieldError> {
    let root = Path::root();
    let path = root.field("metadata");
    let mut errors = validate_metadata(&new["metadata"], kind.namespaced, NameRule::PathSegment, &path);
    errors.extend(validate_metadata_update(&new["metadata"], &old["metadata"], &path));
    match kind.kind {
        "Service" => service::validate_status(new, old, &mut errors),
        "Ingress" => network::validate_ingress_status(new, old, &mut errors),
        "Pod" => pod::validate_status(new, old, &mut errors),
        _ => {}
    }
    errors
}

/// A further look at the metadata of an update.
#[derive(Clone, Copy)]
enum MetadataCheck {
    /// As for a new object.
    Whole,
    /// Against the old object, and finalizer names.
    Update,
    /// Against the old object.
    PlainUpdate,
}

fn metadata_checks(kind: &Kind) -> &'static [MetadataCheck] {
    match (kind.group, kind.kind) {
        ("", "ConfigMap" | "Secret" | "Endpoints" | "Pod" | "ServiceAccount" | "PersistentVolumeClaim")
        | ("apps", "ControllerRevision")
        | ("networking.k8s.io", "Ingress" | "IngressClass") => &[MetadataCheck::Update, MetadataCheck::Whole],
        ("", "Namespace" | "Node")
        | ("batch", "Job")
        | ("rbac.authorization.k8s.io", _)
        | ("storage.k8s.io", "StorageClass") => &[MetadataCheck::Whole, MetadataCheck::Update],
        ("", "PersistentVolume") => &[MetadataCheck::Whole, MetadataCheck::Whole],
        ("", "LimitRange")
        | ("discovery.k8s.io" | "admissionregistration.k8s.io", _)
        | ("storage.k8s.io", "VolumeAttachment" | "CSINode") => &[MetadataCheck::Whole],
        ("", "Event") | ("policy", _) => &[],
        ("coordination.k8s.io", _) => &[MetadataCheck::PlainUpdate],
        _ => &[MetadataCheck::Update],
    }
}

/// Kinds of the newest groups leave out the names of finalizers.
fn checks_finalizer_names(kind: &Kind) -> bool {
    !matches!(
        (kind.group, kind.kind),
        ("coordination.k8s.io" | "admissionregistration.k8s.io" | "policy" | "apiextensions.k8s.io", _) | ("", "Event")
    )
}

fn create_metadata(kind: &Kind, object: &Value, errors: &mut Errors) {
    let root = Path::root();
    errors.extend(validate_metadata(&object["metadata"], kind.namespaced, kind.name_rule, &root.field("metadata")));
    if checks_finalizer_names(kind) {
        finalizer_names(&object["metadata"], errors);
    }
}

fn finalizer_names(metadata: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("metadata");
    let path = path.field("finalizers");
    for (index, finalizer) in texts(metadata, "finalizers").into_iter().enumerate() {
        if !is_finalizer_name(finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path.index(index), &json!(finalizer), detail));
        }
    }
}

/// Names without a domain are for Kubernetes itself.
pub(crate) fn is_finalizer_name(name: &str) -> bool {
    name.contains('/') || matches!(name, "kubernetes" | "orphan" | "foregroundDeletion")
}

/// A name in a field: the problems of a DNS subdomain.
pub(crate) fn subdomain(errors: &mut Errors, name: &str, path: &Path<'_>) {
    invalid(errors, path, name, names::dns_subdomain(name));
}

/// What is wrong below the metadata; `old` is there on updates.
fn content(kind: &Kind, object: &Value, old: Option<&Value>, errors: &mut Errors) {
    match kind.kind {
        "ConfigMap" => config::validate_config_map(object, old, errors),
        "Secret" => config::validate_secret(object, old, errors),
        "Namespace" => namespace::validate(object, errors),
        "Service" => service::validate(object, old, errors),
        "Endpoints" => endpoints::validate_endpoints(object, errors),
        "EndpointSlice" => endpoints::validate_slice(object, old, errors),
        "Pod" => pod::validate(object, old, errors),
        "Node" => node::validate(object, old, errors),
        "Event" => event::validate(kind, object, old, errors),
        "PersistentVolumeClaim" => storage::validate_claim(object, old, errors),
        "PersistentVolume" => persistent::validate_volume(object, old, errors),
        "StorageClass" => storage::validate_class(object, old, errors),
        "VolumeAttachment" => storage::validate_attachment(object, old, errors),
        "CSIDriver" => storage::validate_driver(object, old, errors),
        "CSINode" => storage::validate_node(object, old, errors),
        "LimitRange" => limits::validate_limit_range(object, errors),
        "ResourceQuota" => limits::validate_quota(object, old, errors),
        "Deployment" => workload::validate_deployment(object, old, errors),
        "ReplicaSet" => workload::validate_replica_set(object, old, errors),
        "StatefulSet" => workload::validate_stateful_set(object, old, errors),
        "DaemonSet" => workload::validate_daemon_set(object, old, errors),
        "ControllerRevision" => workload::validate_revision(object, old, errors),
        "Job" => batch::validate_job(object, old, errors),
        "CronJob" => batch::validate_cron_job(object, old, errors),
        "Ingress" => network::validate_ingress(object, old, errors),
        "IngressClass" => network::validate_ingress_class(object, old, errors),
        "NetworkPolicy" => network::validate_network_policy(object, old, errors),
        "Role" => rbac::validate_role(object, errors),
        "ClusterRole" => rbac::validate_cluster_role(object, errors),
        "RoleBinding" => rbac::validate_binding(object, old, &["Role", "ClusterRole"], errors),
        "ClusterRoleBinding" => rbac::validate_binding(object, old, &["ClusterRole"], errors),
        "PodDisruptionBudget" => policy::validate(object, errors),
        "Lease" => lease::validate(object, errors),
        "PriorityClass" => scheduling::validate(object, old, errors),
        "HorizontalPodAutoscaler" => autoscaling::validate(object, errors),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => webhook::validate(object, errors),
        _ => {}
    }
}
