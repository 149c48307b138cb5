//! `Lease`.

use portolan_schema::{FieldError, Path};
use serde_json::Value;

use crate::check::{Errors, not_negative};
use crate::value::{existing, number, remove};

/// Fields of a feature that is off by default vanish.
pub(crate) fn drop_disabled(lease: &mut Value) {
    let Some(spec) = existing(lease, "spec") else { return };
    for field in ["strategy", "preferredHolder"] {
        remove(spec, field);
    }
}

/// Durations and counts.
pub(crate) fn validate(lease: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &lease["spec"];
    if number(spec, "leaseDurationSeconds").is_some_and(|seconds| seconds <= 0) {
        let value = &spec["leaseDurationSeconds"];
        errors.push(FieldError::invalid(&path.field("leaseDurationSeconds"), value, "must be greater than 0"));
    }
    not_negative(errors, spec, "leaseTransitions", &path);
}
