//! Paths in a container's file system → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::Errors;
use crate::value::number;

/// A path must not climb.
pub(crate) fn no_backsteps(errors: &mut Errors, target: &str, path: &Path<'_>) {
    if climbs(target) {
        errors.push(FieldError::invalid(path, &json!(target), "must not contain '..'"));
    }
}

/// Whether a path has `..` as one of its parts.
pub(crate) fn climbs(target: &str) -> bool {
    target.split('/').any(|part| part == "..")
}

/// A path must lead down from where it starts.
pub(crate) fn descending(errors: &mut Errors, target: &str, path: &Path<'_>) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, &json!(target), "must be a relative path"));
    }
    no_backsteps(errors, target, path);
}

/// A path must lead down, and keep clear of names that belong to the kubelet.
pub(crate) fn not_reserved(errors: &mut Errors, target: &str, path: &Path<'_>) {
    descending(errors, target, path);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, &json!(target), "must not start with '..'"));
    }
}

/// The bits of a file's mode.
pub(crate) fn file_mode(errors: &mut Errors, object: &Value, field: &str, path: &Path<'_>) {
    if number(object, field).is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(&path.field(field), &object[field], detail));
    }
}
