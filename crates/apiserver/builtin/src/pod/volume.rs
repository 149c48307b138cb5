//! Volumes of a pod → what is wrong with them, and those that can be mounted.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::projected::{validate_downward, validate_items, validate_projected};
use super::setting::Whole;
use crate::check::{Errors, one_of, required};
use crate::family::storage::{driver_name, validate_claim_template};
use crate::meta::invalid;
use crate::names;
use crate::paths::{descending, file_mode, no_backsteps};
use crate::quantity::Quantity;
use crate::validation::subdomain;
use crate::value::{entries, is_empty, list, number, text};

/// The volumes that are sound: others cannot be mounted.
pub(super) fn validate_volumes<'a>(
    spec: &'a Value,
    whole: Whole<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<&'a Value> {
    let mut sound: Vec<&Value> = Vec::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let before = errors.len();
        validate_source(volume, whole, &path, errors);
        let name = text(volume, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        } else {
            invalid(errors, &path.field("name"), name, names::dns_label(name));
        }
        if sound.iter().any(|known| text(known, "name") == name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        }
        if errors.len() == before {
            sound.push(volume);
        }
        claimed_twice(spec, volume, whole, &path, errors);
    }
    sound
}

/// A claim that the pod itself makes cannot be mounted by its name.
fn claimed_twice(spec: &Value, volume: &Value, whole: Whole<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Whole::Pod(pod) = whole else { return };
    let claim = text(&volume["persistentVolumeClaim"], "claimName");
    let made = |other: &Value| !other["ephemeral"].is_null() && format!("{pod}-{}", text(other, "name")) == claim;
    if !pod.is_empty() && list(spec, "volumes").iter().any(made) {
        let path = path.field("persistentVolumeClaim");
        let detail = "must not reference a PVC that gets created for an ephemeral volume";
        errors.push(FieldError::invalid(&path.field("claimName"), &json!(claim), detail));
    }
}

/// Kinds of volumes in the order in which they are looked at, and what a second one is called in errors.
const SOURCES: &[(&str, &str)] = &[
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    // The real server misspells this one.
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

fn validate_source(volume: &Value, whole: Whole<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut given = SOURCES.iter().filter(|(field, _)| !volume[*field].is_null());
    let Some((first, _)) = given.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    let name = text(volume, "name");
    let source = &volume[*first];
    match *first {
        "ephemeral" => validate_ephemeral(source, name, whole, path, errors),
        "gcePersistentDisk" => validate_kind(first, source, &path.field("persistentDisk"), errors),
        "image" => {
            if whole != Whole::Template {
                required(errors, source, "reference", &path.field("image"));
            }
            let policies = &["Always", "IfNotPresent", "Never"];
            one_of(errors, source, "pullPolicy", policies, &path.field("image"));
        }
        _ => validate_kind(first, source, &path.field(first), errors),
    }
    for (_, shown) in given {
        errors.push(FieldError::forbidden(&path.field(shown), "may not specify more than 1 volume type"));
    }
}

/// Fields that must be there, for the kinds that need no more.
fn required_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "gitRepo" => &["repository"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "portworxVolume" | "cinder" => &["volumeID"],
        "local" => &["path"],
        "secret" => &["secretName"],
        "configMap" => &["name"],
        "nfs" => &["server", "path"],
        "iscsi" => &["targetPortal", "iqn"],
        "glusterfs" => &["endpoints", "path"],
        "persistentVolumeClaim" => &["claimName"],
        "rbd" => &["monitors", "image"],
        "cephfs" => &["monitors"],
        "flexVolume" => &["driver"],
        "azureFile" => &["secretName", "shareName"],
        "vsphereVolume" => &["volumePath"],
        "photonPersistentDisk" => &["pdID"],
        "azureDisk" => &["diskName", "diskURI"],
        "storageos" => &["volumeName"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        _ => &[],
    }
}

/// What is wrong with a source of this kind, in a pod or in a volume of its own.
pub(crate) fn validate_kind(kind: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in required_fields(kind) {
        required(errors, source, field, path);
    }
    match kind {
        "emptyDir" => validate_directory(source, path, errors),
        "hostPath" => validate_host_path(source, path, errors),
        "gitRepo" => descending(errors, text(source, "directory"), &path.field("directory")),
        "gcePersistentDisk" | "awsElasticBlockStore" => validate_partition(source, path, errors),
        "secret" | "configMap" => {
            file_mode(errors, source, "defaultMode", path);
            validate_items(source, path, errors);
        }
        "nfs" => {
            let target = text(source, "path");
            if !target.starts_with('/') {
                errors.push(FieldError::invalid(&path.field("path"), &json!(target), "must be an absolute path"));
            }
        }
        "iscsi" => validate_iscsi(source, path, errors),
        "local" => no_backsteps(errors, text(source, "path"), &path.field("path")),
        "flocker" => validate_flocker(source, path, errors),
        "quobyte" => validate_quobyte(source, path, errors),
        "cinder" => required_secret(source, path, errors),
        "storageos" => {
            for field in ["volumeName", "volumeNamespace"] {
                let name = text(source, field);
                let problems = if name.is_empty() { Vec::new() } else { names::dns_label(name) };
                invalid(errors, &path.field(field), name, problems);
            }
            required_secret(source, path, errors);
        }
        "azureDisk" => validate_azure_disk(source, path, errors),
        "fc" => validate_fibre_channel(source, path, errors),
        "flexVolume" => validate_options(source, path, errors),
        "downwardAPI" => validate_downward(source, path, errors),
        "projected" => validate_projected(source, path, errors),
        "csi" => validate_csi(source, path, errors),
        _ => {}
    }
}

fn validate_directory(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if Quantity::from_value(&source["sizeLimit"]).is_some_and(|size| size.is_negative()) {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&path.field("sizeLimit"), detail));
    }
}

