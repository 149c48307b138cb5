//! Schemas and rules as the server's own types print in messages: every field, by its Go name.

use serde_json::{Value, json};

use super::{list, text};
use crate::go;

/// How a field prints.
#[derive(Clone, Copy)]
enum FieldFormat {
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

const FIELDS: [(&str, &str, FieldFormat); 44] = [
    ("ID", "id", FieldFormat::Text),
    ("Schema", "$schema", FieldFormat::Text),
    ("Ref", "$ref", FieldFormat::OptionalText),
    ("Description", "description", FieldFormat::Text),
    ("Type", "type", FieldFormat::Text),
    ("Nullable", "nullable", FieldFormat::Flag),
    ("Format", "format", FieldFormat::Text),
    ("Title", "title", FieldFormat::Text),
    ("Default", "default", FieldFormat::Plain),
    ("Maximum", "maximum", FieldFormat::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", FieldFormat::Flag),
    ("Minimum", "minimum", FieldFormat::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", FieldFormat::Flag),
    ("MaxLength", "maxLength", FieldFormat::Plain),
    ("MinLength", "minLength", FieldFormat::Plain),
    ("Pattern", "pattern", FieldFormat::Text),
    ("MaxItems", "maxItems", FieldFormat::Plain),
    ("MinItems", "minItems", FieldFormat::Plain),
    ("UniqueItems", "uniqueItems", FieldFormat::Flag),
    ("MultipleOf", "multipleOf", FieldFormat::Plain),
    ("Enum", "enum", FieldFormat::Plain),
    ("MaxProperties", "maxProperties", FieldFormat::Plain),
    ("MinProperties", "minProperties", FieldFormat::Plain),
    ("Required", "required", FieldFormat::Plain),
    ("Items", "items", FieldFormat::ItemsSchema),
    ("AllOf", "allOf", FieldFormat::Many),
    ("OneOf", "oneOf", FieldFormat::Many),
    ("AnyOf", "anyOf", FieldFormat::Many),
    ("Not", "not", FieldFormat::One),
    ("Properties", "properties", FieldFormat::Named),
    ("AdditionalProperties", "additionalProperties", FieldFormat::Additional),
    ("PatternProperties", "patternProperties", FieldFormat::Named),
    ("Dependencies", "dependencies", FieldFormat::Plain),
    ("AdditionalItems", "additionalItems", FieldFormat::Additional),
    ("Definitions", "definitions", FieldFormat::Named),
    ("ExternalDocs", "externalDocs", FieldFormat::Plain),
    ("Example", "example", FieldFormat::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", FieldFormat::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", FieldFormat::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", FieldFormat::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", FieldFormat::Plain),
    ("XListType", "x-kubernetes-list-type", FieldFormat::OptionalText),
    ("XMapType", "x-kubernetes-map-type", FieldFormat::OptionalText),
    ("XValidations", "x-kubernetes-validations", FieldFormat::Rules),
];

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    let fields = FIELDS.iter().map(|(shown, name, kind)| format!("\"{shown}\":{}", field(schema.get(*name), *kind)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn field(value: Option<&Value>, kind: FieldFormat) -> String {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return match kind {
            FieldFormat::Text => "\"\"".to_owned(),
            FieldFormat::Flag => "false".to_owned(),
            _ => "null".to_owned(),
        };
    };
    match kind {
        FieldFormat::Text | FieldFormat::OptionalText | FieldFormat::Flag | FieldFormat::Plain => go::json(value),
        FieldFormat::One => schema(value),
        FieldFormat::Many => array(list(Some(value)), schema),
        FieldFormat::Rules => array(list(Some(value)), rule),
        FieldFormat::Named => {
            let entries = value.as_object().into_iter().flatten();
            let entries = entries.map(|(name, inner)| format!("{}:{}", go::json(&json!(name)), schema(inner)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        FieldFormat::ItemsSchema => match value.as_array() {
            Some(schemas) => format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", array(schemas, schema)),
            None => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        },
        FieldFormat::Additional => match value.as_bool() {
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
