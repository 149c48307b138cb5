//! Request bodies → JSON values, with the fields that stood twice.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::status::ApiError;

/// A body that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// Paths of fields that stood twice; the last one counts.
    pub(crate) duplicates: Vec<String>,
}

/// The forms that a body may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Json,
    Yaml,
    Protobuf,
}

/// The form that a `Content-Type` names.
pub(crate) fn body_format(content_type: &str) -> Result<BodyFormat, ApiError> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => Ok(BodyFormat::Json),
        "application/yaml" => Ok(BodyFormat::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(BodyFormat::Protobuf),
        _ => Err(ApiError::unsupported_media_type(&crate::negotiate::MEDIA_TYPES)),
    }
}

/// What JSON calls a value.
pub(crate) fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Reads a body.
pub(crate) fn decode(body: &[u8], format: BodyFormat) -> Result<Decoded, String> {
    match format {
        BodyFormat::Json => decode_json(body),
        BodyFormat::Yaml => decode_yaml(body),
        BodyFormat::Protobuf => decode_protobuf(body),
    }
}

/// Protocol buffers say themselves what they are; where the request says it too, see `call/protobuf.rs`.
fn decode_protobuf(body: &[u8]) -> Result<Decoded, String> {
    let object = portolan_protobuf::Envelope::open(body).and_then(|envelope| envelope.object());
    Ok(Decoded { value: object.map_err(|error| error.to_string())?, duplicates: Vec::new() })
}

fn decode_json(body: &[u8]) -> Result<Decoded, String> {
    let mut duplicates = Vec::new();
    let mut path = String::new();
    // Bytes that are no text are replaced, not refused.
    let text = String::from_utf8_lossy(body);
    let text = without_lone_surrogates(&text);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let node = ValueSeed { path: &mut path, duplicates: &mut duplicates };
    let value = node.deserialize(&mut deserializer).map_err(|e| json_error(&e))?;
    deserializer.end().map_err(|_| "invalid character after top-level value".to_owned())?;
    Ok(Decoded { value, duplicates })
}

/// Half a surrogate pair stands for no character: it becomes the replacement character, as in Go.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let width = match (c, unit(at)) {
            ('\\', Some(0xD800..=0xDBFF)) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            ('\\', Some(0xD800..=0xDFFF)) => {
                clean.push('\u{FFFD}');
                at += 6;
                continue;
            }
            // An escaped backslash is no start of an escape.
            ('\\', None) => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            _ => c.len_utf8(),
        };
        clean.push_str(&text[at..at + width]);
        at += width;
    }
    Cow::Owned(clean)
}

fn json_error(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

fn decode_yaml(body: &[u8]) -> Result<Decoded, String> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::options::DuplicateKeyPolicy::LastWins;
    let value: Value = serde_saphyr::from_slice_with_options(body, options)
        .map_err(|e| format!("error converting YAML to JSON: {e}"))?;
    Ok(Decoded { value: canonical_numbers(value), duplicates: Vec::new() })
}

/// A number as it is written back: `1.0` is `1`.
fn canonical_number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within what a double holds exactly")]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Every number as it is written back.
fn canonical_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => canonical_number(float),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(canonical_numbers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, canonical_numbers(value))).collect(),
        other => other,
    }
}

/// Builds a value and notes the keys that stand twice.
struct ValueSeed<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(canonical_number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let length = self.path.len();
        loop {
            let _ = write!(self.path, "[{}]", list.len());
            let item = items.next_element_seed(ValueSeed { path: self.path, duplicates: self.duplicates })?;
            self.path.truncate(length);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        let length = self.path.len();
        while let Some(key) = fields.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            let value = fields.next_value_seed(ValueSeed { path: self.path, duplicates: self.duplicates })?;
            if object.insert(key, value).is_some() {
                self.duplicates.push(self.path.clone());
            }
            self.path.truncate(length);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_stand_twice_are_named_and_the_last_counts() {
        let body = br#"{"a":1,"b":{"c":1,"c":2},"l":[{"x":1,"x":2}],"a":3}"#;

        let decoded = decode(body, BodyFormat::Json).unwrap();

        assert_eq!(decoded.value, json!({"a": 3, "b": {"c": 2}, "l": [{"x": 2}]}));
        assert_eq!(decoded.duplicates, ["b.c", "l[0].x", "a"]);
    }

    #[test]
    fn malformed_bodies_are_errors_not_panics() {
        let deep = "[".repeat(100_000);
        for body in ["", "{", "{]", "nul", "{\"a\":1}x", deep.as_str(), "\u{0}"] {
            assert!(decode(body.as_bytes(), BodyFormat::Json).is_err(), "{body:.10}");
        }
        assert!(decode(b"a: [", BodyFormat::Yaml).is_err());
        assert!(decode(&[0xff, 0xfe, 0x00], BodyFormat::Yaml).is_err());
    }

    #[test]
    fn yaml_is_read_as_json() {
        let decoded = decode(b"a: 1\nb: [x, \"2\"]\nc: yes\n", BodyFormat::Yaml).unwrap();

        assert_eq!(decoded.value["b"], json!(["x", "2"]));
    }
}
