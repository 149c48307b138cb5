//! Short ways to read and fill JSON objects where absent, `null` and the zero value mean the same.

use serde_json::{Map, Value};

/// A string field; empty where absent.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// What stands below a JSON pointer without escapes, which cost [`Value::pointer`] most of its time.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, name| match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A string below a JSON pointer; empty where absent.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An integer field.
pub(crate) fn number(value: &Value, field: &str) -> Option<i64> {
    value.get(field).and_then(Value::as_i64)
}

/// An integer below a JSON pointer.
pub(crate) fn number_at(value: &Value, pointer: &str) -> Option<i64> {
    at(value, pointer).and_then(Value::as_i64)
}

/// Whether a boolean below a JSON pointer is set.
pub(crate) fn flag_at(value: &Value, pointer: &str) -> bool {
    at(value, pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// A list field; empty where absent.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A list below a JSON pointer; empty where absent.
pub(crate) fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The items of a list field to change; none where absent.
pub(crate) fn list_mut<'a>(value: &'a mut Value, field: &str) -> &'a mut [Value] {
    value.get_mut(field).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// A list of strings; empty where absent.
pub(crate) fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    list(value, field).iter().filter_map(Value::as_str).collect()
}

/// The entries of an object; none where it is absent.
pub(crate) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Whether a field is absent, `null`, an empty string, list or object.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Sets a field that is absent or `null`. An empty text is gone by then, unless the Go type tells it from none.
pub(crate) fn default(value: &mut Value, field: &str, wanted: impl Into<Value>) {
    let Some(object) = value.as_object_mut() else { return };
    let slot = object.entry(field).or_insert(Value::Null);
    if slot.is_null() {
        *slot = wanted.into();
    }
}

/// The object in a field, made where absent; `None` where something else stands there.
pub(crate) fn object<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let slot = value.as_object_mut()?.entry(field).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.is_object().then_some(slot)
}

/// An object's field to change, where it holds an object.
pub(crate) fn existing<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    value.get_mut(field).filter(|inner| inner.is_object())
}

/// Takes a field out.
pub(crate) fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut().and_then(|object| object.remove(field))
}

/// Makes a field what it is in another object: its value, or absent.
pub(crate) fn copy(to: &mut Value, from: &Value, field: &str) {
    let Some(object) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => object.insert(field.to_owned(), value.clone()),
        None => object.remove(field),
    };
}
