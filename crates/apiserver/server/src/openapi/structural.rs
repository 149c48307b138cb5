//! The schema of a CRD → the same as it is published: without empty keywords, and in version 2 without what that cannot
//! say.

use serde_json::{Map, Value, json};

use crate::openapi::accept::Specification;

/// Which specification a schema is published in.
pub(super) type OpenapiVersion = Specification;

/// What a place of a schema may say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPlace {
    /// Everything.
    Structure,
    /// Conditions below `allOf`, `anyOf`, `oneOf` and `not`.
    Condition,
}

/// A schema without keywords that say nothing, and with the two types of `x-kubernetes-int-or-string`.
pub(super) fn publish(schema: &Map<String, Value>) -> Map<String, Value> {
    place(schema, SchemaPlace::Structure)
}

fn place(schema: &Map<String, Value>, at: SchemaPlace) -> Map<String, Value> {
    let kept = schema.iter().filter_map(|(key, value)| Some((key.clone(), keyword(key, value, at)?)));
    let mut kept: Map<String, Value> = kept.collect();
    if at == SchemaPlace::Structure && kept.contains_key("x-kubernetes-int-or-string") {
        unfold(&mut kept);
    }
    kept
}

fn keyword(key: &str, value: &Value, at: SchemaPlace) -> Option<Value> {
    let below = |value: &Value, at: SchemaPlace| value.as_object().map(|schema| Value::Object(place(schema, at)));
    match key {
        "properties" => {
            let fields = value.as_object().filter(|fields| !fields.is_empty())?.iter();
            fields
                .map(|(name, field)| Some((name.clone(), below(field, at)?)))
                .collect::<Option<_>>()
                .map(Value::Object)
        }
        "items" => below(value, at),
        "additionalProperties" if at == SchemaPlace::Condition => None,
        "additionalProperties" => {
            if value.is_boolean() {
                Some(value.clone())
            } else {
                below(value, at)
            }
        }
        "allOf" | "anyOf" | "oneOf" => {
            let all = value.as_array().filter(|all| !all.is_empty())?.iter();
            all.map(|one| below(one, SchemaPlace::Condition)).collect::<Option<_>>().map(Value::Array)
        }
        "not" => below(value, SchemaPlace::Condition),
        _ => is_said(key, value).then(|| value.clone()),
    }
}

/// Whether a keyword is one of those that are published, and has a value.
fn is_said(key: &str, value: &Value) -> bool {
    match key {
        "type"
        | "format"
        | "title"
        | "description"
        | "pattern"
        | "x-kubernetes-list-type"
        | "x-kubernetes-map-type" => value.as_str().is_some_and(|text| !text.is_empty()),
        "nullable"
        | "exclusiveMaximum"
        | "exclusiveMinimum"
        | "uniqueItems"
        | "x-kubernetes-preserve-unknown-fields"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => value == true,
        "required" | "enum" | "x-kubernetes-list-map-keys" | "x-kubernetes-validations" => {
            value.as_array().is_some_and(|items| !items.is_empty())
        }
        "default" | "example" | "externalDocs" | "maximum" | "minimum" | "multipleOf" | "maxLength" | "minLength"
        | "maxItems" | "minItems" | "maxProperties" | "minProperties" => !value.is_null(),
        _ => false,
    }
}

/// Spells the two types out where the schema does not do so itself.
fn unfold(schema: &mut Map<String, Value>) {
    let types = json!([{"type": "integer"}, {"type": "string"}]);
    let first = schema.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("anyOf"));
    if schema.get("anyOf") == Some(&types) || first == Some(&types) {
        return;
    }
    if !schema.contains_key("anyOf") {
        schema.insert("anyOf".to_owned(), types);
        return;
    }
    let rest = schema.remove("allOf").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    let all: Vec<Value> = std::iter::once(json!({"anyOf": types})).chain(rest).collect();
    schema.insert("allOf".to_owned(), Value::Array(all));
}

/// A published schema in the words of version 2: without conditions and defaults, and with nothing known about values
/// that may be null or that take unknown fields, because its clients would refuse them.
pub(super) fn reduce(mut schema: Map<String, Value>) -> Map<String, Value> {
    for key in ["allOf", "anyOf", "oneOf", "not", "default"] {
        schema.remove(key);
    }
    let is_open = schema.contains_key("x-kubernetes-preserve-unknown-fields");
    let is_nullable = schema.remove("nullable").is_some();
    if is_nullable || is_open {
        schema.remove("items");
        schema.remove("properties");
    }
    let type_ = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let has_no_items = type_ == "array" && !schema.contains_key("items");
    if is_nullable || has_no_items || (is_open && type_ == "object") {
        schema.remove("type");
    }
    forget_required(&mut schema);
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().flat_map(Map::values_mut).for_each(reduce_below);
    schema.get_mut("items").into_iter().for_each(reduce_below);
    schema.get_mut("additionalProperties").into_iter().for_each(reduce_below);
    schema
}

