//! Arbitrary JSON and arbitrary schemas for property tests.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NAMES: [&str; 6] = ["a", "b", "metadata", "kind", "spec", "items"];

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        "[a-c1./-]{0,4}".prop_map(Value::from),
    ]
}

/// JSON values whose names meet those of [`schemas`].
pub(crate) fn json_values() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name(), inner, 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn scalar_schema() -> impl Strategy<Value = Map<String, Value>> {
    prop_oneof![
        Just(json!({"type": "string", "minLength": 1, "pattern": "^[a-b]+$"})),
        Just(json!({"type": "string", "format": "date-time", "nullable": true})),
        Just(json!({"type": "string", "enum": ["a", "b"], "default": "a"})),
        Just(json!({"type": "integer", "minimum": 0, "maximum": 3, "default": 1})),
        Just(json!({"type": "number", "multipleOf": 2, "exclusiveMinimum": true, "minimum": 0})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ]
    .prop_map(|schema| schema.as_object().cloned().unwrap_or_default())
}

/// Structural schemas with most keywords in them.
pub(crate) fn schemas() -> impl Strategy<Value = Value> {
    let leaf = scalar_schema().prop_map(Value::Object);
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        let list = (inner.clone(), proptest::sample::select(vec!["atomic", "set", "map"])).prop_map(|(items, kind)| {
            json!({"type": "array", "items": items, "maxItems": 2, "x-kubernetes-list-type": kind,
                "x-kubernetes-list-map-keys": ["a"]})
        });
        let map = inner
            .clone()
            .prop_map(|values| json!({"type": "object", "additionalProperties": values, "minProperties": 1}));
        let object =
            (btree_map(name(), inner, 0..4), any::<bool>(), any::<bool>()).prop_map(|(fields, keep, embedded)| {
                json!({"type": "object", "properties": fields, "required": ["a"],
                "x-kubernetes-preserve-unknown-fields": keep, "x-kubernetes-embedded-resource": embedded,
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["items"]}})
            });
        prop_oneof![list, map, object]
    });
    nested.prop_map(|spec| json!({"type": "object", "properties": {"spec": spec, "metadata": {"type": "object"}}}))
}
