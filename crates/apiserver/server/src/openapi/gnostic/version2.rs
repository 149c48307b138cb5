//! The messages of version 2.

use serde_json::Value;

use super::{Message, MessageWriter, ValueForm, encode, only};

static INFO: Message =
    Message { fields: &[("title", 1, ValueForm::Text), ("version", 2, ValueForm::Text)], extensions: 7 };

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, ValueForm::Text),
        ("format", 2, ValueForm::Text),
        ("title", 3, ValueForm::Text),
        ("description", 4, ValueForm::Text),
        ("default", 5, ValueForm::Any),
        ("multipleOf", 6, ValueForm::Double),
        ("maximum", 7, ValueForm::Double),
        ("exclusiveMaximum", 8, ValueForm::Flag),
        ("minimum", 9, ValueForm::Double),
        ("exclusiveMinimum", 10, ValueForm::Flag),
        ("maxLength", 11, ValueForm::Integer),
        ("minLength", 12, ValueForm::Integer),
        ("pattern", 13, ValueForm::Text),
        ("maxItems", 14, ValueForm::Integer),
        ("minItems", 15, ValueForm::Integer),
        ("uniqueItems", 16, ValueForm::Flag),
        ("maxProperties", 17, ValueForm::Integer),
        ("minProperties", 18, ValueForm::Integer),
        ("required", 19, ValueForm::Texts),
        ("enum", 20, ValueForm::Anys),
        ("additionalProperties", 21, ValueForm::One(additional)),
        ("type", 22, ValueForm::One(type_item)),
        ("items", 23, ValueForm::One(wrapped_schema)),
        ("allOf", 24, ValueForm::Each(schema)),
        ("properties", 25, ValueForm::Named(1, schema)),
        ("externalDocs", 29, ValueForm::One(external_docs)),
        ("example", 30, ValueForm::Any),
    ],
    extensions: 31,
};

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, ValueForm::Text), ("url", 2, ValueForm::Text)], extensions: 3 };

static PATH_ITEM: Message = Message {
    fields: &[
        ("get", 2, ValueForm::One(operation)),
        ("put", 3, ValueForm::One(operation)),
        ("post", 4, ValueForm::One(operation)),
        ("delete", 5, ValueForm::One(operation)),
        ("options", 6, ValueForm::One(operation)),
        ("head", 7, ValueForm::One(operation)),
        ("patch", 8, ValueForm::One(operation)),
        ("parameters", 9, ValueForm::Each(parameter_or_reference)),
    ],
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, ValueForm::Texts),
        ("description", 3, ValueForm::Text),
        ("operationId", 5, ValueForm::Text),
        ("produces", 6, ValueForm::Texts),
        ("consumes", 7, ValueForm::Texts),
        ("parameters", 8, ValueForm::Each(parameter_or_reference)),
        ("responses", 9, ValueForm::Named(1, response)),
        ("schemes", 10, ValueForm::Texts),
    ],
    extensions: 13,
};

static RESPONSE: Message = Message {
    fields: &[("description", 1, ValueForm::Text), ("schema", 2, ValueForm::One(wrapped_schema))],
    extensions: 5,
};

static BODY: Message = Message {
    fields: &[
        ("description", 1, ValueForm::Text),
        ("name", 2, ValueForm::Text),
        ("in", 3, ValueForm::Text),
        ("required", 4, ValueForm::Flag),
        ("schema", 5, ValueForm::One(schema)),
    ],
    extensions: 6,
};

static QUERY: Message = Message {
    fields: &[
        ("required", 1, ValueForm::Flag),
        ("in", 2, ValueForm::Text),
        ("description", 3, ValueForm::Text),
        ("name", 4, ValueForm::Text),
        ("type", 6, ValueForm::Text),
        ("format", 7, ValueForm::Text),
        ("uniqueItems", 20, ValueForm::Flag),
    ],
    extensions: 23,
};

static PATH: Message = Message {
    fields: &[
        ("required", 1, ValueForm::Flag),
        ("in", 2, ValueForm::Text),
        ("description", 3, ValueForm::Text),
        ("name", 4, ValueForm::Text),
        ("type", 5, ValueForm::Text),
        ("format", 6, ValueForm::Text),
        ("uniqueItems", 19, ValueForm::Flag),
    ],
    extensions: 22,
};

static REFERENCE: Message = Message { fields: &[("$ref", 1, ValueForm::Text)], extensions: 2 };

static API_KEY: Message = Message {
    fields: &[
        ("type", 1, ValueForm::Text),
        ("name", 2, ValueForm::Text),
        ("in", 3, ValueForm::Text),
        ("description", 4, ValueForm::Text),
    ],
    extensions: 5,
};

pub(in super::super) fn info(value: &Value) -> Vec<u8> {
    encode(&INFO, value)
}

pub(in super::super) fn schema(value: &Value) -> Vec<u8> {
    encode(&SCHEMA, value)
}

pub(in super::super) fn path_item(value: &Value) -> Vec<u8> {
    encode(&PATH_ITEM, value)
}

pub(in super::super) fn parameter(value: &Value) -> Vec<u8> {
    match value["in"].as_str() {
        Some("body") => only(1, &encode(&BODY, value)),
        Some("path") => only(2, &only(4, &encode(&PATH, value))),
        _ => only(2, &only(3, &encode(&QUERY, value))),
    }
}

/// A requirement without scopes.
pub(in super::super) fn security_requirement(name: &str) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    writer.named(1, name, &[]);
    writer.finish()
}

pub(in super::super) fn security_definitions(value: &Value) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    value.as_object().into_iter().flatten().for_each(|(name, key)| writer.named(1, name, &api_key(key)));
    writer.finish()
}

fn api_key(value: &Value) -> Vec<u8> {
    only(2, &encode(&API_KEY, value))
}

fn external_docs(value: &Value) -> Vec<u8> {
    encode(&EXTERNAL_DOCS, value)
}

fn operation(value: &Value) -> Vec<u8> {
    encode(&OPERATION, value)
}

fn response(value: &Value) -> Vec<u8> {
    only(1, &encode(&RESPONSE, value))
}

fn wrapped_schema(value: &Value) -> Vec<u8> {
    only(1, &schema(value))
}

fn type_item(value: &Value) -> Vec<u8> {
    only(1, value.as_str().unwrap_or_default().as_bytes())
}

/// A schema, or whether there may be more.
fn additional(value: &Value) -> Vec<u8> {
    match value {
        Value::Bool(more) => vec![2 << 3, u8::from(*more)],
        schema => wrapped_schema(schema),
    }
}

fn parameter_or_reference(value: &Value) -> Vec<u8> {
    if value.get("$ref").is_some() { only(2, &encode(&REFERENCE, value)) } else { only(1, &parameter(value)) }
}
