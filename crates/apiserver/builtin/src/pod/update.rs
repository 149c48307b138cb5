//! A pod's update → what it may not change: nearly everything but images.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::toleration::validate_tolerations;
use crate::check::Errors;
use crate::value::{copy, entries, existing, list, list_at, list_mut, number, text};

const REFUSED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";

/// What is wrong with the change of a pod's spec.
pub(crate) fn validate_change(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["containers", "initContainers"] {
        let path = path.field(field);
        if list(spec, field).len() != list(old, field).len() {
            errors.push(FieldError::forbidden(&path, "pod updates may not add or remove containers"));
            return;
        }
        for (index, container) in list(spec, field).iter().enumerate() {
            let image = text(container, "image");
            if image.is_empty() {
                errors.push(FieldError::required(&path.index(index).field("image"), ""));
            }
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(&path.index(index).field("image"), &json!(image), detail));
            }
        }
    }
    if validate_deadline(spec, old, path, errors).is_err() {
        return;
    }
    let same = |a: &Value, b: &Value| ["key", "operator", "value", "effect"].iter().all(|field| a[*field] == b[*field]);
    let there = |toleration: &Value| list(spec, "tolerations").iter().any(|other| same(other, toleration));
    if list(old, "tolerations").iter().all(there) {
        validate_tolerations(list(spec, "tolerations"), &path.field("tolerations"), errors);
    } else {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path.field("tolerations"), detail));
    }
    validate_gates(spec, old, &path.field("schedulingGates"), errors);
    let mut kept = kept(spec, old);
    if !list(old, "schedulingGates").is_empty() {
        narrow(&mut kept, old, path, errors);
    }
    if kept != *old {
        errors.push(FieldError::forbidden(path, REFUSED));
    }
}

/// Gates only open.
fn validate_gates(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !list(old, "schedulingGates").iter().any(|known| text(known, "name") == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&path.index(index).field("name"), detail));
        }
    }
}

/// As long as a gate is closed, the choice of nodes may become narrower.
fn narrow(kept: &mut Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (new, before) = (kept["nodeSelector"].clone(), &old["nodeSelector"]);
    if entries(before).any(|(key, value)| new.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid(&path.field("nodeSelector"), &new, detail));
    }
    copy(kept, old, "nodeSelector");
    let terms = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    narrow_terms(list_at(kept, terms), list_at(old, terms), path, errors);
    let alone = |affinity: &Value| entries(affinity).all(|(kind, _)| kind == "nodeAffinity");
    let added = old["affinity"].is_null() && alone(&kept["affinity"]);
    let removed = kept["affinity"].is_null() && alone(&old["affinity"]);
    if added || removed {
        copy(kept, old, "affinity");
    } else if let Some(affinity) = existing(kept, "affinity") {
        copy(affinity, &old["affinity"], "nodeAffinity");
    }
}

fn narrow_terms(new: &[Value], old: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if old.is_empty() {
        return;
    }
    let path = path.field("affinity");
    let path = path.field("nodeAffinity");
    let path = path.field("requiredDuringSchedulingIgnoredDuringExecution");
    let path = path.field("nodeSelectorTerms");
    if new.len() != old.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(&path, &json!(new), detail));
        return;
    }
    for (index, (new, old)) in new.iter().zip(old).enumerate() {
        let grown = ["matchExpressions", "matchFields"].iter().all(|f| list(new, f).starts_with(list(old, f)));
        let empty = |term: &Value| list(term, "matchExpressions").is_empty() && list(term, "matchFields").is_empty();
        if !grown || (empty(old) && !empty(new)) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&path.index(index), new, detail));
        }
    }
}

/// The deadline may come closer, but not go; an error ends the checks.
fn validate_deadline(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> Result<(), ()> {
    let path = path.field("activeDeadlineSeconds");
    let value = &spec["activeDeadlineSeconds"];
    if value.as_i64().is_some_and(|seconds| !(0..=i64::from(i32::MAX)).contains(&seconds)) {
        errors.push(FieldError::invalid(&path, value, "must be between 0 and 2147483647, inclusive"));
        return Err(());
    }
    match (number(old, "activeDeadlineSeconds"), number(spec, "activeDeadlineSeconds")) {
        (Some(before), Some(after)) if before < after => {
            errors.push(FieldError::invalid(&path, value, "must be less than or equal to previous value"));
            Err(())
        }
        (Some(_), None) => {
            errors.push(FieldError::invalid(&path, value, "must not update from a positive integer to nil value"));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The new spec with all that may change put back.
fn kept(spec: &Value, old: &Value) -> Value {
    let mut kept = spec.clone();
    for field in ["containers", "initContainers"] {
        for (container, before) in list_mut(&mut kept, field).iter_mut().zip(list(old, field)) {
            copy(container, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        copy(&mut kept, old, field);
    }
    if number(old, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        copy(&mut kept, old, "terminationGracePeriodSeconds");
    }
    kept
}
