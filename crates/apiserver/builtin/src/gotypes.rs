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
pub(crate) enum GoShape {
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
    List(&'static GoField),
    /// A map to this.
    Map(&'static GoField),
}

/// One field, list item or map value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoField {
    pub(crate) emit: Emit,
    /// The type's name in messages, as `[]v1.Container`.
    pub(crate) go: &'static str,
    pub(crate) shape: GoShape,
}

pub(crate) type GoFields = HashMap<&'static str, GoField>;

/// The fields of a struct; `None` for types that write their own JSON.
pub(crate) fn fields(definition: &str) -> Option<&'static GoFields> {
    static STRUCTS: LazyLock<HashMap<&'static str, GoFields>> = LazyLock::new(read);
    STRUCTS.get(definition)
}

/// The struct's name without its package, as messages have it.
pub(crate) fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

fn read() -> HashMap<&'static str, GoFields> {
    type Rows<'a> = HashMap<&'a str, HashMap<&'a str, Vec<&'a str>>>;
    let rows: Rows<'static> =
        serde_json::from_str(include_str!("../data/gotypes.json")).expect("the generated data is JSON");
    let fields = |rows: HashMap<&'static str, Vec<&'static str>>| -> GoFields {
        rows.into_iter().filter_map(|(name, row)| Some((name, field(&row)?))).collect()
    };
    rows.into_iter().map(|(definition, rows)| (definition, fields(rows))).collect()
}

fn field(row: &[&'static str]) -> Option<GoField> {
    let emit = match *row.first()? {
        "o" => Emit::Omitted,
        "a" => Emit::Always,
        "n" => Emit::Null,
        _ => Emit::Pointer,
    };
    let go = *row.get(1)?;
    Some(GoField { emit, go, shape: shape(go, row.get(2).copied()) })
}

/// The shape of a Go type, given the struct that stands in it.
fn shape(go: &'static str, inner: Option<&'static str>) -> GoShape {
    let item = |go: &'static str| -> &'static GoField {
        // The table is read once and lives as long as the program.
        Box::leak(Box::new(GoField { emit: Emit::Pointer, go, shape: shape(go, inner) }))
    };
    if go == "[]uint8" || go == "json.RawMessage" {
        return GoShape::Bytes;
    }
    if let Some(element) = go.strip_prefix("[]") {
        return GoShape::List(item(element.trim_start_matches('*')));
    }
    if let Some(element) = go.strip_prefix("map[").and_then(|rest| rest.split_once(']')).map(|(_, element)| element) {
        return GoShape::Map(item(element.trim_start_matches('*')));
    }
    match (go, inner) {
        ("v1.ResourceList", Some(_)) => GoShape::Map(item("resource.Quantity")),
        ("v1.ValidationRules", Some(_)) => GoShape::List(item("v1.ValidationRule")),
        ("v1.JSONSchemaDefinitions", Some(_)) => GoShape::Map(item("v1.JSONSchemaProps")),
        ("v1.JSONSchemaDependencies", Some(_)) => GoShape::Map(item("v1.JSONSchemaPropsOrStringArray")),
        ("v1.Time", _) => GoShape::Time,
        ("v1.MicroTime", _) => GoShape::MicroTime,
        ("resource.Quantity", _) => GoShape::Quantity,
        ("intstr.IntOrString", _) => GoShape::IntOrString,
        ("runtime.RawExtension" | "v1.FieldsV1" | "v1.JSON", _) => GoShape::Raw,
        (raw, Some(_)) if raw.starts_with("v1.JSONSchemaPropsOr") => GoShape::Raw,
        (_, Some(definition)) => GoShape::Struct(definition),
        ("bool", None) => GoShape::Flag,
        ("int32", None) => GoShape::Integer { bits: 32 },
        ("int64" | "int", None) => GoShape::Integer { bits: 64 },
        ("float64", None) => GoShape::Float,
        ("v1.ExtraValue", None) => GoShape::List(item("string")),
        _ => GoShape::Text,
    }
}

/// The JSON of a type's zero value.
pub(crate) fn zero(shape: GoShape) -> Value {
    match shape {
        GoShape::Text => Value::from(""),
        GoShape::Flag => Value::from(false),
        GoShape::Integer { .. } | GoShape::Float | GoShape::IntOrString => Value::from(0),
        GoShape::Quantity => Value::from("0"),
        GoShape::Struct(_) => Value::Object(serde_json::Map::new()),
        GoShape::Bytes | GoShape::Time | GoShape::MicroTime | GoShape::Raw | GoShape::List(_) | GoShape::Map(_) => {
            Value::Null
        }
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

        assert_eq!(spec["hostNetwork"], GoField { emit: Emit::Omitted, go: "bool", shape: GoShape::Flag });
        assert_eq!(spec["priority"].emit, Emit::Pointer);
        assert!(matches!(spec["containers"].shape, GoShape::List(item) if item.go == "v1.Container"));
    }
}
