//! Volume mounts and devices of a container → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::setting::Setting;
use crate::check::{Errors, not_found};
use crate::paths::{climbs, descending};
use crate::value::{flag_at, list, text};

/// Names and places of mounts. Some errors name the list, not the mount: so does the real server.
pub(super) fn validate_mounts(setting: &Setting<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    let devices = list(container, "volumeDevices");
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let name = text(mount, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&at.field("name"), ""));
        }
        if setting.volume(name).is_none() {
            errors.push(not_found(&at.field("name"), name));
        }
        let target = text(mount, "mountPath");
        if target.is_empty() {
            errors.push(FieldError::required(&at.field("mountPath"), ""));
        }
        let mut refuse = |field: &str, value: &str, detail: &str| {
            errors.push(FieldError::invalid(&at.field(field), &json!(value), detail));
        };
        if seen.contains(&target) {
            refuse("mountPath", target, "must be unique");
        }
        seen.push(target);
        if devices.iter().any(|device| text(device, "name") == name) {
            refuse("name", name, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|device| text(device, "devicePath") == target) {
            refuse("mountPath", target, "must not already exist as a path in volumeDevices");
        }
        validate_part(mount, path, &at, errors);
        validate_propagation(container, mount, path, errors);
        validate_recursion(mount, &path.field("recursiveReadOnly"), errors);
    }
}

/// The part of a volume that is mounted.
fn validate_part(mount: &Value, list: &Path<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (part, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !part.is_empty() {
        descending(errors, part, &list.field("subPath"));
    }
    if expression.is_empty() {
        return;
    }
    if !part.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.push(FieldError::invalid(&path.field("subPathExpr"), &json!(expression), detail));
    }
    descending(errors, expression, &list.field("subPathExpr"));
}

fn validate_propagation(container: &Value, mount: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(mode) = mount["mountPropagation"].as_str() else {
        return;
    };
    let path = path.field("mountPropagation");
    let supported = &["Bidirectional", "HostToContainer", "None"];
    if !supported.contains(&mode) {
        errors.push(FieldError::not_supported(&path, &json!(mode), supported));
    }
    if mode == "Bidirectional" && !flag_at(container, "/securityContext/privileged") {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

fn validate_recursion(mount: &Value, path: &Path<'_>, errors: &mut Errors) {
    match mount["recursiveReadOnly"].as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !flag_at(mount, "/readOnly") {
                errors.push(FieldError::forbidden(path, "may only be specified when readOnly is true"));
            }
            if mount["mountPropagation"].as_str().is_some_and(|mode| mode != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        Some(other) => {
            let supported = &["Disabled", "Enabled", "IfPossible"];
            errors.push(FieldError::not_supported(path, &json!(other), supported));
        }
    }
}

/// Names and places of block devices.
pub(super) fn validate_devices(setting: &Setting<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mounts = list(container, "volumeMounts");
    let (mut names, mut places): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        if name.is_empty() {
            errors.push(FieldError::required(&at.field("name"), ""));
        }
        let mut refuse = |field: &str, value: &str, detail: &str| {
            errors.push(FieldError::invalid(&at.field(field), &json!(value), detail));
        };
        if names.contains(&name) {
            refuse("name", name, "must be unique");
        }
        match setting.volume(name) {
            None => errors.push(not_found(&at.field("name"), name)),
            Some(volume) if volume["persistentVolumeClaim"].is_null() && volume["ephemeral"].is_null() => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                refuse("name", name, detail);
            }
            Some(_) => {}
        }
        if place.is_empty() {
            errors.push(FieldError::required(&at.field("devicePath"), ""));
        }
        let mut refuse = |field: &str, value: &str, detail: &str| {
            errors.push(FieldError::invalid(&at.field(field), &json!(value), detail));
        };
        if places.contains(&place) {
            refuse("devicePath", place, "must be unique");
        }
        if climbs(place) {
            refuse("devicePath", place, "can not contain backsteps ('..')");
        } else {
            places.push(place);
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            refuse("name", name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == place) {
            refuse("devicePath", place, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.push(name);
        }
    }
}
