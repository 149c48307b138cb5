//! Claims, volumes and what provides them.

use std::collections::{BTreeMap, BTreeSet};

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, label_selector, one_of, ordered, required, same, showing};
use crate::meta::{invalid, validate_annotations, validate_labels};
use crate::names;
use crate::quantity::{Quantity, written};
use crate::validation::subdomain;
use crate::value::{default, entries, existing, is_empty, list, object, text, text_at, texts};

/// Mode and phase of a claim.
pub(crate) fn claim_defaults(claim: &mut Value) {
    if let Some(spec) = existing(claim, "spec") {
        default(spec, "volumeMode", "Filesystem");
    }
    if let Some(status) = object(claim, "status") {
        default(status, "phase", "Pending");
    }
}

/// A claim's source of data stands in two fields, an older one that knows fewer kinds and a newer one.
/// Kinds that the older one never knew are dropped there.
pub(crate) fn align_sources(claim: &mut Value, old: Option<&Value>) {
    let Some(spec) = existing(claim, "spec") else { return };
    let used = old.is_some_and(|old| ["dataSource", "dataSourceRef"].iter().any(|f| !old["spec"][*f].is_null()));
    let source = &spec["dataSource"];
    let known = matches!(
        (text(source, "apiGroup"), text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    if !used && !known && spec.get("dataSourceRef").is_none_or(Value::is_null) {
        crate::value::remove(spec, "dataSource");
    }
    let field = |name: &str| spec.get(name).cloned().unwrap_or_default();
    let (older, newer) = (field("dataSource"), field("dataSourceRef"));
    if newer.is_null() && !older.is_null() {
        spec["dataSourceRef"] = older;
    } else if older.is_null() && !newer.is_null() && is_empty(&newer["namespace"]) {
        spec["dataSource"] = newer;
    }
}

/// Sources in other namespaces are a feature that is off.
pub(crate) fn drop_foreign_source(claim: &mut Value) {
    if let Some(spec) = existing(claim, "spec")
        && !is_empty(&spec["dataSourceRef"]["namespace"])
    {
        crate::value::remove(spec, "dataSourceRef");
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
    crate::pod::source_defaults(spec);
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

/// Reclaiming and binding of a `StorageClass`.
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

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// Access, size and class of a claim; afterwards only its size may change, and only once it is bound.
pub(crate) fn validate_claim(claim: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    validate_claim_spec(&claim["spec"], &path, errors);
    let Some(old) = old else { return };
    let bound = text_at(claim, "/status/phase") == "Bound";
    let mut spec = claim["spec"].clone();
    if is_empty(&old["spec"]["volumeName"]) {
        crate::value::copy(&mut spec, &old["spec"], "volumeName");
    }
    if is_empty(&old["spec"]["storageClassName"]) {
        crate::value::copy(&mut spec, &old["spec"], "storageClassName");
    }
    if bound {
        crate::value::copy(&mut spec, &old["spec"], "volumeAttributesClassName");
        if let Some(size) = spec.pointer_mut("/resources/requests/storage") {
            *size = old["spec"]["resources"]["requests"]["storage"].clone();
        }
    }
    if spec != old["spec"] {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims\n";
        errors.push(FieldError::forbidden(&path, detail));
    }
    let size = |claim: &Value| Quantity::from_value(&claim["spec"]["resources"]["requests"]["storage"]);
    let capacity = Quantity::from_value(&old["status"]["capacity"]["storage"]).or_else(|| Quantity::parse("0"));
    if size(claim) < size(old) && size(claim) <= capacity {
        let path = path.field("resources");
        let path = path.field("requests");
        errors.push(FieldError::forbidden(&path.field("storage"), "field can not be less than status.capacity"));
    }
    // The real server names the field without its spec.
    same(errors, &claim["spec"], &old["spec"], "volumeMode", &root);
    kept_attributes(claim, old, errors);
}

/// The attributes of a volume that has any can change, but not go.
fn kept_attributes(claim: &Value, old: &Value, errors: &mut Errors) {
    const FIELD: &str = "volumeAttributesClassName";
    let (new, before) = (&claim["spec"][FIELD], &old["spec"][FIELD]);
    if new == before || old["status"]["currentVolumeAttributesClassName"].is_null() || !is_empty(new) {
        return;
    }
    let to = if new.is_null() { "nil" } else { "empty string" };
    let detail = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
    let root = Path::root();
    errors.push(FieldError::forbidden(&root.field("spec").field(FIELD), detail));
}

/// A claim's spec, also in templates.
pub(crate) fn validate_claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if is_empty(&spec["accessModes"]) {
        errors.push(FieldError::required(&path.field("accessModes"), "at least 1 access mode is required"));
    }
    label_selector(errors, &spec["selector"], &path.field("selector"));
    access_modes(spec, path, errors);
    let size = &spec["resources"]["requests"]["storage"];
    let size_path = path.field("resources");
    let size_path = size_path.key("storage");
    match Quantity::from_value(size) {
        None => errors.push(FieldError::required(&size_path, "")),
        Some(quantity) if quantity.is_zero() || quantity.is_negative() => {
            errors.push(FieldError::invalid(&size_path, &json!(written(size)), "must be greater than zero"));
        }
        Some(_) => {}
    }
    class_name(spec, "storageClassName", path, errors);
    one_of(errors, spec, "volumeMode", VOLUME_MODES, path);
    validate_data_sources(spec, path, errors);
    class_name(spec, "volumeAttributesClassName", path, errors);
}

fn class_name(spec: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let class = text(spec, field);
    if !class.is_empty() {
        subdomain(errors, class, &path.field(field));
    }
}

/// What a claim is filled with.
fn validate_data_sources(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["dataSource", "dataSourceRef"] {
        let source = &spec[field];
        if source.is_null() {
            continue;
        }
        let path = path.field(field);
        required(errors, source, "name", &path);
        required(errors, source, "kind", &path);
        let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&path, &json!(kind), detail));
        } else if !group.is_empty() {
            subdomain(errors, group, &path.field("apiGroup"));
        }
        let namespace = text(source, "namespace");
        if field == "dataSourceRef" && !namespace.is_empty() {
            invalid(errors, &path.field("namespace"), namespace, names::dns_label(namespace));
        }
    }
    let (older, newer) = (&spec["dataSource"], &spec["dataSourceRef"]);
    let same = |field: &str| text(older, field) == text(newer, field);
    let detail = if older.is_null() || newer.is_null() {
        return;
    } else if !is_empty(&newer["namespace"]) {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if ["apiGroup", "kind", "name"].into_iter().all(same) {
        return;
    } else {
        "must match dataSourceRef"
    };
    // The real server shows the path itself as the value, which comes to nothing.
    errors.push(FieldError::invalid(path, &json!({}), detail));
}

/// The claims that a pod's volume makes: labels and annotations, and a spec.
pub(crate) fn validate_claim_template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metadata = &template["metadata"];
    let at = path.field("metadata");
    errors.extend(validate_annotations(&metadata["annotations"], &at.field("annotations")));
    errors.extend(validate_labels(&metadata["labels"], &at.field("labels")));
    for (field, value) in entries(metadata) {
        let known = matches!(field.as_str(), "annotations" | "labels");
        if !known && !is_empty(value) {
            // The real server writes this one by its Go name.
            let field = if field == "uid" { "uID" } else { field };
            errors.push(FieldError::forbidden(&at.field(field), "cannot be set"));
        }
    }
    validate_claim_spec(&template["spec"], &path.field("spec"), errors);
}

