//! An object → the object as the real server writes it after decoding it into its Go type: absent structs appear,
//! empty optional values vanish, quantities and times take their canonical form. Unknown fields stay as they are.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use crate::Kind;
use crate::gotypes::{Emit, GoField, GoShape, fields, zero};
use crate::quantity::{written, written_resource};

/// Types that hold a schema or something simpler.
pub(crate) const SCHEMA_OR: &str = "v1.JSONSchemaPropsOr";
pub(crate) const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Brings an object of a built-in kind into its canonical form.
pub fn canonicalize(kind: &Kind, object: &mut Value) {
    canonicalize_as(kind.definition, object);
}

/// The same for any definition of the Go types, such as `io.k8s.api.core.v1.PodSpec`.
pub(crate) fn canonicalize_as(definition: &str, object: &mut Value) {
    let (Some(known), Some(map)) = (fields(definition), object.as_object_mut()) else {
        return;
    };
    for (name, field) in known {
        if let Some(value) = map.get_mut(*name).filter(|value| !value.is_null()) {
            canonical(field, value);
        }
        let zero_now = map.get(*name).is_none_or(|value| is_zero(field.shape, value));
        match (field.emit, zero_now) {
            (Emit::Always, true) => {
                let mut value = zero(field.shape);
                canonical(field, &mut value);
                map.insert((*name).to_owned(), value);
            }
            (Emit::Omitted, true) => {
                map.remove(*name);
            }
            (Emit::Pointer, true) => {
                if map.get(*name).is_some_and(Value::is_null) {
                    map.remove(*name);
                }
            }
            (Emit::Null, true) => {
                map.entry(*name).or_insert(Value::Null);
            }
            (_, false) => {}
        }
    }
}

/// Whether Go would hold the type's zero value.
fn is_zero(shape: GoShape, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() && matches!(shape, GoShape::Text | GoShape::Bytes),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0) && !matches!(shape, GoShape::IntOrString),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(shape, GoShape::Map(_) | GoShape::Struct(_)),
    }
}

fn canonical(field: &GoField, value: &mut Value) {
    match field.shape {
        GoShape::Struct(definition) => canonicalize_as(definition, value),
        GoShape::List(item) => value.as_array_mut().into_iter().flatten().for_each(|inner| element(item, inner)),
        GoShape::Map(GoField { shape: GoShape::Quantity, .. }) if field.go == "v1.ResourceList" => {
            value.as_object_mut().into_iter().flatten().for_each(|(_, amount)| resource(amount));
        }
        GoShape::Map(item) => {
            value.as_object_mut().into_iter().flatten().for_each(|(_, inner)| element(item, inner));
        }
        GoShape::Quantity => {
            if let Some(text) = written(value) {
                *value = text.into();
            }
        }
        GoShape::Time => time(value, "%Y-%m-%dT%H:%M:%SZ"),
        GoShape::MicroTime => time(value, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        GoShape::Raw if field.go.starts_with(SCHEMA_OR) => match value {
            Value::Array(items) => items.iter_mut().for_each(|item| canonicalize_as(SCHEMA, item)),
            other => canonicalize_as(SCHEMA, other),
        },
        GoShape::Text
        | GoShape::Flag
        | GoShape::Integer { .. }
        | GoShape::Float
        | GoShape::Bytes
        | GoShape::IntOrString
        | GoShape::Raw => {}
    }
}

/// An amount of a resource: never finer than a thousandth.
fn resource(amount: &mut Value) {
    if let Some(text) = written_resource(amount) {
        *amount = text.into();
    }
}

/// An item of a list or map: `null` is the zero value there.
fn element(field: &GoField, value: &mut Value) {
    if value.is_null() {
        *value = zero(field.shape);
    }
    canonical(field, value);
}

fn time(value: &mut Value, format: &str) {
    let parsed = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    if let Some(timestamp) = parsed {
        *value = timestamp.to_zoned(TimeZone::UTC).strftime(format).to_string().into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::find;

    #[test]
    fn absent_structs_appear_and_empty_options_vanish() {
        let kind = find("", "v1", "Pod").unwrap();
        let mut pod = json!({"metadata": {"name": "x", "labels": {}}, "spec": {"hostNetwork": false, "priority": 0,
            "containers": [{"name": "c", "env": [{"name": "A", "value": ""}], "resources": {"limits": {"cpu": 1000}}}]}});

        canonicalize(kind, &mut pod);

        assert_eq!(
            pod,
            json!({"metadata": {"name": "x"}, "status": {}, "spec": {"priority": 0,
                "containers": [{"name": "c", "env": [{"name": "A"}], "resources": {"limits": {"cpu": "1k"}}}]}})
        );
    }

    #[test]
    fn schemas_lose_what_is_empty_wherever_they_stand() {
        let schema = json!({"type": "object", "nullable": false, "maxLength": 0});
        let mut definition = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
            "additionalProperties": schema, "items": schema, "not": {"properties": {"a": {"additionalProperties": false}}},
        }}}]}});

        canonicalize(find("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap(), &mut definition);

        let kept = json!({"type": "object", "maxLength": 0});
        let shown = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!((&shown["additionalProperties"], &shown["items"]), (&kept, &kept));
        assert_eq!(shown["not"]["properties"]["a"], json!({"additionalProperties": false}));
    }

    #[test]
    fn fields_that_are_always_written_appear_with_their_zero_value() {
        let mut role = json!({"metadata": {"name": "x"}});
        let mut event = json!({"metadata": {"name": "x"}, "eventTime": "2026-01-01T01:00:00+01:00"});

        canonicalize(find("rbac.authorization.k8s.io", "v1", "Role").unwrap(), &mut role);
        canonicalize(find("", "v1", "Event").unwrap(), &mut event);

        assert_eq!(role["rules"], json!(null));
        assert!(role.as_object().unwrap().contains_key("rules"));
        assert_eq!(event["reportingComponent"], json!(""));
        assert_eq!(event["eventTime"], json!("2026-01-01T00:00:00.000000Z"));
    }
}
