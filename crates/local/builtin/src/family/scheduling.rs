//! `PriorityClass`.

use serde_json::Value;

use crate::value::default;

/// Whether pods of the class push others out.
pub(crate) fn defaults(class: &mut Value) {
    default(class, "preemptionPolicy", "PreemptLowerPriority");
}
