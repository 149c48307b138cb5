//! Small readings of an object: texts, numbers and lists at JSON pointers, and its metadata.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::ObjectName;

/// What stands at a pointer without escapes, which cost [`Value::pointer`] most of its time.
pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(object, |value, name| match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The text at a pointer; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a pointer; 0 where there is none.
pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    given_number(object, pointer).unwrap_or(0)
}

/// The whole number at a pointer, where there is one.
pub(crate) fn given_number(object: &Value, pointer: &str) -> Option<i64> {
    at(object, pointer).and_then(Value::as_i64)
}

/// The list at a pointer; empty where there is none.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The time at a pointer.
pub(crate) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// Whether a field is there and not null.
pub(crate) fn has(object: &Value, pointer: &str) -> bool {
    at(object, pointer).is_some_and(|value| !value.is_null())
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// Where the object is.
pub(crate) fn name_of(object: &Value) -> ObjectName {
    ObjectName { namespace: namespace(object).to_owned(), name: name(object).to_owned() }
}

/// Whether it was told to go.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    at(object, "/metadata/labels").and_then(Value::as_object)
}

/// A label, where the object has it.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    labels(object)?.get(key).and_then(Value::as_str)
}

/// An annotation, where the object has it.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key).and_then(Value::as_str)
}

/// Its owner references.
pub(crate) fn owners(object: &Value) -> &[Value] {
    list(object, "/metadata/ownerReferences")
}

/// The owner reference with `controller: true`.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    owners(object).iter().find(|owner| owner["controller"] == true)
}

/// A time as objects carry it, in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
