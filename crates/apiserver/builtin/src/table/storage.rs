//! Rows of claims, volumes and what provides them.

use serde_json::{Value, json};

use super::network::marked_default;
use super::or;
use crate::quantity::written;
use crate::value::{flag_at, list, text, text_at, texts};

const MODES: &[(&str, &str)] =
    &[("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];

fn access_modes(modes: &[&str]) -> String {
    MODES.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn size(quantity: &Value) -> String {
    written(quantity).unwrap_or_else(|| "0".to_owned())
}

fn phase(object: &Value) -> &str {
    let deleted = !object["metadata"]["deletionTimestamp"].is_null();
    if deleted { "Terminating" } else { text_at(object, "/status/phase") }
}

fn class_of(object: &Value) -> &str {
    let annotated = text(&object["metadata"]["annotations"], "volume.beta.kubernetes.io/storage-class");
    or(annotated, text_at(object, "/spec/storageClassName"))
}

fn or_unset<'a>(spec: &'a Value, field: &str) -> &'a str {
    spec.get(field).and_then(Value::as_str).unwrap_or("<unset>")
}

/// Cells of a `PersistentVolumeClaim`.
pub(crate) fn claim(claim: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &claim["spec"];
    let volume = text(spec, "volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (size(&claim["status"]["capacity"]["storage"]), access_modes(&texts(&claim["status"], "accessModes")))
    };
    vec![
        name,
        json!(phase(claim)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(class_of(claim)),
        json!(or_unset(spec, "volumeAttributesClassName")),
        age,
        json!(or_unset(spec, "volumeMode")),
    ]
}

/// Cells of a `PersistentVolume`.
pub(crate) fn volume(volume: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &volume["spec"];
    let claim = match &spec["claimRef"] {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(claim, "namespace"), text(claim, "name")),
    };
    vec![
        name,
        json!(size(&spec["capacity"]["storage"])),
        json!(access_modes(&texts(spec, "accessModes"))),
        json!(text(spec, "persistentVolumeReclaimPolicy")),
        json!(phase(volume)),
        json!(claim),
        json!(class_of(volume)),
        json!(or_unset(spec, "volumeAttributesClassName")),
        json!(text_at(volume, "/status/reason")),
        age,
        json!(or_unset(spec, "volumeMode")),
    ]
}

/// Cells of a `StorageClass`.
pub(crate) fn class(class: &Value, age: Value) -> Vec<Value> {
    let beta = "storageclass.beta.kubernetes.io/is-default-class";
    let stable = "storageclass.kubernetes.io/is-default-class";
    let annotation = if text(&class["metadata"]["annotations"], beta) == "true" { beta } else { stable };
    vec![
        json!(marked_default(class, annotation)),
        json!(text(class, "provisioner")),
        json!(or(text(class, "reclaimPolicy"), "Delete")),
        json!(or(text(class, "volumeBindingMode"), "Immediate")),
        json!(flag_at(class, "/allowVolumeExpansion")),
        age,
    ]
}

/// Cells of a `VolumeAttachment`.
pub(crate) fn attachment(attachment: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &attachment["spec"];
    vec![
        name,
        json!(text(spec, "attacher")),
        json!(text_at(spec, "/source/persistentVolumeName")),
        json!(text(spec, "nodeName")),
        json!(flag_at(attachment, "/status/attached")),
        age,
    ]
}

/// Cells of a `CSIDriver`.
pub(crate) fn driver(driver: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &driver["spec"];
    let audiences: Vec<&str> = list(spec, "tokenRequests").iter().map(|request| text(request, "audience")).collect();
    let tokens = if spec["tokenRequests"].is_null() { "<unset>".to_owned() } else { audiences.join(",") };
    vec![
        name,
        json!(spec["attachRequired"].as_bool().unwrap_or(true)),
        json!(flag_at(spec, "/podInfoOnMount")),
        json!(flag_at(spec, "/storageCapacity")),
        json!(tokens),
        json!(flag_at(spec, "/requiresRepublish")),
        json!(or(&texts(spec, "volumeLifecycleModes").join(","), "<none>")),
        age,
    ]
}