/// The name of a storage driver.
pub(crate) fn driver_name(errors: &mut Errors, name: &str, path: &Path<'_>) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name.len() > 63 {
        errors.push(FieldError::too_long(path, 63));
    }
    invalid(errors, path, name, names::dns_subdomain(&name.to_lowercase()));
}

pub(super) fn access_modes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let modes = texts(spec, "accessModes");
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&path.field("accessModes"), &json!(mode), ACCESS_MODES));
    }
    let other = |mode: &&str| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode);
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(other) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&path.field("accessModes"), detail));
    }
}

/// Provisioner, parameters and policies of a `StorageClass`, none of which change.
pub(crate) fn validate_class(class: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let provisioner = text(class, "provisioner");
    if required(errors, class, "provisioner", &root) {
        let path = root.field("provisioner");
        let provisioner = provisioner.to_lowercase();
        invalid(errors, &path, &provisioner, names::qualified_name(&provisioner));
    }
    if class["parameters"].get("").is_some() {
        errors.push(FieldError::invalid(&root.field("parameters"), &json!(""), "field can not be empty."));
    }
    if !text(class, "reclaimPolicy").is_empty() {
        one_of(errors, class, "reclaimPolicy", &["Delete", "Retain"], &root);
    }
    one_of(errors, class, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], &root);
    validate_topologies(class, &root.field("allowedTopologies"), errors);
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            same(errors, class, old, field, &root);
        }
    }
}

