use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Schema;
use crate::testing::{json_values, schemas};

fn spec(properties: Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}))
        .unwrap()
}

/// The messages about `spec.x`.
fn about(x: Value, value: Value) -> Vec<String> {
    let schema = spec(json!({"x": x}));
    validate(&json!({"spec": {"x": value}}), schema.root()).iter().map(ToString::to_string).collect()
}

#[test]
fn types_are_named_with_the_type_found() {
    assert_eq!(
        about(json!({"type": "integer"}), json!("a")),
        [r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#]
    );
    assert_eq!(
        about(json!({"type": "string"}), json!(null)),
        [r#"spec.x: Invalid value: "null": spec.x in body must be of type string: "null""#]
    );
    assert_eq!(
        about(json!({"x-kubernetes-int-or-string": true}), json!(true)),
        [r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#]
    );
    assert!(about(json!({"type": "integer"}), json!(1.0)).is_empty());
    assert!(about(json!({"type": "number"}), json!(1)).is_empty());
    assert!(about(json!({"type": "string", "nullable": true}), json!(null)).is_empty());
}

#[test]
fn bounds_and_lengths_are_named() {
    assert_eq!(
        about(json!({"type": "integer", "maximum": 10}), json!(11)),
        ["spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10"]
    );
    assert_eq!(
        about(json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}), json!(0.5)),
        ["spec.x: Invalid value: 0.5: spec.x in body should be greater than 0.5"]
    );
    assert_eq!(
        about(json!({"type": "integer", "multipleOf": 3}), json!(4)),
        ["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"]
    );
    assert_eq!(
        about(json!({"type": "string", "maxLength": 2}), json!("abc")),
        ["spec.x: Too long: may not be more than 2 bytes"]
    );
    assert_eq!(
        about(json!({"type": "string", "minLength": 2}), json!("ä")),
        [r#"spec.x: Invalid value: "ä": spec.x in body should be at least 2 chars long"#]
    );
    assert_eq!(
        about(json!({"type": "string", "pattern": "^a+$"}), json!("b")),
        [r#"spec.x: Invalid value: "b": spec.x in body should match '^a+$'"#]
    );
    assert_eq!(
        about(json!({"type": "integer", "format": "int32"}), json!(3_000_000_000_i64)),
        [r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#]
    );
}

#[test]
fn lists_and_objects_are_counted() {
    let list = json!({"type": "array", "items": {"type": "string"}, "maxItems": 1, "uniqueItems": true});
    assert_eq!(
        about(list, json!(["a", "a"])),
        [
            "spec.x: Too many: 2: must have at most 1 item",
            r#"spec.x: Invalid value: "": spec.x in body shouldn't contain duplicates"#
        ]
    );
    assert_eq!(
        about(json!({"type": "array", "minItems": 1}), json!([])),
        ["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"]
    );
    assert_eq!(
        about(json!({"type": "object", "minProperties": 2, "required": ["a", "b"]}), json!({"a": 1})),
        ["spec.x: Invalid value: 1: spec.x in body should have at least 2 properties", "spec.x.b: Required value"]
    );
    assert_eq!(
        about(json!({"type": "object", "maxProperties": 0}), json!({"a": 1})),
        ["spec.x: Too many: 1: must have at most 0 items"]
    );
}

#[test]
fn enumerations_and_formats_are_named() {
    assert_eq!(
        about(json!({"type": "string", "enum": ["a", "b"]}), json!("c")),
        [r#"spec.x: Unsupported value: "c": supported values: "a", "b""#]
    );
    assert_eq!(
        about(json!({"type": "string", "format": "date-time"}), json!("now")),
        [r#"spec.x: Invalid value: "now": spec.x in body must be of type date-time: "now""#]
    );
    assert!(about(json!({"type": "string", "format": "unheard-of"}), json!("x")).is_empty());
}

#[test]
fn junctors_speak_of_no_field() {
    let one_of = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    assert_eq!(
        about(one_of.clone(), json!({})),
        [
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.x.a: Required value"
        ]
    );
    assert_eq!(
        about(one_of, json!({"a": "", "b": ""})),
        [
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    assert_eq!(
        about(json!({"type": "string", "not": {"enum": ["a"]}}), json!("a")),
        [r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#]
    );
    assert_eq!(
        about(json!({"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]}), json!("a")),
        [
            r#"spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long"#,
            r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#
        ]
    );
}

#[test]
fn sets_and_maps_hold_nothing_twice() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    assert_eq!(about(set, json!(["a", "b", "a", "a"])), [r#"spec.x[2]: Duplicate value: "a""#]);
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}}});
    assert_eq!(about(map, json!([{"k": "a"}, {"k": "a", "v": 1}])), [r#"spec.x[1]: Duplicate value: {"k":"a"}"#]);
}

#[test]
fn embedded_resources_name_their_type() {
    let schema =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(
        about(schema, json!({"kind": "Pod", "metadata": {"name": "a/b"}})),
        ["spec.x.apiVersion: Required value", r#"spec.x.metadata.name: Invalid value: "a/b": may not contain '/'"#]
    );
}

#[test]
fn what_was_wrong_before_and_did_not_change_is_tolerated() {
    let schema = spec(json!({
        "x": {"type": "integer", "maximum": 1},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}},
        "atomic": {"type": "array", "items": {"type": "integer", "maximum": 1}},
    }));
    let old = json!({"spec": {"x": 5, "list": [{"k": "a", "v": 9}], "atomic": [7]}});

    let moved = json!({"spec": {"x": 5, "list": [{"k": "b", "v": 0}, {"k": "a", "v": 9}], "atomic": [7]}});
    assert!(validate_update(&moved, &old, schema.root()).is_empty());

    let changed = json!({"spec": {"x": 6, "list": [{"k": "a", "v": 8}], "atomic": [7, 1]}});
    let fields: Vec<String> = validate_update(&changed, &old, schema.root()).into_iter().map(|e| e.field).collect();
    assert_eq!(fields, ["spec.atomic[0]", "spec.list[0].v", "spec.x"]);
}

#[test]
fn a_status_write_checks_the_status_only() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    }}))
    .unwrap();

    let errors = validate_status_update(&json!({"spec": {"x": ""}, "status": {"ready": 1}}), &json!({}), schema.root());

    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [r#"status.ready: Invalid value: "integer": ready in body must be of type boolean: "integer""#]
    );
}

#[test]
fn rules_wait_until_the_object_has_its_form() {
    let errors = validate(&json!({"spec": {"x": 1}}), spec(json!({"x": {"type": "string"}})).root());

    assert!(
        blocks_rules(&errors).unwrap().to_string().starts_with("<nil>: Invalid value: null: some validation rules")
    );
    assert_eq!(blocks_rules(&[]), None);
}

proptest! {
    #[test]
    fn an_update_is_never_wrong_where_a_create_would_not_be(schema in schemas(), new in json_values(), old in json_values()) {
        let schema = Schema::parse(&schema).unwrap();

        let created = validate(&new, schema.root());
        let updated = validate_update(&new, &old, schema.root());

        prop_assert!(updated.iter().all(|error| created.contains(error)));
    }
}
