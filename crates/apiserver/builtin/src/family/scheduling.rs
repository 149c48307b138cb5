//! `PriorityClass`.

use portolan_schema::{FieldError, Path};
use serde_json::Value;

use crate::check::{Errors, one_of, same};
use crate::value::{default, number, text_at};

/// Whether pods of the class push others out.
pub(crate) fn defaults(class: &mut Value) {
    default(class, "preemptionPolicy", "PreemptLowerPriority");
}

/// The highest priority that users can give; those above belong to the system.
const HIGHEST: i64 = 1_000_000_000;

/// Name, value and what may not change.
pub(crate) fn validate(class: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    if let Some(old) = old {
        if class["value"] != old["value"] {
            errors.push(FieldError::forbidden(&root.field("value"), "may not be changed in an update."));
        }
        same(errors, class, old, "preemptionPolicy", &root);
        return;
    }
    let name = text_at(class, "/metadata/name");
    if name.starts_with("system-") {
        if let Some(problem) = system_problem(class, name) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            errors.push(FieldError::forbidden(&root.field("metadata").field("name"), detail));
        }
    } else if number(class, "value").is_some_and(|value| value > HIGHEST) {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(FieldError::forbidden(&root.field("value"), detail));
    }
    if class["preemptionPolicy"] == serde_json::json!("") {
        errors.push(FieldError::required(&root.field("preemptionPolicy"), ""));
    } else {
        one_of(errors, class, "preemptionPolicy", &["PreemptLowerPriority", "Never"], &root);
    }
}

/// What keeps a class from being one of the system's own.
fn system_problem(class: &Value, name: &str) -> Option<String> {
    let wanted = match name {
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => return Some(format!("{name} is not a known system priority class")),
    };
    if number(class, "value").unwrap_or(0) != wanted {
        return Some(format!("value of {name} PriorityClass must be {wanted}"));
    }
    let default = class["globalDefault"] == serde_json::json!(true);
    default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
