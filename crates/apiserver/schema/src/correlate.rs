//! Which part of the old object is the same part of the new one, and whether it is unchanged.
//!
//! Fields and map values correspond by name, items of `list-type: map` by their keys; items of other lists to nothing.

use serde_json::{Map, Value};

use crate::node::{Cursor, ListType};

/// The old value of a field or map key.
pub(crate) fn old_field<'o>(schema: Cursor<'_>, name: &str, old: Option<&'o Value>) -> Option<&'o Value> {
    schema.child(name)?;
    old?.as_object()?.get(name)
}

/// The old item with the same keys as a new one.
pub(crate) fn old_item<'o>(schema: Cursor<'_>, item: &Value, old: Option<&'o Value>) -> Option<&'o Value> {
    let node = schema.node();
    if node.list_type != Some(ListType::Map) || node.list_map_keys.is_empty() {
        return None;
    }
    let keys = keys_of(&node.list_map_keys, item.as_object()?)?;
    old?.as_array()?.iter().find(|old| {
        old.as_object().and_then(|old| keys_of(&node.list_map_keys, old)).is_some_and(|old_keys| old_keys == keys)
    })
}

/// The values of the keys; `None` where one is absent or no scalar.
fn keys_of<'o>(names: &[String], item: &'o Map<String, Value>) -> Option<Vec<&'o Value>> {
    names
        .iter()
        .map(|name| item.get(name).filter(|v| !matches!(v, Value::Null | Value::Array(_) | Value::Object(_))))
        .collect()
}

/// Whether nothing changed; the order of a `list-type: map` does not count.
pub(crate) fn is_unchanged(schema: Cursor<'_>, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old_fields)) => {
            new.len() == old_fields.len()
                && new.iter().all(|(name, value)| match (schema.child(name), old_fields.get(name)) {
                    (Some(child), Some(old)) => is_unchanged(child, value, old),
                    _ => false,
                })
        }
        (Value::Array(new_items), Value::Array(old_items)) => {
            new_items.len() == old_items.len() && items_unchanged(schema, new_items, new, old)
        }
        _ => new == old,
    }
}

fn items_unchanged(schema: Cursor<'_>, items: &[Value], new: &Value, old: &Value) -> bool {
    if schema.node().list_type != Some(ListType::Map) || schema.items().is_none() {
        return new == old;
    }
    let item_schema = schema.items().unwrap_or(schema);
    items.iter().all(|item| old_item(schema, item, Some(old)).is_some_and(|old| is_unchanged(item_schema, item, old)))
}
