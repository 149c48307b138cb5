use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Schema;
use crate::testing::{json_values, schemas};

fn pruned(schema: Value, mut value: Value) -> (Value, Vec<String>) {
    let schema = Schema::parse(&schema).unwrap();
    let unknown = prune(&mut value, schema.root(), Root::Resource);
    (value, unknown)
}

#[test]
fn unknown_fields_go_and_are_named_in_order() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "name": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }},
    }});

    let (value, unknown) = pruned(
        schema,
        json!({
            "apiVersion": "a/v1", "kind": "A", "metadata": {"name": "n", "nope": 1},
            "spec": {"zoo": 1, "name": "x", "list": [{"a": "b"}, {"x": {"y": 1}}]}, "bar": {"baz": 1},
        }),
    );

    assert_eq!(
        value,
        json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "n"},
            "spec": {"name": "x", "list": [{"a": "b"}, {}]}})
    );
    assert_eq!(unknown, ["metadata.nope", "bar", "spec.list[1].x", "spec.zoo"]);
}

#[test]
fn preserved_objects_keep_unknown_fields_but_prune_known_ones() {
    let schema = json!({"type": "object", "properties": {
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}},
        }},
    }});

    let (value, unknown) = pruned(schema, json!({"free": {"other": {"deep": 1}, "known": {"a": "", "b": 1}}}));

    assert_eq!(value, json!({"free": {"other": {"deep": 1}, "known": {"a": ""}}}));
    assert_eq!(unknown, ["free.known.b"]);
}

#[test]
fn open_additional_properties_keep_scalars_only() {
    let schema = json!({"type": "object", "properties": {"map": {"type": "object", "additionalProperties": true}}});

    let (value, unknown) = pruned(schema, json!({"map": {"a": 1, "b": {"c": 1}, "d": [{"e": 2}, 3]}}));

    assert_eq!(value, json!({"map": {"a": 1, "b": {}, "d": [{}, 3]}}));
    assert_eq!(unknown, ["map.b.c", "map.d[0].e"]);
}

#[test]
fn embedded_resources_keep_their_meta_fields() {
    let schema = json!({"type": "object", "properties": {
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "spec": {"type": "object"},
        }},
    }});

    let (value, unknown) = pruned(
        schema,
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "odd": 1}, "spec": {"a": 1}}}),
    );

    assert_eq!(value, json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}}));
    assert_eq!(unknown, ["template.spec.a", "template.metadata.odd"]);
}

#[test]
fn built_in_kinds_prune_their_metadata_by_schema_and_keep_raw_json() {
    let definitions = json!({
        "Pod": {"type": "object", "properties": {
            "metadata": {"$ref": "#/components/schemas/Meta"},
            "raw": {"type": "object"},
        }},
        "Meta": {"type": "object", "properties": {"name": {"type": "string"}}},
    });
    let schema = Schema::parse_definitions(definitions.as_object().unwrap()).unwrap();
    let mut value = json!({"metadata": {"name": "x", "odd": 1}, "raw": {"any": {"thing": 1}}});

    let unknown = prune(&mut value, schema.definition("Pod").unwrap(), Root::Resource);

    assert_eq!(value, json!({"metadata": {"name": "x"}, "raw": {"any": {"thing": 1}}}));
    assert_eq!(unknown, ["metadata.odd"]);
}

proptest! {
    #[test]
    fn pruning_twice_changes_nothing_more(schema in schemas(), value in json_values()) {
        let schema = Schema::parse(&schema).unwrap();
        let mut once = value;
        prune(&mut once, schema.root(), Root::Resource);
        let mut twice = once.clone();

        let unknown = prune(&mut twice, schema.root(), Root::Resource);

        prop_assert_eq!(&once, &twice);
        prop_assert!(unknown.is_empty());
    }
}
