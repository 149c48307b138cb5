//! What objects of built-in kinds always carry: their structs write empty structs, and required fields, even when a
//! client sent none (`status: {}`, `resources: {}`, `containers: null`).
//!
//! Ownership depends on it: a struct that was there before is not added by the one who fills it.

use std::borrow::Cow;

use portolan_schema::{Cursor, MapType, Node, Type};
use serde_json::{Map, Value};

/// Whether the schema is that of a built-in kind. Only these describe their whole `metadata`.
pub fn is_built_in(schema: Cursor<'_>) -> bool {
    schema.property("metadata").is_some_and(|metadata| metadata.property("managedFields").is_some())
}

/// Adds what the structs of a built-in kind always carry; leaves objects of other kinds alone.
pub fn complete(value: &mut Value, schema: Cursor<'_>) {
    if is_built_in(schema) {
        fill(value, schema);
    }
}

/// The completed value; the same one where nothing is missing.
pub(crate) fn completed<'a>(value: &'a Value, schema: Cursor<'_>) -> Cow<'a, Value> {
    if !is_built_in(schema) || !lacks(value, schema) {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    fill(&mut value, schema);
    Cow::Owned(value)
}

/// What stands in a field that was never set; `None` where it is left out.
///
/// Structs write their structs always, and scalars that may not be left out: their zero is the schema's default. Only
/// atomic structs have fields with such a default that are left out all the same.
fn unset(parent: &Node, name: &str, field: &Node) -> Option<Value> {
    match &field.default {
        Some(Value::Object(default)) if default.is_empty() => Some(Value::Object(Map::new())),
        Some(default) if is_zero(default) && parent.map_type != Some(MapType::Atomic) => Some(default.clone()),
        None if parent.required.iter().any(|required| required == name) => Some(Value::Null),
        Some(_) | None => None,
    }
}

/// Takes out the nulls that no struct of a built-in kind would write.
pub(crate) fn drop_nulls(value: &mut Value, schema: Cursor<'_>) {
    match value {
        Value::Object(fields) => {
            let node = schema.node();
            let kept = |name: &str| match schema.property(name) {
                Some(field) => unset(node, name, field.node()) == Some(Value::Null),
                None => true,
            };
            fields.retain(|name, value| !value.is_null() || kept(name));
            for (name, value) in fields.iter_mut() {
                match (schema.property(name), schema.values()) {
                    (None, Some(values)) if value.is_null() => *value = zero(values.node()),
                    (Some(below), _) | (None, Some(below)) => drop_nulls(value, below),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = schema.items() {
                for item in items {
                    drop_nulls(item, below);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a null becomes in a map.
fn zero(node: &Node) -> Value {
    match node.type_ {
        Some(Type::String) => Value::from(""),
        Some(Type::Integer | Type::Number) => Value::from(0),
        Some(Type::Boolean) => Value::from(false),
        Some(Type::Object | Type::Array) | None => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn lacks(value: &Value, schema: Cursor<'_>) -> bool {
    match value {
        Value::Object(fields) => {
            lacks_field(fields, schema)
                || fields.iter().any(|(name, value)| {
                    let nested = value.is_object() || value.is_array();
                    nested && schema.child(name).is_some_and(|below| lacks(value, below))
                })
        }
        Value::Array(items) => schema.items().is_some_and(|below| items.iter().any(|item| lacks(item, below))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a field that is always there is not. Names of both sides come in order, so one pass tells.
fn lacks_field(fields: &Map<String, Value>, schema: Cursor<'_>) -> bool {
    let node = schema.node();
    let mut present = fields.keys().peekable();
    node.properties.keys().any(|name| {
        while present.next_if(|field| *field < name).is_some() {}
        let missing = present.peek() != Some(&name);
        missing && schema.property(name).is_some_and(|field| unset(node, name, field.node()).is_some())
    })
}

fn fill(value: &mut Value, schema: Cursor<'_>) {
    let node = schema.node();
    match value {
        Value::Object(fields) => {
            for name in node.properties.keys() {
                let Some(field) = schema.property(name).filter(|_| !fields.contains_key(name)) else {
                    continue;
                };
                if let Some(unset) = unset(node, name, field.node()) {
                    fields.insert(name.clone(), unset);
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(below) = schema.child(name) {
                    fill(value, below);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = schema.items() {
                for item in items {
                    fill(item, below);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
