//! What makes a schema structural: every field has a type, junctors only constrain, metadata stays implicit.

use serde_json::{Map, Value, json};

use super::{flag, list, text};
use crate::field::{FieldError, Path};
use crate::re2;

/// Where in the schema a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

/// What is not structural, sorted by message.
pub(super) fn validate(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, SchemaLevel::Root, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn property<'v>(schema: &'v Value, name: &str) -> Option<&'v Value> {
    schema.get("properties").and_then(|properties| properties.get(name))
}

/// The schema of `items`, where it is one.
fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|items| items.is_object())
}

/// The schema of `additionalProperties`, where it is one.
fn values(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

fn has_additional(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(|a| !a.is_null())
}

fn invariants(schema: &Value, level: SchemaLevel, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if text(schema.get("type")) == "array" && items(schema).is_none() {
        errors.push(FieldError::required(&path.field("items"), "must be specified"));
    }
    if let Some(items) = items(schema) {
        invariants(items, SchemaLevel::Item, &path.field("items"), errors);
    }
    for (name, property) in properties(schema) {
        invariants(property, SchemaLevel::Field, &path.field("properties").key(name), errors);
    }
    if has_additional(schema) && level == SchemaLevel::Root {
        errors.push(FieldError::forbidden(&path.field("additionalProperties"), "must not be used at the root"));
    }
    if let Some(values) = values(schema) {
        invariants(values, SchemaLevel::Field, &path.field("additionalProperties"), errors);
    }
    extensions(schema, path, errors);
    let first_all_of = list(schema.get("allOf")).first().is_some_and(is_int_or_string);
    constraints(schema, is_int_or_string(schema), first_all_of, path, errors);
    type_given(schema, level, path, errors);
    meta(schema, level, path, errors);
}

fn extensions(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !flag(schema.get("x-kubernetes-int-or-string")) {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema.get(name)) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&path.field(name), &json!(true), detail));
        }
    }
}

/// `anyOf` of exactly an integer and a string, the usual form of int-or-string.
fn is_int_or_string(schema: &Value) -> bool {
    schema.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn type_given(schema: &Value, level: SchemaLevel, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let type_ = text(schema.get("type"));
    let embedded = flag(schema.get("x-kubernetes-embedded-resource"));
    let untyped = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    let type_path = path.field("type");
    if embedded && type_ != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match type_ {
            "" => FieldError::required(&type_path, detail),
            other => FieldError::invalid(&type_path, &json!(other), detail),
        });
    } else if type_.is_empty() && !untyped.iter().any(|name| flag(schema.get(*name))) {
        let detail = match level {
            SchemaLevel::Root => "must not be empty at the root",
            SchemaLevel::Item => "must not be empty for specified array items",
            SchemaLevel::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&type_path, detail));
    }
    if embedded && has_additional(schema) {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.field("additionalProperties"), detail));
    }
    if level == SchemaLevel::Root && !type_.is_empty() && type_ != "object" {
        errors.push(FieldError::invalid(&type_path, &json!(type_), "must be object at the root"));
    }
}

fn meta(schema: &Value, level: SchemaLevel, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let embedded = flag(schema.get("x-kubernetes-embedded-resource"));
    let properties_path = path.field("properties");
    if level == SchemaLevel::Root || embedded {
        for (name, wanted, detail) in [
            ("kind", "string", "must be string"),
            ("apiVersion", "string", "must be string"),
            ("metadata", "object", "must be object"),
        ] {
            let Some(property) = property(schema, name) else {
                continue;
            };
            let type_ = text(property.get("type"));
            if type_ != wanted {
                errors.push(FieldError::invalid(&properties_path.key(name).field("type"), &json!(type_), detail));
            }
        }
    }
    if level == SchemaLevel::Root && property(schema, "metadata").is_some_and(|metadata| !is_implicit(metadata)) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(&properties_path.key("metadata"), detail));
    }
    let kept = flag(schema.get("x-kubernetes-preserve-unknown-fields"));
    if embedded && !kept && properties(schema).next().is_none() {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&properties_path, detail));
    }
}

/// Whether a schema of `metadata` says nothing but what holds for names.
fn is_implicit(metadata: &Value) -> bool {
    let Some(keywords) = metadata.as_object() else {
        return true;
    };
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "default" => true,
        "properties" => {
            value.as_object().is_none_or(|fields| fields.keys().all(|name| name == "name" || name == "generateName"))
        }
        _ => value.is_null(),
    })
}