fn reduce_below(value: &mut Value) {
    if let Value::Object(schema) = value {
        *schema = reduce(std::mem::take(schema));
    }
}

/// Fields that may be null cannot be required.
fn forget_required(schema: &mut Map<String, Value>) {
    let is_nullable = |field: &Value| field["nullable"] == true;
    if schema.get("additionalProperties").is_some_and(is_nullable) {
        schema.remove("required");
    }
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let nullable: Vec<String> = fields.filter(|(_, field)| is_nullable(field)).map(|(name, _)| name.clone()).collect();
    let Some(Value::Array(required)) = schema.get_mut("required") else {
        return;
    };
    required.retain(|name| name.as_str().is_none_or(|name| !nullable.iter().any(|field| field == name)));
    if required.is_empty() {
        schema.remove("required");
    }
}

/// Whole objects inside of objects have a kind, a version and metadata, too.
pub(super) fn add_embedded(schema: &mut Map<String, Value>, metadata: &Value, target: OpenapiVersion) {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for below in fields.into_iter().flat_map(Map::values_mut) {
        add_embedded_below(below, metadata, target);
    }
    for key in ["items", "additionalProperties"] {
        schema.get_mut(key).into_iter().for_each(|below| add_embedded_below(below, metadata, target));
    }
    let is_open = schema.contains_key("x-kubernetes-preserve-unknown-fields");
    if !schema.contains_key("x-kubernetes-embedded-resource") || (is_open && target == OpenapiVersion::Version2) {
        return;
    }
    let fields = schema.entry("properties").or_insert_with(|| json!({}));
    let conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    fields["apiVersion"] = json!({"type": "string", "description": format!(
        "apiVersion defines the versioned schema of this representation of an object. More info: {conventions}#resources")});
    fields["kind"] = json!({"type": "string", "description": format!(
        "kind is a string value representing the type of this object. In CamelCase. More info: {conventions}#types-kinds")});
    fields["metadata"] = metadata.clone();
    let required = schema.entry("required").or_insert_with(|| json!([]));
    for field in ["kind", "apiVersion"] {
        if let Some(required) = required.as_array_mut().filter(|required| !required.contains(&json!(field))) {
            required.push(json!(field));
        }
    }
}

fn add_embedded_below(value: &mut Value, metadata: &Value, target: OpenapiVersion) {
    if let Value::Object(schema) = value {
        add_embedded(schema, metadata, target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(schema: Value) -> Value {
        Value::Object(publish(schema.as_object().expect("an object")))
    }

    fn reduced(schema: Value) -> Value {
        Value::Object(reduce(publish(schema.as_object().expect("an object"))))
    }

    #[test]
    fn keywords_without_a_value_are_left_out() {
        let schema = json!({"type": "object", "nullable": false, "required": [], "properties": {}, "default": null,
            "description": "", "maxProperties": 3, "additionalProperties": false});

        assert_eq!(published(schema), json!({"type": "object", "maxProperties": 3, "additionalProperties": false}));
    }

    #[test]
    fn both_types_of_a_value_are_spelled_out_once() {
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        let mark = |mut schema: Value| {
            schema["x-kubernetes-int-or-string"] = json!(true);
            published(schema)
        };

        assert_eq!(mark(json!({}))["anyOf"], types);
        assert_eq!(mark(json!({"anyOf": types})).get("allOf"), None);
        assert_eq!(mark(json!({"anyOf": [{"minimum": 3}]}))["allOf"], json!([{"anyOf": types}]));
    }

    #[test]
    fn version_2_knows_nothing_about_values_that_may_be_null() {
        let schema = json!({"type": "object", "required": ["a", "b"], "oneOf": [{"required": ["a"]}], "properties": {
            "a": {"type": "string", "nullable": true}, "b": {"type": "string", "default": "x"},
            "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"d": {"type": "string"}}},
        }});

        assert_eq!(
            reduced(schema),
            json!({"type": "object", "required": ["b"], "properties": {
                "a": {}, "b": {"type": "string"}, "c": {"x-kubernetes-preserve-unknown-fields": true},
            }})
        );
    }
}
