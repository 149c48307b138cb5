//! Names and amounts of resources → what is wrong with them where containers, quotas and limit ranges use them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::Errors;
use crate::meta::invalid;
use crate::names;
use crate::quantity::{Quantity, written};

/// Objects that can be counted, only as a whole.
const COUNTED: &[&str] = &[
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// Amounts that can be measured.
const MEASURED: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Whether the name is one of huge pages.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_quota_page(name: &str) -> bool {
    is_huge_page(name) || name.starts_with("requests.hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    let for_quota = format!("requests.{name}");
    !is_native(name) && !name.starts_with("requests.") && names::qualified_name(&for_quota).is_empty()
}

/// Whether more of a resource may be promised than there is.
pub(crate) fn can_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether a quota may name it without a domain.
pub(crate) fn is_quota_name(name: &str) -> bool {
    COUNTED.contains(&name) || MEASURED.contains(&name) || name == "requests.storage" || is_quota_page(name)
}

/// A name that is known or has a domain.
pub(crate) fn any_name(errors: &mut Errors, name: &str, path: &Path<'_>) {
    let problems = names::qualified_name(name);
    if !problems.is_empty() {
        invalid(errors, path, name, problems);
        return;
    }
    let standard = COUNTED.contains(&name)
        || MEASURED.contains(&name)
        || matches!(name, "storage" | "requests.storage")
        || is_quota_page(name);
    if !name.contains('/') && !standard {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, &json!(name), detail));
    }
}

/// A name that a container may use.
pub(crate) fn container_name(errors: &mut Errors, name: &str, path: &Path<'_>) {
    any_name(errors, name, path);
    let detail = if name.split('/').count() == 1 {
        let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_page(name);
        (!known).then_some("must be a standard resource for containers")
    } else {
        (!is_native(name) && !is_extended(name)).then_some("doesn't follow extended resource name standard")
    };
    if let Some(detail) = detail {
        errors.push(FieldError::invalid(path, &json!(name), detail));
    }
}

/// A name that a quota may use.
pub(crate) fn quota_name(errors: &mut Errors, name: &str, path: &Path<'_>) {
    any_name(errors, name, path);
    if !name.contains('/') && !is_quota_name(name) {
        errors.push(FieldError::invalid(path, &json!(name), "must be a standard resource for quota"));
    }
}

/// An amount that is not negative, and whole where only whole ones exist.
pub(crate) fn amount(errors: &mut Errors, name: &str, value: &Value, path: &Path<'_>) {
    let Some(amount) = Quantity::from_value(value) else { return };
    let shown = json!(written(value));
    if amount.is_negative() {
        errors.push(FieldError::invalid(path, &shown, "must be greater than or equal to 0"));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && !amount.is_integer() {
        errors.push(FieldError::invalid(path, &shown, "must be an integer"));
    }
}