/// Where volumes of a class may be: terms that say something, and say it once.
fn validate_topologies(class: &Value, path: &Path<'_>, errors: &mut Errors) {
    // The real server compares with as many empty terms as there are terms.
    let terms = list(class, "allowedTopologies");
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); terms.len()];
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let path = path.field("matchLabelExpressions");
        let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (index, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let path = path.index(index);
            let (key, values) = (text(expression, "key"), texts(expression, "values"));
            if values.is_empty() {
                errors.push(FieldError::required(&path.field("values"), ""));
            }
            let mut once: BTreeSet<&str> = BTreeSet::new();
            for (index, value) in values.into_iter().enumerate() {
                if !once.insert(value) {
                    errors.push(FieldError::duplicate(&path.field("values").index(index), &json!(value)));
                }
            }
            invalid(errors, &path.field("key"), key, names::qualified_name(key));
            if wanted.insert(key, once).is_some() {
                errors.push(FieldError::duplicate(&path.field("key"), &json!(key)));
            }
        }
        for _ in seen.iter().filter(|other| **other == wanted) {
            errors.push(FieldError::duplicate(&path, &json!("")));
        }
        seen.push(wanted);
    }
}

/// Attacher, source and node of an attachment, none of which change.
pub(crate) fn validate_attachment(attachment: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &attachment["spec"];
    if required(errors, spec, "attacher", &path) {
        subdomain(errors, &text(spec, "attacher").to_lowercase(), &path.field("attacher"));
    }
    let source = &spec["source"];
    let by_name = !is_empty(&source["persistentVolumeName"]);
    let inline = !source["inlineVolumeSpec"].is_null();
    if by_name == inline {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(if by_name {
            FieldError::forbidden(&path.field("source"), detail)
        } else {
            FieldError::required(&path.field("source"), detail)
        });
    }
    subdomain(errors, text(spec, "nodeName"), &path.field("nodeName"));
    if let Some(old) = old
        && *spec != old["spec"]
    {
        let source = ordered(&[
            ("PersistentVolumeName", &source["persistentVolumeName"]),
            ("InlineVolumeSpec", &source["inlineVolumeSpec"]),
        ]);
        let mut error = FieldError::invalid(&path, spec, "field is immutable");
        let (attacher, node) = (&spec["attacher"], &spec["nodeName"]);
        error.value = Some(format!("{{\"Attacher\":{attacher},\"Source\":{source},\"NodeName\":{node}}}"));
        errors.push(error);
    }
}

/// Policies of a CSI driver.
pub(crate) fn validate_driver(driver: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &driver["spec"];
    one_of(errors, spec, "fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"], &path);
    let modes = &["Persistent", "Ephemeral"];
    for mode in texts(spec, "volumeLifecycleModes").into_iter().filter(|mode| !modes.contains(mode)) {
        errors.push(FieldError::not_supported(&path.field("volumeLifecycleModes"), &json!(mode), modes));
    }
    let Some(old) = old else { return };
    if spec["attachRequired"] != old["spec"]["attachRequired"] {
        // The real server misspells this field.
        errors.push(FieldError::invalid(
            &path.field("attachedRequired"),
            &spec["attachRequired"],
            "field is immutable",
        ));
    }
    same(errors, spec, &old["spec"], "volumeLifecycleModes", &path);
}

/// Drivers of a CSI node.
pub(crate) fn validate_node(node: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("drivers");
    let mut seen: Vec<&str> = Vec::new();
    for (index, driver) in list(&node["spec"], "drivers").iter().enumerate() {
        let path = path.index(index);
        let name = text(driver, "name");
        required(errors, driver, "name", &path);
        required(errors, driver, "nodeID", &path);
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        }
        seen.push(name);
        let mut keys: Vec<&str> = Vec::new();
        for key in texts(driver, "topologyKeys") {
            if keys.contains(&key) {
                errors.push(FieldError::duplicate(&path, &json!(key)));
            }
            keys.push(key);
        }
    }
    let Some(old) = old else { return };
    for driver in list(&node["spec"], "drivers") {
        let before = list(&old["spec"], "drivers").iter().find(|there| there["name"] == driver["name"]);
        if before.is_some_and(|before| before != driver) {
            let fields = [
                ("Name", &driver["name"]),
                ("NodeID", &driver["nodeID"]),
                ("TopologyKeys", &driver["topologyKeys"]),
                ("Allocatable", &driver["allocatable"]),
            ];
            errors.push(showing(FieldError::invalid(&path, driver, "field is immutable"), &fields));
        }
    }
}
