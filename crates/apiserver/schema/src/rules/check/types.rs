//! The types that a checked expression can have.

use std::collections::HashMap;
use std::fmt;

use crate::node::{Cursor, Type as SchemaType};
use crate::rules::escape::{escape, unescape};

/// A type of CEL, or a place of a schema.
#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Timestamp,
    Duration,
    /// A type as a value, such as `int`.
    OfTypes,
    List(Box<Type<'s>>),
    Map(Box<Type<'s>>, Box<Type<'s>>),
    Optional(Box<Type<'s>>),
    /// A type that Kubernetes adds.
    Opaque(&'static str),
    /// A key and its value, in loops with two variables.
    Pair(Box<Type<'s>>, Box<Type<'s>>),
    /// An object with the fields of a schema.
    Object(Cursor<'s>, bool),
    /// The reachable part of an object's metadata.
    Metadata,
    /// A parameter of a signature.
    Parameter(char),
}

impl<'s> Type<'s> {
    /// The type of a place; `None` where rules cannot reach it.
    pub(super) fn of(schema: Cursor<'s>, resource: bool) -> Option<Self> {
        let node = schema.node();
        if node.int_or_string && node.type_.is_none() {
            return Some(Self::Dyn);
        }
        Some(match node.type_? {
            SchemaType::Array => Self::list(Self::of_child(schema.items()?)?),
            SchemaType::Object => match schema.values() {
                Some(values) => Self::map(Self::String, Self::of_child(values)?),
                None => Self::Object(schema, resource),
            },
            SchemaType::String => match node.format.as_deref() {
                Some("byte") => Self::Bytes,
                Some("duration") => Self::Duration,
                Some("date" | "date-time") => Self::Timestamp,
                _ => Self::String,
            },
            SchemaType::Boolean => Self::Bool,
            SchemaType::Number => Self::Double,
            SchemaType::Integer => Self::Int,
        })
    }

    fn of_child(schema: Cursor<'s>) -> Option<Self> {
        Self::of(schema, schema.node().embedded_resource)
    }

    pub(super) fn list(items: Self) -> Self {
        Self::List(Box::new(items))
    }

    pub(super) fn map(keys: Self, values: Self) -> Self {
        Self::Map(Box::new(keys), Box::new(values))
    }

    pub(super) fn pair(key: Self, value: Self) -> Self {
        Self::Pair(Box::new(key), Box::new(value))
    }

    pub(super) fn optional(value: Self) -> Self {
        Self::Optional(Box::new(value))
    }

    /// The type of a field.
    pub(super) fn field(&self, name: &str) -> SelectedField<'s> {
        match self {
            Self::Dyn => SelectedField::Known(Self::Dyn),
            Self::Map(_, values) => SelectedField::Known((**values).clone()),
            Self::Optional(inner) => match inner.field(name) {
                SelectedField::Known(found) => SelectedField::Known(Self::optional(found)),
                other => other,
            },
            Self::Metadata => match name {
                "name" | "generateName" => SelectedField::Known(Self::String),
                _ => SelectedField::Undefined,
            },
            Self::Object(schema, resource) => Self::property(*schema, *resource, name),
            _ => SelectedField::Unsupported,
        }
    }

    fn property(schema: Cursor<'s>, resource: bool, name: &str) -> SelectedField<'s> {
        match name {
            "apiVersion" | "kind" if resource => return SelectedField::Known(Self::String),
            "metadata" if resource => return SelectedField::Known(Self::Metadata),
            _ => {}
        }
        let plain = unescape(name);
        let reachable = escape(&plain).is_some_and(|escaped| escaped == name);
        let found = schema.property(&plain).filter(|_| reachable).and_then(Self::of_child);
        found.map_or(SelectedField::Undefined, SelectedField::Known)
    }

    /// Whether a value of this type may be given where `wanted` is asked for; parameters take what they meet first.
    pub(super) fn fits(&self, wanted: &Self, bound: &mut HashMap<char, Type<'s>>) -> bool {
        match (self, wanted) {
            (_, Self::Parameter(name)) => match bound.get(name).cloned() {
                Some(Self::Dyn) | None => {
                    bound.insert(*name, self.clone());
                    true
                }
                Some(known) => self.fits(&known, bound),
            },
            (Self::Dyn, _)
            | (_, Self::Dyn)
            | (Self::Null, Self::Object(..) | Self::Metadata | Self::Timestamp | Self::Duration)
            | (Self::Object(..) | Self::Metadata | Self::Timestamp | Self::Duration, Self::Null) => true,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.fits(b, bound),
            (Self::Map(a, b), Self::Map(c, d)) | (Self::Pair(a, b), Self::Pair(c, d)) => {
                a.fits(c, bound) && b.fits(d, bound)
            }
            (Self::Object(a, _), Self::Object(b, _)) => a.id() == b.id(),
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    /// With parameters replaced by what they took.
    pub(super) fn filled(&self, bound: &HashMap<char, Type<'s>>) -> Self {
        match self {
            Self::Parameter(name) => bound.get(name).cloned().unwrap_or(Self::Dyn),
            Self::List(items) => Self::list(items.filled(bound)),
            Self::Optional(value) => Self::optional(value.filled(bound)),
            Self::Map(keys, values) => Self::map(keys.filled(bound), values.filled(bound)),
            Self::Pair(key, value) => Self::pair(key.filled(bound), value.filled(bound)),
            other => other.clone(),
        }
    }
}

/// What selecting a field gives.
pub(super) enum SelectedField<'s> {
    Known(Type<'s>),
    Undefined,
    /// The type has no fields at all.
    Unsupported,
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Null => f.write_str("null"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::OfTypes => f.write_str("type"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(keys, values) => write!(f, "map({keys}, {values})"),
            Self::Pair(key, value) => write!(f, "pair({key}, {value})"),
            Self::Optional(value) => write!(f, "optional_type({value})"),
            Self::Opaque(name) => f.write_str(name),
            Self::Object(..) | Self::Metadata => f.write_str("object"),
            Self::Parameter(name) => write!(f, "{name}"),
        }
    }
}
