//! The value keywords of a schema, read once: bounds, lengths, patterns, enumerations and junctors.

use regex::Regex;
use serde_json::{Map, Value};

use crate::format::StringFormat;
use crate::node::NodeId;
use crate::re2;

/// What a value at some place must fulfil beyond its type.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    /// `enum`.
    pub allowed: Vec<Value>,
    /// `pattern`.
    pub pattern: Option<Pattern>,
    /// `format`, where it is one that is checked for this type.
    pub format: Option<CheckedFormat>,
    /// `minimum`.
    pub minimum: Option<Bound>,
    /// `maximum`.
    pub maximum: Option<Bound>,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// `minLength`, in characters.
    pub min_length: Option<u64>,
    /// `maxLength`, in characters.
    pub max_length: Option<u64>,
    /// `minItems`.
    pub min_items: Option<u64>,
    /// `maxItems`.
    pub max_items: Option<u64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `minProperties`.
    pub min_properties: Option<u64>,
    /// `maxProperties`.
    pub max_properties: Option<u64>,
    /// `allOf`.
    pub all_of: Vec<NodeId>,
    /// `anyOf`.
    pub any_of: Vec<NodeId>,
    /// `oneOf`.
    pub one_of: Vec<NodeId>,
    /// `not`.
    pub not: Option<NodeId>,
}

/// A lower or upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Where it lies.
    pub at: f64,
    /// Whether the bound itself is outside.
    pub exclusive: bool,
}

/// A pattern and its compiled form.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// As it was written.
    pub source: String,
    /// Compiled, or why it cannot be.
    pub regex: Result<Regex, String>,
}

/// A `format` that is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedFormat {
    /// As it was written.
    pub name: String,
    /// What it asks for.
    pub kind: FormatKind,
}

/// The families of formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the formats'")]
pub enum FormatKind {
    String(StringFormat),
    Int32,
    Int64,
    Float,
    Double,
}

impl Constraints {
    /// Reads the keywords of one schema that need no children; `None` where there are none.
    pub(crate) fn parse(schema: &Map<String, Value>) -> Option<Box<Self>> {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let bound = |key: &str, exclusive: &str| {
            let exclusive = schema.get(exclusive).and_then(Value::as_bool).unwrap_or(false);
            schema.get(key).and_then(Value::as_f64).map(|at| Bound { at, exclusive })
        };
        let constraints = Self {
            allowed: schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            pattern: schema.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty()).map(Pattern::new),
            format: checked_format(schema),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: schema.get("multipleOf").and_then(Value::as_f64),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: schema.get("uniqueItems").and_then(Value::as_bool).unwrap_or(false),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            ..Self::default()
        };
        constraints.says_something().then(|| Box::new(constraints))
    }

    fn says_something(&self) -> bool {
        let counts = [
            self.min_length,
            self.max_length,
            self.min_items,
            self.max_items,
            self.min_properties,
            self.max_properties,
        ];
        !self.allowed.is_empty()
            || self.pattern.is_some()
            || self.format.is_some()
            || self.minimum.is_some()
            || self.maximum.is_some()
            || self.multiple_of.is_some()
            || self.unique_items
            || counts.iter().any(Option::is_some)
    }
}

impl Pattern {
    fn new(source: &str) -> Self {
        Self { source: source.to_owned(), regex: re2::compile(source) }
    }
}

/// A format counts only for the type that it belongs to.
fn checked_format(schema: &Map<String, Value>) -> Option<CheckedFormat> {
    let name = schema.get("format").and_then(Value::as_str)?;
    let int_or_string = schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool).unwrap_or(false);
    let type_ = schema.get("type").and_then(Value::as_str).filter(|_| !int_or_string).unwrap_or("");
    let kind = match (type_, name) {
        ("" | "string", name) => FormatKind::String(StringFormat::named(name)?),
        ("integer", "int32") => FormatKind::Int32,
        ("integer", "int64") => FormatKind::Int64,
        ("number", "float") => FormatKind::Float,
        ("number", "double") => FormatKind::Double,
        _ => return None,
    };
    Some(CheckedFormat { name: name.to_owned(), kind })
}
