//! A custom resource and its schema → the resource with the schema's defaults filled in.
//!
//! Not for definitions of built-in kinds: their documents carry defaults that the server does not apply.

use serde_json::{Map, Value};

use crate::node::Cursor;

/// Removes nulls where null is no value and no default stands in, then fills in defaults from the outside in.
pub fn default(value: &mut Value, schema: Cursor<'_>) {
    drop_nulls(value, Some(schema));
    fill(value, schema);
}

/// Fills in defaults and leaves nulls where they are, as after an apply.
pub fn fill_defaults(value: &mut Value, schema: Cursor<'_>) {
    fill(value, schema);
}

fn drop_nulls(value: &mut Value, schema: Option<Cursor<'_>>) {
    match value {
        Value::Object(object) => {
            object.retain(|name, value| {
                !(value.is_null() && schema.and_then(|s| s.child(name)).is_some_and(refuses_null))
            });
            for (name, value) in object.iter_mut() {
                drop_nulls(value, schema.and_then(|s| s.child(name)));
            }
        }
        Value::Array(items) => {
            let schema = schema.and_then(Cursor::items);
            for item in items {
                drop_nulls(item, schema);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn refuses_null(schema: Cursor<'_>) -> bool {
    !schema.node().nullable && default_of(schema).is_none()
}

fn fill(value: &mut Value, schema: Cursor<'_>) {
    match value {
        Value::Object(object) => fill_object(object, schema),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                replace_null(item, schema);
                fill(item, schema);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill_object(object: &mut Map<String, Value>, schema: Cursor<'_>) {
    for (name, &id) in &schema.node().properties {
        let child = schema.sibling(id);
        let Some(default) = default_of(child) else { continue };
        let stands = object.get(name).is_some_and(|v| !v.is_null() || child.node().nullable);
        if !stands {
            object.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in object.iter_mut() {
        if let Some(child) = schema.property(name) {
            fill(value, child);
        } else if let Some(child) = schema.values() {
            replace_null(value, child);
            fill(value, child);
        }
    }
}

fn replace_null(value: &mut Value, schema: Cursor<'_>) {
    if value.is_null() && !schema.node().nullable {
        *value = schema.node().default.clone().unwrap_or(Value::Null);
    }
}

/// A default of `null` is none.
fn default_of(schema: Cursor<'_>) -> Option<&Value> {
    schema.node().default.as_ref().filter(|d| !d.is_null())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "tests read better with literals")]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Schema;
    use crate::testing::{json_values, schemas};

    fn defaulted(schema: Value, mut value: Value) -> Value {
        default(&mut value, Schema::parse(&schema).unwrap().root());
        value
    }

    #[test]
    fn absent_fields_take_their_default_and_defaults_are_completed() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "default": {}, "properties": {
                "replicas": {"type": "integer", "default": 1},
                "other": {"type": "object", "properties": {"inner": {"type": "string", "default": "x"}}},
            }},
        }});

        assert_eq!(defaulted(schema.clone(), json!({})), json!({"spec": {"replicas": 1}}));
        assert_eq!(
            defaulted(schema, json!({"spec": {"replicas": 0, "other": {}}})),
            json!({"spec": {"replicas": 0, "other": {"inner": "x"}}})
        );
    }

    #[test]
    fn null_is_dropped_defaulted_or_kept() {
        let schema = json!({"type": "object", "properties": {
            "plain": {"type": "string"},
            "defaulted": {"type": "string", "default": "d"},
            "nullable": {"type": "string", "nullable": true, "default": "d"},
            "list": {"type": "array", "items": {"type": "string", "default": "i"}},
            "bare": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": "m"}},
        }});

        let value = defaulted(
            schema,
            json!({"plain": null, "defaulted": null, "nullable": null, "list": [null], "bare": [null], "map": {"a": null}}),
        );

        assert_eq!(
            value,
            json!({"defaulted": "d", "nullable": null, "list": ["i"], "bare": [null], "map": {"a": "m"}})
        );
    }

    #[test]
    fn items_and_map_values_are_completed() {
        let item = json!({"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}}});
        let schema = json!({"type": "object", "properties": {
            "ports": {"type": "array", "items": item},
            "byName": {"type": "object", "additionalProperties": item},
        }});

        let value = defaulted(schema, json!({"ports": [{}, {"protocol": "UDP"}], "byName": {"a": {}}}));

        assert_eq!(
            value,
            json!({"ports": [{"protocol": "TCP"}, {"protocol": "UDP"}], "byName": {"a": {"protocol": "TCP"}}})
        );
    }

    proptest! {
        #[test]
        fn defaulting_twice_changes_nothing_more(schema in schemas(), value in json_values()) {
            let schema = Schema::parse(&schema).unwrap();
            let mut once = value;
            default(&mut once, schema.root());
            let mut twice = once.clone();

            default(&mut twice, schema.root());

            prop_assert_eq!(once, twice);
        }
    }
}