/// Kinds of files on the host.
const FILE_KINDS: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

fn validate_host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !required(errors, source, "path", path) {
        return;
    }
    no_backsteps(errors, text(source, "path"), &path.field("path"));
    let kind = text(source, "type");
    if !FILE_KINDS.contains(&kind) {
        errors.push(FieldError::not_supported(&path.field("type"), &json!(kind), FILE_KINDS));
    }
}

fn validate_partition(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if number(source, "partition").is_some_and(|partition| !(0..=255).contains(&partition)) {
        let detail = "must be between 1 and 255, inclusive";
        errors.push(FieldError::invalid(&path.field("partition"), &source["partition"], detail));
    }
}

fn validate_unit(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if number(source, "lun").is_some_and(|unit| !(0..=255).contains(&unit)) {
        let detail = "must be between 0 and 255, inclusive";
        errors.push(FieldError::invalid(&path.field("lun"), &source["lun"], detail));
    }
}

fn validate_iscsi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let known = |name: &str| ["iqn", "eui", "naa"].iter().any(|prefix| name.starts_with(prefix));
    for (field, shown) in [("iqn", "iqn"), ("initiatorName", "initiatorname")] {
        let name = text(source, field);
        let given = if field == "iqn" { !name.is_empty() } else { !source[field].is_null() };
        if given && !known(name) {
            let detail = "must be valid format starting with iqn, eui, or naa";
            errors.push(FieldError::invalid(&path.field(shown), &json!(name), detail));
        }
    }
    validate_unit(source, path, errors);
    let secured = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|field| source[*field] == json!(true));
    if secured && source["secretRef"].is_null() {
        errors.push(FieldError::required(&path.field("secretRef"), ""));
    }
}

fn validate_flocker(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(source, "datasetName");
    match (name.is_empty(), text(source, "datasetUUID").is_empty()) {
        (true, true) => errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required")),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(FieldError::invalid(path, &json!("resource"), detail));
        }
        _ => {}
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&path.field("datasetName"), &json!(name), "must not contain '/'"));
    }
}

fn validate_quobyte(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    let registry = text(source, "registry");
    if registry.is_empty() {
        errors.push(FieldError::required(&path.field("registry"), detail));
    } else if text(source, "tenant").len() > 64 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.field("tenant"), detail));
    } else {
        for _ in registry.split(',').filter(|pair| pair.matches(':').count() != 1 && !pair.contains("]:")) {
            errors.push(FieldError::invalid(&path.field("registry"), &json!(registry), detail));
        }
    }
    required(errors, source, "volume", path);
}

/// A secret that is named at all has a name.
fn required_secret(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !source["secretRef"].is_null() {
        required(errors, &source["secretRef"], "name", &path.field("secretRef"));
    }
}

fn validate_azure_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(errors, source, "cachingMode", &["None", "ReadOnly", "ReadWrite"], path);
    one_of(errors, source, "kind", &["Dedicated", "Managed", "Shared"], path);
    let (prefix, form) = match source["kind"].as_str() {
        None => return,
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
    };
    let address = text(source, "diskURI");
    if !address.starts_with(prefix) {
        errors.push(FieldError::not_supported(&path.field("diskURI"), &json!(address), &[form]));
    }
}

fn validate_fibre_channel(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("targetWWNs");
    let (names, ids) = (!is_empty(&source["targetWWNs"]), !is_empty(&source["wwids"]));
    match (names, ids) {
        (false, false) => {
            errors.push(FieldError::required(&at, "must specify either targetWWNs or wwids, but not both"));
        }
        (true, true) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(FieldError::invalid(&at, &source["targetWWNs"], detail));
        }
        _ => {}
    }
    if names && source["lun"].is_null() {
        errors.push(FieldError::required(&path.field("lun"), "lun is required if targetWWNs is specified"));
    } else if names {
        validate_unit(source, path, errors);
    }
}

fn validate_options(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (key, _) in entries(&source["options"]) {
        let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let path = path.field("options");
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&path.key(key), &json!(key), detail));
        }
    }
}

fn validate_csi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    driver_name(errors, text(source, "driver"), &path.field("driver"));
    let secret = &source["nodePublishSecretRef"];
    if secret.is_null() {
        return;
    }
    if required(errors, secret, "name", &path.field("nodePublishSecretRef")) {
        subdomain(errors, text(secret, "name"), &path.field("name"));
    }
}

fn validate_ephemeral(source: &Value, name: &str, whole: Whole<'_>, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("ephemeral");
    let at = at.field("volumeClaimTemplate");
    let template = &source["volumeClaimTemplate"];
    if template.is_null() {
        errors.push(FieldError::required(&at, ""));
    } else {
        validate_claim_template(template, &at, errors);
    }
    if let Whole::Pod(pod) = whole
        && !pod.is_empty()
        && !name.is_empty()
    {
        let claim = format!("{pod}-{name}");
        let problems = names::dns_subdomain(&claim).into_iter().map(|why| format!("PVC name {claim:?}: {why}"));
        invalid(errors, &path.field("name"), name, problems.collect());
    }
}
