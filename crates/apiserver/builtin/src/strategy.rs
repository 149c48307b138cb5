//! An object on its way into the store: defaults, admission, and what clients cannot decide.
//!
//! A create takes these steps, with the name generated and `metadata.uid` and `creationTimestamp` set before the third:
//! [`set_defaults`] → [`admit_create`] → [`prepare_create`] → [`validate_create`](crate::validate_create).
//! An update: [`set_defaults`] → [`admit_update`] → [`prepare_update`] → [`validate_update`](crate::validate_update).
//! Field ownership is worked out after the second step. What [`settle`](crate::service::settle) says of a Service's
//! addresses comes before validation, and ends it.

use serde_json::{Value, json};

use crate::canonical::{canonicalize, canonicalize_as};
use crate::family::{
    autoscaling, batch, config, endpoints, lease, limits, namespace, network, node, rbac, scheduling, service, storage,
    webhook, workload,
};
use crate::kinds::{Generation, Kind};
use crate::pod;
use crate::value::{copy, existing, is_empty, remove};

/// Brings an object into its canonical form and fills in the defaults of its kind.
pub fn set_defaults(kind: &Kind, object: &mut Value) {
    let emptied = emptied_lists(kind, object);
    let no_paths = object["spec"]["rules"] == json!([]) && object["spec"]["defaultBackend"].is_null();
    canonicalize(kind, object);
    for field in emptied {
        object[field] = json!([]);
    }
    match kind.kind {
        "Secret" => {
            // The conversion from the wire's form, which knows `stringData`, to the stored one.
            config::merge_string_data(object);
            config::secret_defaults(object);
        }
        "Namespace" => namespace::defaults(object),
        // It will be refused, and shown as it was given.
        "Ingress" if no_paths => object["spec"]["rules"] = json!([]),
        "Service" => service::defaults(object),
        "Endpoints" => endpoints::endpoints_defaults(object),
        "EndpointSlice" => endpoints::slice_defaults(object),
        "Pod" => {
            pod::pod_defaults(object);
            pod_addresses(object);
        }
        "Node" => node::defaults(object),
        "PersistentVolumeClaim" => storage::claim_defaults(object),
        "PersistentVolume" => storage::volume_defaults(object),
        "StorageClass" => storage::class_defaults(object),
        "CSIDriver" => storage::driver_defaults(object),
        "LimitRange" => limits::limit_range_defaults(object),
        "Deployment" => workload::deployment_defaults(object),
        "ReplicaSet" => workload::replica_set_defaults(object),
        "StatefulSet" => workload::stateful_set_defaults(object),
        "DaemonSet" => workload::daemon_set_defaults(object),
        "Job" => batch::job_defaults(object),
        "CronJob" => batch::cron_job_defaults(object),
        "IngressClass" => network::ingress_class_defaults(object),
        "NetworkPolicy" => network::network_policy_defaults(object),
        "RoleBinding" | "ClusterRoleBinding" => rbac::binding_defaults(object),
        "PriorityClass" => scheduling::defaults(object),
        "HorizontalPodAutoscaler" => autoscaling::defaults(object),
        "ValidatingWebhookConfiguration" => webhook::defaults(object, false),
        "MutatingWebhookConfiguration" => webhook::defaults(object, true),
        _ => {}
    }
}

/// Lists that a client empties: they are its own from then on, although nothing is stored.
fn emptied_lists(kind: &Kind, object: &Value) -> Vec<&'static str> {
    let lists: &[&str] = match kind.kind {
        "Role" | "ClusterRole" => &["rules"],
        "EndpointSlice" => &["endpoints", "ports"],
        _ => &[],
    };
    lists.iter().copied().filter(|field| object[*field] == json!([])).collect()
}

/// `status.podIP` is the first of `status.podIPs`; where they differ, the older field is right.
fn pod_addresses(object: &mut Value) {
    let Some(status) = existing(object, "status") else { return };
    let (address, first) = (status["podIP"].clone(), status["podIPs"][0]["ip"].clone());
    if is_empty(&address) && !is_empty(&first) {
        status["podIP"] = first;
    } else if !is_empty(&address) && address != first {
        status["podIPs"] = json!([{"ip": address}]);
    }
}

/// Adds what the admission plugins add that a real server runs by default.
pub fn admit_create(kind: &Kind, object: &mut Value) {
    match kind.kind {
        "Pod" => pod::admit_create(object),
        "Node" => node::admit_create(object),
        "PersistentVolumeClaim" => storage::protect(object, "kubernetes.io/pvc-protection"),
        "PersistentVolume" => storage::protect(object, "kubernetes.io/pv-protection"),
        _ => {}
    }
}

/// The same for an update.
pub fn admit_update(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.kind == "Pod" {
        pod::admit_update(new, old);
    }
}

