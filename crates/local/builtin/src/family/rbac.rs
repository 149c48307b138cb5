//! `Role`, `ClusterRole` and their bindings.

use serde_json::Value;

use crate::value::{default, existing, list_mut, text};

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// API groups of the role and the subjects.
pub(crate) fn binding_defaults(binding: &mut Value) {
    if let Some(role) = existing(binding, "roleRef") {
        default(role, "apiGroup", GROUP);
    }
    for subject in list_mut(binding, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default(subject, "apiGroup", GROUP);
        }
    }
}
