//! Schemas and rules as the server's own types print in messages: every field, by its Go name.

use serde_json::{Value, json};

use super::{list, text};
use crate::go;

/// How a field prints.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    OptionalText,
    Flag,
    Plain,
    One,
    Many,
    Named,
    ItemsSchema,
    Additional,
    Rules,
}

const FIELDS: [(&str, &str, Kind); 44] = [
    ("ID", "id", Kind::Text),
    ("Schema", "$schema", Kind::Text),
    ("Ref", "$ref", Kind::OptionalText),
    ("Description", "description", Kind::Text),
    ("Type", "type", Kind::Text),
    ("Nullable", "nullable", Kind::Flag),
    ("Format", "format", Kind::Text),
    ("Title", "title", Kind::Text),
    ("Default", "default", Kind::Plain),
    ("Maximum", "maximum", Kind::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Kind::Flag),
    ("Minimum", "minimum", Kind::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Kind::Flag),
    ("MaxLength", "maxLength", Kind::Plain),
    ("MinLength", "minLength", Kind::Plain),
    ("Pattern", "pattern", Kind::Text),
    ("MaxItems", "maxItems", Kind::Plain),
    ("MinItems", "minItems", Kind::Plain),
    ("UniqueItems", "uniqueItems", Kind::Flag),
    ("MultipleOf", "multipleOf", Kind::Plain),
    ("Enum", "enum", Kind::Plain),
    ("MaxProperties", "maxProperties", Kind::Plain),
    ("MinProperties", "minProperties", Kind::Plain),
    ("Required", "required", Kind::Plain),
    ("Items", "items", Kind::ItemsSchema),
    ("AllOf", "allOf", Kind::Many),
    ("OneOf", "oneOf", Kind::Many),
    ("AnyOf", "anyOf", Kind::Many),
    ("Not", "not", Kind::One),
    ("Properties", "properties", Kind::Named),
    ("AdditionalProperties", "additionalProperties", Kind::Additional),
    ("PatternProperties", "patternProperties", Kind::Named),
    ("Dependencies", "dependencies", Kind::Plain),
    ("AdditionalItems", "additionalItems", Kind::Additional),
    ("Definitions", "definitions", Kind::Named),
    ("ExternalDocs", "externalDocs", Kind::Plain),
    ("Example", "example", Kind::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Kind::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Kind::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Kind::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Kind::Plain),
    ("XListType", "x-kubernetes-list-type", Kind::OptionalText),
    ("XMapType", "x-kubernetes-map-type", Kind::OptionalText),
    ("XValidations", "x-kubernetes-validations", Kind::Rules),
];

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    let fields = FIELDS.iter().map(|(shown, name, kind)| format!("\"{shown}\":{}", field(schema.get(*name), *kind)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn field(value: Option<&Value>, kind: Kind) -> String {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return match kind {
            Kind::Text => "\"\"".to_owned(),
            Kind::Flag => "false".to_owned(),
            _ => "null".to_owned(),
        };
    };
    match kind {
        Kind::Text | Kind::OptionalText | Kind::Flag | Kind::Plain => go::json(value),
        Kind::One => schema(value),
        Kind::Many => array(list(Some(value)), schema),
        Kind::Rules => array(list(Some(value)), rule),
        Kind::Named => {
            let entries = value.as_object().into_iter().flatten();
            let entries = entries.map(|(name, inner)| format!("{}:{}", go::json(&json!(name)), schema(inner)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        Kind::ItemsSchema => match value.as_array() {
            Some(schemas) => format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", array(schemas, schema)),
            None => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        },
        Kind::Additional => match value.as_bool() {
            Some(allows) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
            None => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
        },
    }
}

fn array(values: &[Value], one: fn(&Value) -> String) -> String {
    format!("[{}]", values.iter().map(one).collect::<Vec<_>>().join(","))
}

/// A rule.
pub(super) fn rule(rule: &Value) -> String {
    let quoted = |name: &str| go::json(&json!(text(rule.get(name))));
    let optional = |name: &str| rule.get(name).map_or_else(|| "null".to_owned(), go::json);
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        quoted("rule"),
        quoted("message"),
        quoted("messageExpression"),
        optional("reason"),
        quoted("fieldPath"),
        optional("optionalOldSelf"),
    )
}
