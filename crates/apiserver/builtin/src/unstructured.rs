//! A patched object → the same as its Go type takes it over from a map, or the error that this gives.
//!
//! The real server does not decode the outcome of a strategic merge patch: it copies the map into the Go type, with other
//! words for what does not fit, and without a look at the size of numbers. Fields are looked at by name; with several
//! errors the one that is reported may differ from the real server's.

use serde_json::{Number, Value};

use crate::gotypes::{GoField, GoShape, fields};
use crate::quantity::problem;
use crate::types::{bytes, time, word};

/// Takes over an object of a definition.
pub fn take_over(definition: &str, object: &mut Value) -> Result<(), String> {
    let Some(map) = object.as_object_mut() else {
        return Err(format!("cannot restore struct from: {}", kind_of(object)));
    };
    let Some(known) = fields(definition) else { return Ok(()) };
    map.iter_mut().filter_map(|(name, value)| Some((known.get(name.as_str())?, value))).try_for_each(take)
}

fn take((field, value): (&GoField, &mut Value)) -> Result<(), String> {
    match (field.shape, &mut *value) {
        (_, Value::Null)
        | (GoShape::Raw, _)
        | (GoShape::Text | GoShape::IntOrString, Value::String(_))
        | (GoShape::Flag, Value::Bool(_))
        | (GoShape::Float, Value::Number(_))
        | (GoShape::Bytes, Value::Array(_)) => Ok(()),
        (GoShape::Struct(definition), _) => take_over(definition, value),
        (GoShape::List(item), Value::Array(items)) => items.iter_mut().map(|inner| (item, inner)).try_for_each(take),
        (GoShape::Map(item), Value::Object(map)) => map.values_mut().map(|inner| (item, inner)).try_for_each(take),
        (GoShape::Integer { bits }, Value::Number(number)) => {
            *value = integer(number, bits, field.go)?;
            Ok(())
        }
        (GoShape::Text, Value::Number(number)) if number.is_i64() => {
            Err(format!("cannot convert int64 to {}", field.go))
        }
        (GoShape::Bytes, Value::String(text)) => {
            bytes(text).map_err(|error| format!("error decoding from json: {error}"))
        }
        (GoShape::Time | GoShape::MicroTime | GoShape::Quantity | GoShape::IntOrString, _) => {
            decode(field.shape, value)
        }
        (GoShape::List(_) | GoShape::Bytes, _) => Err(format!("cannot restore slice from {}", kind_of(value))),
        (GoShape::Map(_), _) => Err(format!("cannot restore map from {}", kind_of(value))),
        (GoShape::Text, _) => Err("unrecognized type: string".to_owned()),
        (GoShape::Flag | GoShape::Integer { .. } | GoShape::Float, _) => {
            Err(format!("unrecognized type: {}", field.go))
        }
    }
}

/// A whole number, cut to the bits that there is room for.
fn integer(number: &Number, bits: u8, go: &str) -> Result<Value, String> {
    let whole = |float: &f64| float.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, reason = "a number that is too large is cut, as in Go")]
    let value = number.as_i64().or_else(|| number.as_f64().filter(whole).map(|float| float as i64));
    let value = value.ok_or_else(|| format!("cannot convert float64 to {go}"))?;
    #[expect(clippy::cast_possible_truncation, reason = "a number that is too large is cut, as in Go")]
    let value = if bits == 32 { i64::from(value as i32) } else { value };
    Ok(Value::from(value))
}

/// Types that read their own JSON.
fn decode(shape: GoShape, value: &Value) -> Result<(), String> {
    let mismatch = |what: &str, go: &str| Err(format!("json: cannot unmarshal {what} into Go value of type {go}"));
    match (shape, value) {
        (GoShape::Quantity, _) => problem(value).map_or(Ok(()), |problem| Err(problem.to_owned())),
        (GoShape::Time, Value::String(text)) => time(text, "2006-01-02T15:04:05Z07:00"),
        (GoShape::MicroTime, Value::String(text)) => time(text, "2006-01-02T15:04:05.000000Z07:00"),
        (GoShape::Time | GoShape::MicroTime, _) => mismatch(word(value), "string"),
        (_, Value::Number(number)) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => Ok(()),
        (_, Value::Number(number)) => mismatch(&format!("number {number}"), "int32"),
        _ => mismatch(word(value), "int32"),
    }
}

/// What Go's reflection calls a value.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";

    fn error(mut object: Value) -> String {
        take_over(DEPLOYMENT, &mut object).unwrap_err()
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_go_type() {
        assert_eq!(error(json!({"spec": 1})), "cannot restore struct from: int64");
        assert_eq!(error(json!({"spec": {"replicas": "1"}})), "unrecognized type: int32");
        assert_eq!(error(json!({"spec": {"replicas": 1.5}})), "cannot convert float64 to int32");
        assert_eq!(error(json!({"metadata": {"labels": []}})), "cannot restore map from slice");
        assert_eq!(error(json!({"metadata": {"labels": {"a": 1}}})), "cannot convert int64 to string");
        assert_eq!(error(json!({"metadata": {"labels": {"a": true}}})), "unrecognized type: string");
        assert_eq!(error(json!({"metadata": {"finalizers": "a"}})), "cannot restore slice from string");
        assert_eq!(
            error(json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": true}}}})),
            "json: cannot unmarshal bool into Go value of type int32"
        );
    }

    #[test]
    fn a_named_type_of_texts_is_named() {
        let pod = json!({"spec": {"template": {"spec": {"dnsPolicy": 5}}}});

        assert_eq!(error(pod), "cannot convert int64 to v1.DNSPolicy");
    }

    #[test]
    fn a_number_that_is_too_large_is_cut() {
        let mut object = json!({"spec": {"replicas": 4_294_967_299_i64, "progressDeadlineSeconds": null}});

        take_over(DEPLOYMENT, &mut object).unwrap();

        assert_eq!(object, json!({"spec": {"replicas": 3, "progressDeadlineSeconds": null}}));
    }
}
