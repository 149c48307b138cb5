//! Derived JSON schemas → schemas as Kubernetes and users want them: rules with a sentence each, and no `null`.

use std::borrow::Cow;

use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A CEL rule and the sentence for whoever breaks it: what to write instead.
pub type CelRule = (&'static str, &'static str);

/// Adds CEL rules to the schema of a struct or field.
pub fn rules(rules: &'static [CelRule]) -> impl FnMut(&mut Schema) {
    move |schema| {
        let all = rules.iter().map(|(rule, message)| json!({ "rule": rule, "message": message }));
        let there = schema.ensure_object().entry("x-kubernetes-validations").or_insert_with(|| json!([]));
        if let Value::Array(there) = there {
            there.extend(all);
        }
    }
}

/// An object whose fields are somebody else's business: it is stored as it is written.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A list of conditions, of which each writer owns those of its own types.
pub fn conditions(schema: &mut Schema) {
    let list = schema.ensure_object();
    list.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    list.insert("x-kubernetes-list-map-keys".to_owned(), json!(["type"]));
}

/// A field of a status that is always written, but that nobody else has to write.
pub fn no_default(schema: &mut Schema) {
    schema.remove("default");
}

/// A number, or a text for the record types that have one there.
pub fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "x-kubernetes-int-or-string": true })
}

/// The schema of [`any_object`], for places that name a type, as items of a list.
#[derive(Clone, Copy, Debug)]
pub struct AnyObject;

/// The schema of [`int_or_string`], for places that name a type, as values of a map.
#[derive(Clone, Copy, Debug)]
pub struct IntOrString;

macro_rules! stands_for {
    ($($name:ident = $schema:ident;)+) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $schema(generator)
            }
        }
    )+};
}

stands_for! {
    AnyObject = any_object;
    IntOrString = int_or_string;
}

/// What an optional field may hold is what it may hold when it is there: a `null` in a manifest is as good as nothing,
/// and the API server drops it where the schema does not allow it. Enumerations lose the descriptions of their values,
/// which structural schemas have no place for.
pub fn plain(schema: &mut Schema) {
    transform_subschemas(&mut plain, schema);
    let Some(object) = schema.as_object_mut() else { return };
    join_choices(object);
    drop_null(object);
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if object.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        object.remove("format");
    }
}

/// `oneOf` single values → `enum`.
fn join_choices(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let value = |choice: &Value| {
        choice.get("const").cloned().map(|one| vec![one]).or_else(|| choice.get("enum")?.as_array().cloned())
    };
    let Some(values) = choices.iter().map(value).collect::<Option<Vec<_>>>() else { return };
    object.remove("oneOf");
    object.insert("type".to_owned(), json!("string"));
    object.insert("enum".to_owned(), values.concat().into());
}

fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |schema: &Value| schema.get("type").is_some_and(|name| name == "null");
    let Some(Value::Array(choices)) = object.get("anyOf") else { return };
    let (nulls, others): (Vec<_>, Vec<_>) = choices.iter().cloned().partition(is_null);
    if let ([_], [Value::Object(inner)]) = (nulls.as_slice(), others.as_slice()) {
        object.remove("anyOf");
        merge(object, inner.clone());
    }
}

/// What the field itself says stays; rules of both are kept.
fn merge(outer: &mut Map<String, Value>, inner: Map<String, Value>) {
    for (key, value) in inner {
        match (outer.get_mut(&key), value) {
            (Some(Value::Array(there)), Value::Array(more)) if key == "x-kubernetes-validations" => there.extend(more),
            (Some(_), _) => {}
            (None, value) => drop(outer.insert(key, value)),
        }
    }
}
