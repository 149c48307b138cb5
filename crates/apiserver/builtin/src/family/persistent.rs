//! `PersistentVolume` → what is wrong with its access, capacity and source.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::storage::{VOLUME_MODES, access_modes, driver_name};
use crate::check::{Errors, one_of, required};
use crate::pod::{validate_node_selector, validate_volume_kind};
use crate::quantity::{Quantity, written};
use crate::validation::subdomain;
use crate::value::{entries, is_empty, text};

/// Kinds of sources in the order in which they are looked at, and what a second one is called in errors.
const SOURCES: &[(&str, &str)] = &[
    ("hostPath", "hostPath"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("nfs", "nfs"),
    ("rbd", "rbd"),
    ("quobyte", "quobyte"),
    ("cephfs", "cephFS"),
    ("iscsi", "iscsi"),
    ("cinder", "cinder"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("scaleIO", "scaleIO"),
    ("local", "local"),
    ("storageos", "storageos"),
    ("csi", "csi"),
];

/// Access, capacity and source of a volume; the source never changes.
pub(crate) fn validate_volume(volume: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &volume["spec"];
    required(errors, spec, "accessModes", &path);
    access_modes(spec, &path, errors);
    validate_capacity(spec, &path.field("capacity"), errors);
    one_of(errors, spec, "persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], &path);
    validate_nodes(&spec["nodeAffinity"], &path.field("nodeAffinity"), errors);
    validate_sources(spec, &path, errors);
    if is_root(text(&spec["hostPath"], "path")) && text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.field("persistentVolumeReclaimPolicy"), detail));
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        subdomain(errors, class, &path.field("storageClassName"));
    }
    one_of(errors, spec, "volumeMode", VOLUME_MODES, &path);
    validate_attributes(spec, &path, errors);
    if let Some(old) = old
        && source(spec) != source(&old["spec"])
    {
        let detail = "spec.persistentvolumesource is immutable after creation\n";
        errors.push(FieldError::forbidden(&path.field("persistentvolumesource"), detail));
    }
}

/// Only an amount of storage, and some.
fn validate_capacity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let capacity = &spec["capacity"];
    if is_empty(capacity) {
        errors.push(FieldError::required(path, ""));
    }
    if capacity.get("storage").is_none() || entries(capacity).count() > 1 {
        errors.push(FieldError::not_supported(path, capacity, &["storage"]));
    }
    for (name, value) in entries(capacity) {
        let Some(amount) = Quantity::from_value(value) else { continue };
        let path = path.key(name);
        if amount.is_negative() {
            let whole = i64::try_from(amount.rounded_up()).unwrap_or(i64::MIN);
            errors.push(FieldError::invalid(&path, &json!(whole), "must be a valid resource quantity"));
        }
        if amount.is_negative() || amount.is_zero() {
            errors.push(FieldError::invalid(&path, &json!(written(value)), "must be greater than zero"));
        }
    }
}

fn validate_nodes(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    if affinity.is_null() {
        return;
    }
    if affinity["required"].is_null() {
        errors.push(FieldError::required(&path.field("required"), "must specify required node constraints"));
    } else {
        validate_node_selector(&affinity["required"], &path.field("required"), errors);
    }
}

fn source(spec: &Value) -> Vec<(&str, &Value)> {
    let given = SOURCES.iter().map(|(name, _)| (*name, &spec[*name]));
    given.filter(|(_, value)| !value.is_null()).collect()
}

/// One source; a second one is refused without a look at it, but for `flexVolume`.
fn validate_sources(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut any = false;
    for (name, shown) in SOURCES.iter().filter(|(name, _)| !spec[*name].is_null()) {
        if any && *name != "flexVolume" {
            errors.push(FieldError::forbidden(&path.field(shown), "may not specify more than 1 volume type"));
            continue;
        }
        any = true;
        let source = &spec[*name];
        match *name {
            "gcePersistentDisk" => validate_volume_kind(name, source, &path.field("persistentDisk"), errors),
            "csi" => validate_csi(source, &path.field("csi"), errors),
            _ => validate_volume_kind(name, source, &path.field(name), errors),
        }
        match *name {
            "azureFile" if source["secretNamespace"] == json!("") => {
                errors.push(FieldError::required(&path.field("azureFile").field("secretNamespace"), ""));
            }
            "cinder" | "storageos" if !source["secretRef"].is_null() => {
                required(errors, &source["secretRef"], "namespace", &path.field(name).field("secretRef"));
            }
            "local" if spec["nodeAffinity"].is_null() => {
                errors.push(FieldError::required(&path.field("nodeAffinity"), "Local volume requires node affinity"));
            }
            _ => {}
        }
    }
    if !any {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn validate_csi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    driver_name(errors, text(source, "driver"), &path.field("driver"));
    required(errors, source, "volumeHandle", path);
    for field in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        let secret = &source[field];
        if secret.is_null() {
            continue;
        }
        let path = path.field(field);
        for part in ["name", "namespace"] {
            if required(errors, secret, part, &path) {
                subdomain(errors, text(secret, part), &path.field(part));
            }
        }
    }
}

/// Only drivers know attributes.
fn validate_attributes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(class) = spec["volumeAttributesClassName"].as_str() else {
        return;
    };
    if class.is_empty() {
        let detail = "an empty string is disallowed";
        errors.push(FieldError::required(&path.field("volumeAttributesClassName"), detail));
    } else {
        subdomain(errors, class, &path.field("volumeAttributesClassName"));
    }
    if spec["csi"].is_null() {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&path.field("csi"), detail));
    }
}

fn is_root(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_source_is_the_one_that_is_looked_at_later() {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "volumeMode": "Filesystem",
            "awsElasticBlockStore": {}, "hostPath": {"path": "/a"},
        });
        let mut errors = Errors::new();

        validate_volume(&json!({"spec": spec}), None, &mut errors);

        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["spec.awsElasticBlockStore"]);
    }
}
