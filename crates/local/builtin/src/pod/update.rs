//! A pod's update → what it may not change: nearly everything but images.

use portolan_schema::{FieldError, Path};
use serde_json::Value;

use crate::check::Errors;
use crate::value::{copy, list, list_mut, number, text};

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
            if text(container, "image").trim().is_empty() {
                errors.push(FieldError::required(&path.index(index).field("image"), ""));
            }
        }
    }
    if validate_deadline(spec, old, path, errors).is_err() {
        return;
    }
    let same = |a: &Value, b: &Value| ["key", "operator", "value", "effect"].iter().all(|field| a[*field] == b[*field]);
    let there = |toleration: &Value| list(spec, "tolerations").iter().any(|other| same(other, toleration));
    if !list(old, "tolerations").iter().all(there) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path.field("tolerations"), detail));
    }
    if kept(spec, old) != *old {
        errors.push(FieldError::forbidden(path, REFUSED));
    }
}

/// The deadline may come closer, but not go; an error ends the checks.
fn validate_deadline(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> Result<(), ()> {
    let path = path.field("activeDeadlineSeconds");
    let value = &spec["activeDeadlineSeconds"];
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