/// The patterns and junctors of a schema.
fn constraints(schema: &Value, skip_any_of: bool, skip_first: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (keyword, skipped) in [("anyOf", skip_any_of), ("allOf", false), ("oneOf", false)] {
        let path = path.field(keyword);
        for (index, junctor) in list(schema.get(keyword)).iter().enumerate().filter(|_| !skipped) {
            nested(junctor, skip_first && keyword == "allOf" && index == 0, &path.index(index), errors);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
        nested(not, false, &path.field("not"), errors);
    }
    let pattern = text(schema.get("pattern"));
    if let Err(why) = re2::compile(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(&path.field("pattern"), &json!(pattern), detail));
    }
}

/// A schema inside a junctor may constrain values, not describe them.
fn nested(schema: &Value, skip_any_of: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    constraints(schema, skip_any_of, false, path, errors);
    if let Some(items) = items(schema) {
        nested(items, false, &path.field("items"), errors);
    }
    for (name, property) in properties(schema) {
        nested(property, false, &path.field("properties").key(name), errors);
    }
    let empty = Map::new();
    let keywords = schema.as_object().unwrap_or(&empty);
    let mut forbid = |name: &str, set: bool, detail: &str| {
        if set {
            errors.push(FieldError::forbidden(&path.field(name), detail));
        }
    };
    let texts = |name: &str| !text(keywords.get(name)).is_empty();
    let set = |name: &str| keywords.get(name).is_some_and(|value| !value.is_null());
    forbid("type", texts("type"), "must be empty to be structural");
    let additional = values(schema).is_some() || flag(keywords.get("additionalProperties"));
    forbid("additionalProperties", additional, "must be undefined to be structural");
    forbid("default", set("default"), "must be undefined to be structural");
    forbid("title", texts("title"), "must be empty to be structural");
    forbid("description", texts("description"), "must be empty to be structural");
    forbid("nullable", flag(keywords.get("nullable")), "must be false to be structural");
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"]
    {
        forbid(name, flag(keywords.get(name)), "must be false to be structural");
    }
    let keys = !list(keywords.get("x-kubernetes-list-map-keys")).is_empty();
    forbid("x-kubernetes-list-map-keys", keys, "must be empty to be structural");
    forbid("x-kubernetes-list-type", texts("x-kubernetes-list-type"), "must be undefined to be structural");
    forbid("x-kubernetes-map-type", texts("x-kubernetes-map-type"), "must be undefined to be structural");
    let rules = !list(keywords.get("x-kubernetes-validations")).is_empty();
    forbid("x-kubernetes-validations", rules, "must be empty to be structural");
    if property(schema, "metadata").is_some() {
        let properties = path.field("properties");
        errors.push(FieldError::forbidden(&properties.key("metadata"), "must not be specified in a nested context"));
    }
}

/// Whatever a junctor speaks of is described outside of it.
fn complete(
    constrained: &Value,
    described: Option<&Value>,
    described_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = constrained.get("not").filter(|not| not.is_object()) {
        complete_nested(not, described, described_path, &path.field("not"), errors);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let path = path.field(keyword);
        for (index, junctor) in list(constrained.get(keyword)).iter().enumerate() {
            complete_nested(junctor, described, described_path, &path.index(index), errors);
        }
    }
}

fn complete_nested(
    constrained: &Value,
    described: Option<&Value>,
    described_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let because = |path: &Path<'_>| format!("because it is defined in {path}");
    let Some(schema) = described else {
        errors.push(FieldError::required(described_path, because(path)));
        return;
    };
    complete(constrained, described, described_path, path, errors);
    if let Some(inner) = items(constrained) {
        complete_nested(inner, items(schema), &described_path.field("items"), &path.field("items"), errors);
    }
    for (name, inner) in properties(constrained) {
        let (described_properties, inner_properties) = (described_path.field("properties"), path.field("properties"));
        let (described_path, path) = (described_properties.key(name), inner_properties.key(name));
        match property(schema, name) {
            None => errors.push(FieldError::required(&described_path, because(&path))),
            found => complete_nested(inner, found, &described_path, &path, errors),
        }
    }
}
