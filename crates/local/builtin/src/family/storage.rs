//! Claims, volumes and what provides them.

use serde_json::{Value, json};

use crate::value::{default, existing, is_empty, object, text_at};

/// Mode and phase of a claim.
pub(crate) fn claim_defaults(claim: &mut Value) {
    if let Some(spec) = existing(claim, "spec") {
        default(spec, "volumeMode", "Filesystem");
    }
    if let Some(status) = object(claim, "status") {
        default(status, "phase", "Pending");
    }
}

/// Mode, phase and fate of a volume.
pub(crate) fn volume_defaults(volume: &mut Value) {
    if let Some(status) = object(volume, "status") {
        default(status, "phase", "Pending");
    }
    let Some(spec) = existing(volume, "spec") else { return };
    default(spec, "persistentVolumeReclaimPolicy", "Retain");
    default(spec, "volumeMode", "Filesystem");
    if let Some(path) = existing(spec, "hostPath")
        && path.get("type").is_none_or(Value::is_null)
    {
        path["type"] = json!("");
    }
}

/// A new volume is pending since its creation.
pub(crate) fn prepare_volume(volume: &mut Value) {
    let created = text_at(volume, "/metadata/creationTimestamp").to_owned();
    volume["status"] = json!({"phase": "Pending"});
    if !created.is_empty() {
        volume["status"]["lastPhaseTransitionTime"] = json!(created);
    }
}

/// Reclaiming and binding of a StorageClass.
pub(crate) fn class_defaults(class: &mut Value) {
    default(class, "reclaimPolicy", "Delete");
    default(class, "volumeBindingMode", "Immediate");
}

/// Abilities of a CSI driver.
pub(crate) fn driver_defaults(driver: &mut Value) {
    let Some(spec) = existing(driver, "spec") else { return };
    default(spec, "attachRequired", true);
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        default(spec, field, false);
    }
    default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if is_empty(&spec["volumeLifecycleModes"]) {
        spec["volumeLifecycleModes"] = json!(["Persistent"]);
    }
}

/// Claims and volumes in use are protected by a finalizer.
pub(crate) fn protect(object_: &mut Value, finalizer: &str) {
    let Some(metadata) = object(object_, "metadata") else {
        return;
    };
    default(metadata, "finalizers", json!([]));
    if let Some(finalizers) = metadata["finalizers"].as_array_mut()
        && !finalizers.iter().any(|there| there == finalizer)
    {
        finalizers.push(json!(finalizer));
    }
}
