//! A schema and a field's name → how the field is patched.

use portolan_schema::{Cursor, Type};

use crate::strategic::error::StrategicError;

/// `x-kubernetes-patch-strategy`, without `retainKeys`, which only tells clients to send `$retainKeys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Maps are merged, lists are replaced.
    Unset,
    /// Lists are merged, too.
    Merge,
    /// Maps are replaced, too.
    Replace,
}

/// How one field is patched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    /// The schema of a map, or of a list's items.
    pub(crate) schema: Cursor<'a>,
    pub(crate) strategy: Strategy,
    /// The field that tells items apart; empty for scalars.
    pub(crate) merge_key: &'a str,
}

impl<'a> Field<'a> {
    /// A field that holds a map.
    pub(crate) fn of_map(schema: Cursor<'a>, name: &str) -> Result<Self, StrategicError> {
        let field = property(schema, name)?;
        Ok(Self { schema: field, strategy: strategy(field), merge_key: merge_key(field) })
    }

    /// A field that holds a list.
    pub(crate) fn of_list(schema: Cursor<'a>, name: &str) -> Result<Self, StrategicError> {
        let field = property(schema, name)?;
        let items = field.items().ok_or_else(|| {
            StrategicError::Unforeseen(format!("expected slice or array type, but got: {}", go_kind(schema)))
        })?;
        Ok(Self { schema: items, strategy: strategy(field), merge_key: merge_key(field) })
    }

    /// What Go calls the kind of the items.
    pub(crate) fn item_kind(&self) -> &'static str {
        go_kind(self.schema)
    }
}

fn property<'a>(schema: Cursor<'a>, name: &str) -> Result<Cursor<'a>, StrategicError> {
    schema.property(name).ok_or_else(|| {
        let kind = go_kind(schema);
        StrategicError::Unforeseen(if kind == "struct" {
            let definition = schema.node().definition.as_deref().unwrap_or_default();
            let short = definition.rsplit('.').next().unwrap_or_default();
            format!("unable to find api field in struct {short} for the json field {name:?}")
        } else {
            format!("merging an object in json but data type is not struct, instead is: {kind}")
        })
    })
}

fn strategy(field: Cursor<'_>) -> Strategy {
    let words = field.node().patch_strategy.as_deref().unwrap_or_default();
    match words.split(',').find(|word| *word != "retainKeys") {
        Some("merge") => Strategy::Merge,
        Some("replace") => Strategy::Replace,
        _ => Strategy::Unset,
    }
}

fn merge_key(field: Cursor<'_>) -> &str {
    field.node().patch_merge_key.as_deref().unwrap_or_default()
}

fn go_kind(schema: Cursor<'_>) -> &'static str {
    match schema.node().type_ {
        Some(Type::String) => "string",
        Some(Type::Integer) => "int32",
        Some(Type::Number) => "float64",
        Some(Type::Boolean) => "bool",
        Some(Type::Array) => "slice",
        Some(Type::Object) if schema.node().has_additional() => "map",
        Some(Type::Object) | None => "struct",
    }
}
