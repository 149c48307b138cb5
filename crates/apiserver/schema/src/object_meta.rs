//! `metadata` of custom resources, which no CRD describes: unknown fields go, empty ones too, wrong types are named.

use serde_json::{Map, Value};

use crate::field::{FieldError, Path};
use crate::node::Cursor;

/// A field's Go type, and with it what the field becomes when it is empty.
#[derive(Clone, Copy)]
enum GoKind {
    /// A string that is left out when empty.
    Text,
    /// A string that is always there.
    RequiredText,
    /// An integer that is left out when zero.
    Integer,
    /// An integer that may be zero.
    OptionalInteger,
    OptionalFlag,
    Time,
    TextMap,
    TextList,
    /// Any JSON object.
    Raw,
    List(&'static Struct),
}

struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, GoKind)],
}

static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        ("name", GoKind::Text),
        ("generateName", GoKind::Text),
        ("namespace", GoKind::Text),
        ("selfLink", GoKind::Text),
        ("uid", GoKind::Text),
        ("resourceVersion", GoKind::Text),
        ("generation", GoKind::Integer),
        ("creationTimestamp", GoKind::Time),
        ("deletionTimestamp", GoKind::Time),
        ("deletionGracePeriodSeconds", GoKind::OptionalInteger),
        ("labels", GoKind::TextMap),
        ("annotations", GoKind::TextMap),
        ("ownerReferences", GoKind::List(&OWNER_REFERENCE)),
        ("finalizers", GoKind::TextList),
        ("managedFields", GoKind::List(&MANAGED_FIELDS_ENTRY)),
    ],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", GoKind::RequiredText),
        ("kind", GoKind::RequiredText),
        ("name", GoKind::RequiredText),
        ("uid", GoKind::RequiredText),
        ("controller", GoKind::OptionalFlag),
        ("blockOwnerDeletion", GoKind::OptionalFlag),
    ],
};

static MANAGED_FIELDS_ENTRY: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("manager", GoKind::Text),
        ("operation", GoKind::Text),
        ("apiVersion", GoKind::Text),
        ("time", GoKind::Time),
        ("fieldsType", GoKind::Text),
        ("fieldsV1", GoKind::Raw),
        ("subresource", GoKind::Text),
    ],
};

impl Struct {
    fn field(&self, name: &str) -> Option<GoKind> {
        self.fields.iter().find(|(n, _)| *n == name).map(|(_, kind)| *kind)
    }
}

/// Drops unknown and empty fields of an object's `metadata`, noting the unknown ones' paths.
///
/// Values of the wrong type stay as they are: [`type_error`] tells about them.
pub fn coerce(metadata: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) {
    if let Value::Object(object) = metadata {
        coerce_struct(object, &OBJECT_META, path, unknown);
    }
}

/// [`coerce`] on every embedded resource below a value.
pub fn coerce_embedded(value: &mut Value, schema: Cursor<'_>, path: &Path<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                if schema.node().embedded_resource && name == "metadata" {
                    coerce(value, &path.field(name), unknown);
                }
                if let Some(child) = schema.child(name) {
                    coerce_embedded(value, child, &path.field(name), unknown);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                coerce_embedded(item, schema, &path.index(index), unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn coerce_struct(object: &mut Map<String, Value>, shape: &Struct, path: &Path<'_>, unknown: &mut Vec<String>) {
    object.retain(|name, _| {
        let known = shape.field(name).is_some();
        if !known {
            unknown.push(path.field(name).to_string());
        }
        known
    });
    for (name, kind) in shape.fields {
        if let (GoKind::List(inner), Some(Value::Array(items))) = (*kind, object.get_mut(*name)) {
            let path = path.field(name);
            for (index, item) in items.iter_mut().enumerate() {
                if let Value::Object(item) = item {
                    coerce_struct(item, inner, &path.index(index), unknown);
                }
            }
        }
        match (kind, object.get_mut(*name)) {
            (GoKind::TextMap, Some(Value::Object(texts))) => texts.values_mut().for_each(null_to_empty),
            (GoKind::TextList, Some(Value::Array(texts))) => texts.iter_mut().for_each(null_to_empty),
            _ => {}
        }
        if matches!(kind, GoKind::RequiredText) {
            null_to_empty(object.entry(*name).or_insert(Value::Null));
        } else if object.get(*name).is_some_and(|value| is_empty(value, *kind)) {
            object.remove(*name);
        }
    }
}

fn null_to_empty(text: &mut Value) {
    if text.is_null() {
        *text = Value::from("");
    }
}

fn is_empty(value: &Value, kind: GoKind) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() && matches!(kind, GoKind::Text),
        Value::Number(number) => number.as_i64() == Some(0) && matches!(kind, GoKind::Integer),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && !matches!(kind, GoKind::Raw),
        Value::Bool(_) => false,
    }
}

/// Why the server cannot read an object at all, in its words: the types of its metadata, or of an embedded resource.
pub fn decode_error(value: &Value, schema: Cursor<'_>) -> Option<String> {
    let own = value.get("metadata").and_then(type_error);
    own.or_else(|| embedded_error(value, schema, &Path::root()).map(|error| error.to_string()))
}

