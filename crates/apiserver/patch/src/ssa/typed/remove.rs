//! A value and a set of fields → the value without them, or only them.

use serde_json::{Map, Value};

use super::shape::{Relation, Shape, ViewedAs};
use crate::ssa::set::FieldSet;

/// The value without the given fields. A container that loses all its parts becomes null.
pub(crate) fn remove(value: &Value, fields: &FieldSet, shape: Shape<'_>) -> Value {
    match (shape.form_of(value), value) {
        (ViewedAs::Scalar, _) => value.clone(),
        (ViewedAs::Map, Value::Object(map)) if !shape.map_is_atomic() => remove_from_map(map, fields, shape),
        (ViewedAs::List, Value::Array(items)) if !matches!(shape.relation(), Relation::Atomic) => {
            remove_from_list(items, fields, shape)
        }
        (ViewedAs::Map | ViewedAs::List, _) => Value::Null,
    }
}

fn remove_from_map(map: &Map<String, Value>, fields: &FieldSet, shape: Shape<'_>) -> Value {
    let left = map.iter().filter_map(|(name, value)| {
        let value = match fields.field(name) {
            Some(node) if node.member => return None,
            Some(node) => remove(value, &node.children, shape.value(name).unwrap_or(Shape::Deduced)),
            None => value.clone(),
        };
        Some((name.clone(), value))
    });
    object_or_null(left.collect())
}

fn remove_from_list(items: &[Value], fields: &FieldSet, shape: Shape<'_>) -> Value {
    let left = items.iter().filter_map(|item| {
        let node = shape.element_of(item).ok().and_then(|element| fields.node(&element));
        match node {
            Some(node) if node.member => None,
            Some(node) => Some(remove(item, &node.children, shape.items())),
            None => Some(item.clone()),
        }
    });
    list_or_null(left.collect())
}

/// Only the given fields of the value.
pub(crate) fn extract(value: &Value, fields: &FieldSet, shape: Shape<'_>) -> Value {
    match (shape.form_of(value), value) {
        (ViewedAs::Map, Value::Object(map)) if !shape.map_is_atomic() && !map.is_empty() => {
            extract_from_map(map, fields, shape)
        }
        (ViewedAs::List, Value::Array(items)) if !matches!(shape.relation(), Relation::Atomic) && !items.is_empty() => {
            extract_from_list(items, fields, shape)
        }
        (ViewedAs::Scalar, _) | (ViewedAs::Map, Value::Object(_)) | (ViewedAs::List, Value::Array(_)) => value.clone(),
        (ViewedAs::Map | ViewedAs::List, _) => Value::Null,
    }
}

fn extract_from_map(map: &Map<String, Value>, fields: &FieldSet, shape: Shape<'_>) -> Value {
    let kept = map.iter().filter_map(|(name, value)| {
        let node = fields.field(name)?;
        let below = shape.value(name).unwrap_or(Shape::Deduced);
        // A field that is asked for by itself brings nothing below it unless that is asked for by name as well.
        let wanted = if node.member { fields } else { &node.children };
        Some((name.clone(), extract(value, wanted, below)))
    });
    object_or_null(kept.collect())
}

fn extract_from_list(items: &[Value], fields: &FieldSet, shape: Shape<'_>) -> Value {
    let kept = items.iter().filter_map(|item| {
        let node = fields.node(&shape.element_of(item).ok()?)?;
        Some(if node.children.is_empty() { item.clone() } else { extract(item, &node.children, shape.items()) })
    });
    list_or_null(kept.collect())
}

fn object_or_null(map: Map<String, Value>) -> Value {
    if map.is_empty() { Value::Null } else { Value::Object(map) }
}

fn list_or_null(items: Vec<Value>) -> Value {
    if items.is_empty() { Value::Null } else { Value::Array(items) }
}
