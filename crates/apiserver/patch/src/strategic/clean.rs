//! A value of a patch that stands for itself → the value without what only a patch can say.

use serde_json::Value;

/// The key of a directive for the map that it stands in.
pub(crate) const PATCH: &str = "$patch";

/// Whether a value is a map with a directive.
pub(crate) fn is_directed(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.contains_key(PATCH))
}

/// Takes out every field that is null, at any depth.
pub(crate) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// The value without maps that carry `$patch`; `None` where it is one itself.
pub(crate) fn without_directives(value: &Value) -> Option<Value> {
    Some(match value {
        _ if is_directed(value) => return None,
        Value::Object(fields) => {
            fields.iter().filter_map(|(name, field)| Some((name.clone(), without_directives(field)?))).collect()
        }
        Value::Array(items) => items.iter().filter_map(without_directives).collect(),
        other => other.clone(),
    })
}