fn embedded_error(value: &Value, schema: Cursor<'_>, path: &Path<'_>) -> Option<FieldError> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let own = if schema.node().embedded_resource { resource_error(name, value, path) } else { None };
            own.or_else(|| {
                let child = schema.child(name)?;
                let path = if schema.property(name).is_some() { path.field(name) } else { path.key(name) };
                embedded_error(value, child, &path)
            })
        }),
        Value::Array(items) => {
            let schema = schema.items()?;
            items.iter().enumerate().find_map(|(index, item)| embedded_error(item, schema, &path.index(index)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn resource_error(name: &str, value: &Value, path: &Path<'_>) -> Option<FieldError> {
    match name {
        "apiVersion" | "kind" if !value.is_string() => {
            Some(FieldError::invalid(&path.field(name), value, "must be a string"))
        }
        "metadata" => type_error(value).map(|why| FieldError::invalid(&path.field(name), value, why)),
        _ => None,
    }
}

/// Why the server cannot read this `metadata`, in its words; `None` where it can.
pub fn type_error(metadata: &Value) -> Option<String> {
    match metadata {
        Value::Null => None,
        Value::Object(object) => struct_error(object, &OBJECT_META, ""),
        other => Some(format!("json: cannot unmarshal {} into Go value of type v1.ObjectMeta", word(other))),
    }
}

fn struct_error(object: &Map<String, Value>, shape: &Struct, prefix: &str) -> Option<String> {
    object.iter().find_map(|(name, value)| {
        let kind = shape.field(name)?;
        value_error(value, kind, shape.name, &format!("{prefix}{name}"))
    })
}

fn value_error(value: &Value, kind: GoKind, owner: &str, field: &str) -> Option<String> {
    let wrong = |value: &Value, wanted: &str| {
        Some(format!("json: cannot unmarshal {} into Go struct field {owner}.{field} of type {wanted}", word(value)))
    };
    match (kind, value) {
        (_, Value::Null)
        | (GoKind::Text | GoKind::RequiredText, Value::String(_))
        | (GoKind::OptionalFlag, Value::Bool(_))
        | (GoKind::Raw, _) => None,
        (GoKind::Text | GoKind::RequiredText, other) if field == "uid" => wrong(other, "types.UID"),
        (GoKind::Time, Value::String(text)) => time_error(text),
        (GoKind::Text | GoKind::RequiredText | GoKind::Time, other) => wrong(other, "string"),
        (GoKind::OptionalFlag, other) => wrong(other, "bool"),
        (GoKind::Integer | GoKind::OptionalInteger, Value::Number(number)) if number.is_i64() => None,
        (GoKind::Integer | GoKind::OptionalInteger, other) => wrong(other, "int64"),
        (GoKind::TextMap, Value::Object(map)) => {
            map.values().find(|v| !v.is_string() && !v.is_null()).and_then(|v| wrong(v, "string"))
        }
        (GoKind::TextMap, other) => wrong(other, "map[string]string"),
        (GoKind::TextList, Value::Array(items)) => {
            items.iter().find(|v| !v.is_string() && !v.is_null()).and_then(|v| wrong(v, "string"))
        }
        (GoKind::TextList, other) => wrong(other, "[]string"),
        (GoKind::List(inner), Value::Array(items)) => items.iter().find_map(|item| match item {
            Value::Null => None,
            Value::Object(item) => struct_error(item, inner, &format!("{field}.")),
            other => wrong(other, &format!("v1.{}", inner.name)),
        }),
        (GoKind::List(inner), other) => wrong(other, &format!("[]v1.{}", inner.name)),
    }
}

fn time_error(text: &str) -> Option<String> {
    if text.is_empty() || text.parse::<jiff::Timestamp>().is_ok() {
        return None;
    }
    Some(format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""))
}

/// What Go's JSON decoder calls a value.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Schema;

    #[test]
    fn metadata_loses_what_is_unknown_or_empty() {
        let mut metadata = json!({
            "name": "x", "generateName": "", "labels": {}, "annotations": {"a": ""}, "finalizers": [], "odd": 1,
            "creationTimestamp": null, "generation": 0, "deletionGracePeriodSeconds": 0,
            "ownerReferences": [{"name": "o", "odd": 2}],
        });
        let mut unknown = Vec::new();

        coerce(&mut metadata, &Path::root().field("metadata"), &mut unknown);

        let owner = json!({"apiVersion": "", "kind": "", "name": "o", "uid": ""});
        assert_eq!(
            metadata,
            json!({"name": "x", "annotations": {"a": ""}, "deletionGracePeriodSeconds": 0, "ownerReferences": [owner]})
        );
        assert_eq!(unknown, ["metadata.odd", "metadata.ownerReferences[0].odd"]);
    }

    #[test]
    fn wrong_types_are_named_as_the_go_decoder_names_them() {
        assert_eq!(type_error(&json!({"name": "x", "labels": {"a": "b"}, "generation": 3})), None);
        assert_eq!(
            type_error(&json!({"labels": {"a": 1}})).unwrap(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
        );
        assert_eq!(
            type_error(&json!({"creationTimestamp": 5})).unwrap(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string"
        );
        assert_eq!(
            type_error(&json!({"finalizers": "x"})).unwrap(),
            "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string"
        );
    }

    #[test]
    fn embedded_resources_are_read_as_strictly() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {"t": {"type": "object",
            "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}))
        .unwrap();
        let error = |value: Value| decode_error(&value, schema.root());

        assert_eq!(error(json!({"metadata": {}, "t": {"apiVersion": "v1", "kind": "K", "metadata": {}}})), None);
        assert_eq!(error(json!({"t": {"kind": 2}})).unwrap(), "t.kind: Invalid value: 2: must be a string");
        assert_eq!(
            error(json!({"t": {"metadata": {"name": 1}}})).unwrap(),
            r#"t.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#
        );
    }
}
