//! Sets and maps among the lists: no value and no key stands twice.

use serde_json::{Map, Value};

use crate::field::{FieldError, Path};
use crate::node::{Cursor, ListType};

/// What stands twice in a `list-type: set` or `map`, anywhere below an object.
pub(super) fn validate(value: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Value::Object(fields) = value {
        object(fields, schema, &Path::root(), &mut errors);
    }
    errors
}

fn object(fields: &Map<String, Value>, schema: Cursor<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, value) in fields {
        if let Some(child) = schema.property(name) {
            place(value, child, &path.field(name), errors);
        } else if let Some(child) = schema.values() {
            place(value, child, &path.key(name), errors);
        }
    }
}

fn place(value: &Value, schema: Cursor<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => object(fields, schema, path, errors),
        Value::Array(items) => {
            match schema.node().list_type {
                Some(ListType::Set) => duplicates(&items.iter().collect::<Vec<_>>(), path, errors),
                Some(ListType::Map) => map(items, &schema.node().list_map_keys, path, errors),
                Some(ListType::Atomic) | None => {}
            }
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                place(item, schema, &path.index(index), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn map(items: &[Value], keys: &[String], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null()) {
        errors.push(FieldError::invalid(&path.index(index), item, "must be an object for an array of list-type map"));
        return;
    }
    let key_of = |item: &Value| -> Value {
        keys.iter()
            .filter_map(|name| item.get(name).map(|value| (name.clone(), value.clone())))
            .collect::<Map<_, _>>()
            .into()
    };
    let keys: Vec<Value> = items.iter().map(key_of).collect();
    duplicates(&keys.iter().collect::<Vec<_>>(), path, errors);
}

/// Names the second of equal values, not the third.
fn duplicates(items: &[&Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let count = seen.entry(item.to_string()).or_insert(0usize);
        *count += 1;
        if *count == 2 {
            errors.push(FieldError::duplicate(&path.index(index), item));
        }
    }
}
