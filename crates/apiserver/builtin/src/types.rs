//! An object → the error that decoding it into its Go type gives, where a value has the wrong JSON type.
//!
//! Fields are looked at by name, not in the order of the request; with several errors the one that is reported may
//! differ from the real server's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::Kind;
use crate::canonical::{SCHEMA, SCHEMA_OR};
use crate::gotypes::{GoField, GoShape, fields, short};
use crate::quantity::problem;
use crate::time::parse_error;

/// Checks that every field has the JSON type that its Go type reads; the error is the message of the `400` answer.
pub fn check_types(kind: &Kind, object: &Value) -> Result<(), String> {
    let result = match object {
        Value::Object(_) => check_fields(kind.definition, object),
        other => Err(format!("json: cannot unmarshal {} into Go value of type {}", word(other), go_name(kind))),
    };
    let (version, kind) = (kind.version, kind.kind);
    result.map_err(|problem| format!("{kind} in version {version:?} cannot be handled as a {kind}: {problem}"))
}

/// Checks the fields of any definition; the error is what decoding says.
pub fn check_fields(definition: &str, object: &Value) -> Result<(), String> {
    check_struct(definition, object, &Place { holder: short(definition), parent: None, name: "" })
}

fn go_name(kind: &Kind) -> String {
    format!("{}.{}", kind.version, kind.kind)
}

/// Where a value stands: the struct that holds it, and the dotted way to it, without indices.
struct Place<'a> {
    holder: &'a str,
    parent: Option<&'a Place<'a>>,
    name: &'a str,
}

impl Place<'_> {
    fn path(&self) -> String {
        match self.parent.map(Place::path).filter(|path| !path.is_empty()) {
            Some(path) => format!("{path}.{}", self.name),
            None => self.name.to_owned(),
        }
    }

    fn mismatch(&self, what: &str, go: &str) -> String {
        format!("json: cannot unmarshal {what} into Go struct field {}.{} of type {go}", self.holder, self.path())
    }
}

/// What JSON calls a value.
pub(crate) fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_struct(definition: &str, object: &Value, place: &Place<'_>) -> Result<(), String> {
    let (Some(known), Some(map)) = (fields(definition), object.as_object()) else {
        return Ok(());
    };
    for (name, value) in map {
        if let Some(field) = known.get(name.as_str()) {
            check(field, value, &Place { holder: short(definition), parent: Some(place), name })?;
        }
    }
    Ok(())
}

fn check(field: &GoField, value: &Value, place: &Place<'_>) -> Result<(), String> {
    let wrong = || Err(place.mismatch(word(value), field.go));
    match (field.shape, value) {
        (GoShape::Raw, Value::Object(_)) if field.go.starts_with(SCHEMA_OR) => check_struct(SCHEMA, value, place),
        (GoShape::Raw, Value::Array(items)) if field.go.starts_with(SCHEMA_OR) => {
            items.iter().try_for_each(|item| check_struct(SCHEMA, item, place))
        }
        (_, Value::Null)
        | (GoShape::Raw, _)
        | (GoShape::Text | GoShape::IntOrString, Value::String(_))
        | (GoShape::Flag, Value::Bool(_))
        | (GoShape::Float, Value::Number(_))
        | (GoShape::Bytes, Value::Array(_)) => Ok(()),
        (GoShape::Integer { bits }, Value::Number(number)) => integer(number, bits, field.go, place),
        (GoShape::IntOrString, Value::Number(number)) => integer(number, 32, "int32", place),
        (GoShape::IntOrString, _) => Err(place.mismatch(word(value), "int32")),
        (GoShape::Bytes, Value::String(text)) => bytes(text),
        (GoShape::Time, Value::String(text)) => time(text, "2006-01-02T15:04:05Z07:00"),
        (GoShape::MicroTime, Value::String(text)) => time(text, "2006-01-02T15:04:05.000000Z07:00"),
        (GoShape::Time | GoShape::MicroTime, _) => Err(place.mismatch(word(value), "string")),
        (GoShape::Quantity, _) => problem(value).map_or(Ok(()), |problem| Err(problem.to_owned())),
        (GoShape::Struct(definition), Value::Object(_)) => check_struct(definition, value, place),
        (GoShape::List(item), Value::Array(items)) => items.iter().try_for_each(|inner| check(item, inner, place)),
        (GoShape::Map(item), Value::Object(map)) => map.values().try_for_each(|inner| check(item, inner, place)),
        (
            GoShape::Text
            | GoShape::Flag
            | GoShape::Integer { .. }
            | GoShape::Float
            | GoShape::Bytes
            | GoShape::Struct(_)
            | GoShape::List(_)
            | GoShape::Map(_),
            _,
        ) => wrong(),
    }
}

fn integer(number: &serde_json::Number, bits: u8, go: &str, place: &Place<'_>) -> Result<(), String> {
    let fits = number.as_i64().is_some_and(|value| bits == 64 || i32::try_from(value).is_ok());
    if fits { Ok(()) } else { Err(place.mismatch(&format!("number {number}"), go)) }
}

pub(crate) fn bytes(text: &str) -> Result<(), String> {
    let clean: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match STANDARD.decode(&clean) {
        Ok(_) => Ok(()),
        Err(base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _)) => {
            Err(format!("illegal base64 data at input byte {at}"))
        }
        Err(_) => Err(format!("illegal base64 data at input byte {}", clean.trim_end_matches('=').len() / 4 * 4)),
    }
}

pub(crate) fn time(text: &str, layout: &str) -> Result<(), String> {
    parse_error(text, layout).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::find;

    #[test]
    fn a_number_where_a_string_belongs_is_named_with_its_field() {
        let error = check_types(find("", "v1", "ConfigMap").unwrap(), &json!({"data": {"a": 1}})).unwrap_err();

        assert_eq!(
            error,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct \
             field ConfigMap.data of type string"
        );
    }

    #[test]
    fn a_deep_field_is_named_by_its_struct_and_its_whole_path() {
        let pod = json!({"spec": {"containers": [{"env": [{"value": true}]}]}});

        let error = check_types(find("", "v1", "Pod").unwrap(), &pod).unwrap_err();

        assert!(
            error.ends_with(
                "cannot unmarshal bool into Go struct field EnvVar.spec.containers.env.value of type string"
            )
        );
    }
}