/// Resets what the server decides about a new object: status, generation, and fields that are only for writing.
pub fn prepare_create(kind: &Kind, object: &mut Value) {
    if !kind.namespaced
        && let Some(metadata) = existing(object, "metadata")
    {
        remove(metadata, "namespace");
    }
    if kind.status && kind.kind != "Node" {
        reset_status(kind, object);
    }
    drop_disabled(kind, object);
    match kind.kind {
        "Secret" => config::merge_string_data(object),
        "Namespace" => namespace::prepare_create(object),
        "Service" => service::prepare_create(object),
        "Pod" => pod::prepare_create(object),
        "PersistentVolumeClaim" => {
            object["status"] = json!({"phase": "Pending"});
            storage::align_sources(object, None);
        }
        "PersistentVolume" => storage::prepare_volume(object),
        "DaemonSet" => workload::prepare_daemon_set(object),
        "Role" | "ClusterRole" | "EndpointSlice" => canonicalize(kind, object),
        "Lease" => lease::drop_disabled(object),
        "Job" => batch::prepare_job(object),
        "LimitRange" => limits::name_range(object),
        _ => {}
    }
    let first = match kind.generation {
        // What a client gives to a kind that keeps no generation stays.
        Generation::None => return,
        Generation::Tracked { first: 0, .. } => None,
        Generation::Tracked { first, .. } => Some(first),
    };
    set_generation(object, first);
}

/// Restores what an update of the main resource cannot change, and counts the generation.
pub fn prepare_update(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.status {
        copy(new, old, "status");
    }
    drop_disabled(kind, new);
    match kind.kind {
        "Secret" => {
            config::merge_string_data(new);
            if is_empty(&new["type"]) {
                copy(new, old, "type");
            }
        }
        "Namespace" => {
            if let Some(spec) = existing(new, "spec") {
                copy(spec, &old["spec"], "finalizers");
            }
        }
        "Service" => service::prepare_update(new, old),
        "DaemonSet" => workload::update_daemon_set(new, old),
        "Role" | "ClusterRole" | "EndpointSlice" => canonicalize(kind, new),
        "Lease" => lease::drop_disabled(new),
        "PersistentVolumeClaim" => storage::align_sources(new, Some(old)),
        _ => {}
    }
    count_generation(kind, new, old);
}

/// Takes out the fields of features that a real server has off by default.
fn drop_disabled(kind: &Kind, object: &mut Value) {
    let spec = match kind.kind {
        "Pod" => object.pointer_mut("/spec"),
        "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" | "Job" => object.pointer_mut("/spec/template/spec"),
        "CronJob" => object.pointer_mut("/spec/jobTemplate/spec/template/spec"),
        _ => None,
    };
    if let Some(spec) = spec {
        pod::drop_disabled(spec);
    }
    match kind.kind {
        "StatefulSet" => workload::drop_disabled(object),
        "EndpointSlice" => endpoints::drop_topology(object),
        "PersistentVolumeClaim" => storage::drop_foreign_source(object),
        "ServiceAccount" => config::keep_secret_names(object),
        _ => {}
    }
}

/// Restores what an update of `/status` cannot change: everything but the status and parts of the metadata.
pub fn prepare_status_update(kind: &Kind, new: &mut Value, old: &Value) {
    copy(new, old, "spec");
    let kept: &[&str] = match kind.kind {
        "Pod" => &["deletionTimestamp", "ownerReferences"],
        "Deployment" => &["labels"],
        "VolumeAttachment" | "CustomResourceDefinition" => {
            &["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"]
        }
        _ => &[],
    };
    if let Some(metadata) = existing(new, "metadata") {
        for field in kept {
            copy(metadata, &old["metadata"], field);
        }
    }
    if kind.kind == "Pod" {
        pod::keep_quality_class(new, old);
    }
    let generation = old.pointer("/metadata/generation").and_then(Value::as_i64);
    set_generation(new, generation);
}

/// The generation that an update of the main resource gives.
fn count_generation(kind: &Kind, new: &mut Value, old: &Value) {
    let there = old.pointer("/metadata/generation").and_then(Value::as_i64);
    let Generation::Tracked { fields, .. } = kind.generation else {
        set_generation(new, there);
        return;
    };
    let part = |object: &Value, pointer: &str| object.pointer(pointer).filter(|value| !is_empty(value)).cloned();
    let changed = fields.iter().any(|pointer| part(new, pointer) != part(old, pointer));
    set_generation(new, if changed { Some(there.unwrap_or(0) + 1) } else { there });
}

fn set_generation(object: &mut Value, generation: Option<i64>) {
    let Some(metadata) = existing(object, "metadata") else {
        return;
    };
    match generation {
        Some(generation) => metadata["generation"] = json!(generation),
        None => {
            remove(metadata, "generation");
        }
    }
}

/// The status of an object that nothing has happened to yet.
fn reset_status(kind: &Kind, object: &mut Value) {
    let mut empty = json!({});
    if kind.kind != "CustomResourceDefinition" {
        canonicalize_as(kind.definition, &mut empty);
    }
    copy(object, &empty, "status");
}
