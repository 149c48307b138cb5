//! More readings of an object: lists, numbers that may be missing, and whether a selector takes it.

use serde_json::Value;

use crate::common::object::labels;
use crate::common::selector::Selector;

/// The whole number at a JSON pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// The list at a JSON pointer, or an empty one.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a field is there and not null.
pub(crate) fn has(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

/// Whether the selector of an owner selects an object.
pub(crate) fn selects(owner: &Value, object: &Value) -> bool {
    Selector::parse(&owner["spec"]["selector"]).is_some_and(|selector| selector.matches(labels(object)))
}
