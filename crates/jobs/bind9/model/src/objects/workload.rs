//! What holds for a server → its Deployment, or its `StatefulSet` where each pod has a disk.

use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::kinds::server::StorageConfig;
use crate::names;
use crate::objects::{ObjectSet, metadata, pod, selector};

/// What runs the pods of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A Deployment whose pods keep zones as long as they live.
    Transient,
    /// A Deployment whose pod keeps zones on a claim that is there.
    OneDisk(String),
    /// A `StatefulSet` that makes a disk for each pod.
    DiskForEach,
}

/// What runs the pods of a server that keeps zones like this.
pub fn workload_of(storage: &StorageConfig) -> Workload {
    let claim = storage.persistent_volume_claim.as_ref();
    match (storage.storage_type.as_deref(), claim) {
        (Some("persistentVolumeClaim"), Some(claim)) => {
            claim.claim_name.clone().map_or(Workload::DiskForEach, Workload::OneDisk)
        }
        _ => Workload::Transient,
    }
}

impl Workload {
    /// Its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Transient | Self::OneDisk(_) => "Deployment",
            Self::DiskForEach => "StatefulSet",
        }
    }
}

pub(crate) fn workload(set: &ObjectSet<'_>) -> Value {
    let name = set.instance.name_any();
    let workload = workload_of(&set.settings.storage);
    let selector = set.selector.clone().unwrap_or_else(|| selector(&name));
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": workload.kind(), "metadata": metadata(set, &name),
        "spec": {"replicas": set.instance.replicas(), "selector": {"matchLabels": selector}, "template": pod::template(set)},
    });
    match workload {
        // A pod with all zones is there before the one before it goes.
        Workload::Transient => {
            object["spec"]["strategy"] =
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        }
        // Two pods cannot have one disk.
        Workload::OneDisk(_) => object["spec"]["strategy"] = json!({"type": "Recreate"}),
        Workload::DiskForEach => {
            object["spec"]["serviceName"] = json!(names::control_service(&name));
            object["spec"]["podManagementPolicy"] = json!("Parallel");
            object["spec"]["volumeClaimTemplates"] = json!([claim(&set.settings.storage)]);
        }
    }
    object
}

fn claim(storage: &StorageConfig) -> Value {
    let claim = storage.persistent_volume_claim.clone().unwrap_or_default();
    let modes = claim.access_modes.unwrap_or_else(|| vec!["ReadWriteOnce".to_owned()]);
    let size = claim.size.unwrap_or_else(|| "1Gi".to_owned());
    let mut spec = json!({"accessModes": modes, "resources": {"requests": {"storage": size}}});
    if let Some(class) = claim.storage_class_name {
        spec["storageClassName"] = json!(class);
    }
    json!({"metadata": {"name": "cache"}, "spec": spec})
}
