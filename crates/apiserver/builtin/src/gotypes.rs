//! How the Go types behind the built-in kinds treat JSON: the real server decodes every object into them and writes it
//! out again, which drops some empty values and adds others. `OpenAPI` tells nothing of it, so this is a table of its own.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

/// What is written for a field without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emit {
    /// Nothing: zero, `false`, `""`, empty lists and maps vanish.
    Omitted,
    /// The zero value.
    Always,
    /// Nothing where absent; zero values stay.
    Pointer,
    /// `null` where absent; zero values stay.
    Null,
}

/// A Go type as far as JSON is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Flag,
    Integer {
        bits: u8,
    },
    Float,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON, as in `runtime.RawExtension`.
    Raw,
    /// A struct with fields of its own.
    Struct(&'static str),
    /// A list of this.
    List(&'static Field),
    /// A map to this.
    Map(&'static Field),
}

/// One field, list item or map value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) emit: Emit,
    /// The type's name in messages, as `[]v1.Container`.
    pub(crate) go: &'static str,
    pub(crate) shape: Shape,
}

pub(crate) type Fields = HashMap<&'static str, Field>;

/// The fields of a struct; `None` for types that write their own JSON.
pub(crate) fn fields(definition: &str) -> Option<&'static Fields> {
    static STRUCTS: LazyLock<HashMap<&'static str, Fields>> = LazyLock::new(read);
    STRUCTS.get(definition)
}

/// The struct's name without its package, as messages have it.
pub(crate) fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

fn read() -> HashMap<&'static str, Fields> {
    type Rows<'a> = HashMap<&'a str, HashMap<&'a str, Vec<&'a str>>>;
    let rows: Rows<'static> =
        serde_json::from_str(include_str!("../data/gotypes.json")).expect("the generated data is JSON");
    let fields = |rows: HashMap<&'static str, Vec<&'static str>>| -> Fields {
        rows.into_iter().filter_map(|(name, row)| Some((name, field(&row)?))).collect()
    };
    rows.into_iter().map(|(definition, rows)| (definition, fields(rows))).collect()
}

fn field(row: &[&'static str]) -> Option<Field> {
    let emit = match *row.first()? {
        "o" => Emit::Omitted,
        "a" => Emit::Always,
        "n" => Emit::Null,
        _ => Emit::Pointer,
    };
    let go = *row.get(1)?;
    Some(Field { emit, go, shape: shape(go, row.get(2).copied()) })
}

/// The shape of a Go type, given the struct that stands in it.
fn shape(go: &'static str, inner: Option<&'static str>) -> Shape {
    let item = |go: &'static str| -> &'static Field {
        // The table is read once and lives as long as the program.
        Box::leak(Box::new(Field { emit: Emit::Pointer, go, shape: shape(go, inner) }))
    };
    if go == "[]uint8" || go == "json.RawMessage" {
        return Shape::Bytes;
    }
    if let Some(element) = go.strip_prefix("[]") {
        return Shape::List(item(element.trim_start_matches('*')));
    }
    if let Some(element) = go.strip_prefix("map[").and_then(|rest| rest.split_once(']')).map(|(_, element)| element) {
        return Shape::Map(item(element.trim_start_matches('*')));
    }
    match (go, inner) {
        ("v1.ResourceList", Some(_)) => Shape::Map(item("resource.Quantity")),
        ("v1.ValidationRules", Some(_)) => Shape::List(item("v1.ValidationRule")),
        ("v1.JSONSchemaDefinitions", Some(_)) => Shape::Map(item("v1.JSONSchemaProps")),
        ("v1.JSONSchemaDependencies", Some(_)) => Shape::Map(item("v1.JSONSchemaPropsOrStringArray")),
        ("v1.Time", _) => Shape::Time,
        ("v1.MicroTime", _) => Shape::MicroTime,
        ("resource.Quantity", _) => Shape::Quantity,
        ("intstr.IntOrString", _) => Shape::IntOrString,
        ("runtime.RawExtension" | "v1.FieldsV1" | "v1.JSON", _) => Shape::Raw,
        (raw, Some(_)) if raw.starts_with("v1.JSONSchemaPropsOr") => Shape::Raw,
        (_, Some(definition)) => Shape::Struct(definition),
        ("bool", None) => Shape::Flag,
        ("int32", None) => Shape::Integer { bits: 32 },
        ("int64" | "int", None) => Shape::Integer { bits: 64 },
        ("float64", None) => Shape::Float,
        ("v1.ExtraValue", None) => Shape::List(item("string")),
        _ => Shape::Text,
    }
}

/// The JSON of a type's zero value.
pub(crate) fn zero(shape: Shape) -> Value {
    match shape {
        Shape::Text => Value::from(""),
        Shape::Flag => Value::from(false),
        Shape::Integer { .. } | Shape::Float | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(_) => Value::Object(serde_json::Map::new()),
        Shape::Bytes | Shape::Time | Shape::MicroTime | Shape::Raw | Shape::List(_) | Shape::Map(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KINDS;

    #[test]
    fn every_kind_has_its_go_type() {
        for kind in KINDS {
            assert!(fields(kind.definition).is_some(), "{}", kind.definition);
        }
    }

    #[test]
    fn fields_tell_when_they_are_written() {
        let spec = fields("io.k8s.api.core.v1.PodSpec").unwrap();

        assert_eq!(spec["hostNetwork"], Field { emit: Emit::Omitted, go: "bool", shape: Shape::Flag });
        assert_eq!(spec["priority"].emit, Emit::Pointer);
        assert!(matches!(spec["containers"].shape, Shape::List(item) if item.go == "v1.Container"));
    }
}
