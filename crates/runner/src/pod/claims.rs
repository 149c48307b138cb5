//! A claim → what is to become of it: a volume that is a folder of this machine, or a sentence why there is none.
//!
//! What a cluster's provisioner and binder leave on both objects is left here too, so that whoever reads them finds what they
//! know (`pkg/controller/volume/persistentvolume`).

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::{Value, json};

/// Holds a claim until no pod has it (`pkg/controller/volume/pvcprotection`).
pub const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// By which volumes of the runner are known.
pub const PROVISIONER: &str = "portolan.dev/runner";
/// The annotation that names a volume's provisioner.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// What is to be done about a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// It gets a volume.
    Bind,
    /// It has one of ours.
    Bound,
    /// It is to go, once no pod has it.
    Ends,
    /// It is not for the runner: why.
    Refused(String),
    /// Somebody else has bound it.
    Foreign,
}

/// What is to be done about a claim.
pub fn claim_verdict(claim: &PersistentVolumeClaim) -> ClaimVerdict {
    if claim.metadata.deletion_timestamp.is_some() {
        return ClaimVerdict::Ends;
    }
    let spec = claim.spec.clone().unwrap_or_default();
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    match spec.volume_name.as_deref().filter(|name| !name.is_empty()) {
        Some(volume) if volume == volume_name(claim) && phase == "Bound" => return ClaimVerdict::Bound,
        // The runner was killed between the two writes.
        Some(volume) if volume == volume_name(claim) => return ClaimVerdict::Bind,
        Some(_) if phase == "Bound" => return ClaimVerdict::Foreign,
        Some(volume) => {
            return ClaimVerdict::Refused(format!(
                "the claim names volume {volume:?}, and only claims that name none get a folder here: leave spec.volumeName away"
            ));
        }
        None => {}
    }
    if spec.volume_mode.as_deref() == Some("Block") {
        return ClaimVerdict::Refused("volumes are folders here: volumeMode Block cannot be given".to_owned());
    }
    if spec.selector.is_some() {
        return ClaimVerdict::Refused(
            "the claim selects volumes by label, and volumes are made for claims here: leave spec.selector away"
                .to_owned(),
        );
    }
    ClaimVerdict::Bind
}

/// Whether a claim has a volume.
pub fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// `pvc-UID`, as provisioners name volumes.
pub fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

/// The volume of a claim, whose files are in a folder.
pub fn volume(claim: &PersistentVolumeClaim, folder: &str, node: &str) -> Value {
    let spec = claim.spec.clone().unwrap_or_default();
    let metadata = &claim.metadata;
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": metadata.namespace, "name": metadata.name,
        "uid": metadata.uid,
    });
    let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume_name(claim), "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": storage(claim)}, "accessModes": spec.access_modes, "claimRef": reference,
            "storageClassName": spec.storage_class_name.unwrap_or_default(), "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": folder, "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    })
}

/// What the claim's spec and annotations say once it is bound.
pub fn bound_claim(claim: &PersistentVolumeClaim) -> Value {
    json!({
        "metadata": {
            "uid": claim.metadata.uid,
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
                "volume.kubernetes.io/storage-provisioner": PROVISIONER,
            },
        },
        "spec": {"volumeName": volume_name(claim)},
    })
}

/// The status of a claim that is bound.
pub fn bound_status(claim: &PersistentVolumeClaim) -> Value {
    let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.clone());
    json!({"status": {"phase": "Bound", "accessModes": modes, "capacity": {"storage": storage(claim)}}})
}

/// As much as is asked for. Nothing holds a pod to it but its disk.
fn storage(claim: &PersistentVolumeClaim) -> Value {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    json!(requests.and_then(|requests| requests.get("storage")).map_or("0", |quantity| quantity.0.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(spec: Value, phase: &str) -> PersistentVolumeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "data", "namespace": "harbour", "uid": "u-1"}, "spec": spec,
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    fn plain() -> PersistentVolumeClaim {
        claim(json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}), "Pending")
    }

    #[test]
    fn a_claim_that_names_no_volume_gets_one_of_its_own() {
        assert_eq!(claim_verdict(&plain()), ClaimVerdict::Bind);
        assert_eq!(claim_verdict(&claim(json!({"volumeName": "pvc-u-1"}), "Pending")), ClaimVerdict::Bind);
        assert_eq!(claim_verdict(&claim(json!({"volumeName": "pvc-u-1"}), "Bound")), ClaimVerdict::Bound);
    }

    #[test]
    fn what_cannot_be_a_folder_is_refused_with_what_to_do() {
        for spec in [json!({"volumeName": "mine"}), json!({"volumeMode": "Block"}), json!({"selector": {}})] {
            assert!(matches!(claim_verdict(&claim(spec.clone(), "Pending")), ClaimVerdict::Refused(_)), "{spec}");
        }
        assert_eq!(claim_verdict(&claim(json!({"volumeName": "mine"}), "Bound")), ClaimVerdict::Foreign);
    }

    #[test]
    fn a_claim_that_is_deleted_ends_whatever_it_is() {
        let mut deleted = plain();
        deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();

        assert_eq!(claim_verdict(&deleted), ClaimVerdict::Ends);
    }

    #[test]
    fn volume_and_claim_name_each_other_with_the_size_that_was_asked_for() {
        let volume = volume(&plain(), "/data/claims/harbour/data", "here");

        assert_eq!(volume["metadata"]["name"], "pvc-u-1");
        assert_eq!(volume["spec"]["claimRef"]["uid"], "u-1");
        assert_eq!(volume["spec"]["capacity"]["storage"], "1Gi");
        assert_eq!(volume["spec"]["hostPath"]["path"], "/data/claims/harbour/data");
        assert_eq!(bound_claim(&plain())["spec"]["volumeName"], volume["metadata"]["name"]);
        assert_eq!(bound_status(&plain())["status"]["capacity"]["storage"], "1Gi");
    }
}
