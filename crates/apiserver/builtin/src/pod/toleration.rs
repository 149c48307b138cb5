//! Tolerations → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, one_of};
use crate::meta::invalid;
use crate::names;
use crate::value::text;

/// Keys, operators, values and effects.
pub(super) fn validate_tolerations(tolerations: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = path.index(index);
        let key = text(toleration, "key");
        if !key.is_empty() {
            invalid(errors, &path.field("key"), key, names::qualified_name(key));
        }
        let operator = text(toleration, "operator");
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&path.field("operator"), &json!(operator), detail));
        }
        if !toleration["tolerationSeconds"].is_null() && text(toleration, "effect") != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.field("effect"), &json!(text(toleration, "effect")), detail));
        }
        validate_operator(toleration, &path.field("operator"), errors);
        one_of(errors, toleration, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path);
    }
}

/// The value, under the operator's name: so the real server has it.
fn validate_operator(toleration: &Value, path: &Path<'_>, errors: &mut Errors) {
    let value = text(toleration, "value");
    match text(toleration, "operator") {
        "" | "Equal" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(path, &json!(value), problems.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(path, &json!(value), detail));
        }
        "Exists" => {}
        operator @ ("Lt" | "Gt") => {
            let supported = &["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(path, &json!(operator), supported));
        }
        operator => errors.push(FieldError::not_supported(path, &json!(operator), &["Equal", "Exists"])),
    }
}
