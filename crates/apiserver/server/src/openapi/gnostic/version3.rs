//! The messages of version 3.

use serde_json::Value;

use super::{Message, MessageWriter, ValueForm, encode, only};

static INFO: Message =
    Message { fields: &[("title", 1, ValueForm::Text), ("version", 6, ValueForm::Text)], extensions: 7 };

static SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, ValueForm::Flag),
        ("externalDocs", 6, ValueForm::One(external_docs)),
        ("example", 7, ValueForm::Any),
        ("title", 9, ValueForm::Text),
        ("multipleOf", 10, ValueForm::Double),
        ("maximum", 11, ValueForm::Double),
        ("exclusiveMaximum", 12, ValueForm::Flag),
        ("minimum", 13, ValueForm::Double),
        ("exclusiveMinimum", 14, ValueForm::Flag),
        ("maxLength", 15, ValueForm::Integer),
        ("minLength", 16, ValueForm::Integer),
        ("pattern", 17, ValueForm::Text),
        ("maxItems", 18, ValueForm::Integer),
        ("minItems", 19, ValueForm::Integer),
        ("uniqueItems", 20, ValueForm::Flag),
        ("maxProperties", 21, ValueForm::Integer),
        ("minProperties", 22, ValueForm::Integer),
        ("required", 23, ValueForm::Texts),
        ("enum", 24, ValueForm::Anys),
        ("type", 25, ValueForm::Text),
        ("allOf", 26, ValueForm::Each(schema_or_reference)),
        ("oneOf", 27, ValueForm::Each(schema_or_reference)),
        ("anyOf", 28, ValueForm::Each(schema_or_reference)),
        ("not", 29, ValueForm::One(schema)),
        ("items", 30, ValueForm::One(wrapped_schema)),
        ("properties", 31, ValueForm::Named(1, schema_or_reference)),
        ("additionalProperties", 32, ValueForm::One(additional)),
        ("default", 33, ValueForm::One(default)),
        ("description", 34, ValueForm::Text),
        ("format", 35, ValueForm::Text),
    ],
    extensions: 36,
};

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, ValueForm::Text), ("url", 2, ValueForm::Text)], extensions: 3 };

static REFERENCE: Message = Message { fields: &[("$ref", 1, ValueForm::Text)], extensions: 4 };

static PATH_ITEM: Message = Message {
    fields: &[
        ("get", 4, ValueForm::One(operation)),
        ("put", 5, ValueForm::One(operation)),
        ("post", 6, ValueForm::One(operation)),
        ("delete", 7, ValueForm::One(operation)),
        ("options", 8, ValueForm::One(operation)),
        ("head", 9, ValueForm::One(operation)),
        ("patch", 10, ValueForm::One(operation)),
        ("parameters", 13, ValueForm::Each(parameter)),
    ],
    extensions: 14,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, ValueForm::Texts),
        ("description", 3, ValueForm::Text),
        ("operationId", 5, ValueForm::Text),
        ("parameters", 6, ValueForm::Each(parameter)),
        ("requestBody", 7, ValueForm::One(request_body)),
        ("responses", 8, ValueForm::Named(2, response)),
    ],
    extensions: 13,
};

static PARAMETER: Message = Message {
    fields: &[
        ("name", 1, ValueForm::Text),
        ("in", 2, ValueForm::Text),
        ("description", 3, ValueForm::Text),
        ("required", 4, ValueForm::Flag),
        ("schema", 10, ValueForm::One(schema_or_reference)),
    ],
    extensions: 14,
};

static REQUEST_BODY: Message = Message {
    fields: &[
        ("description", 1, ValueForm::Text),
        ("content", 2, ValueForm::Named(1, media_type)),
        ("required", 3, ValueForm::Flag),
    ],
    extensions: 4,
};

static RESPONSE: Message = Message {
    fields: &[("description", 1, ValueForm::Text), ("content", 3, ValueForm::Named(1, media_type))],
    extensions: 5,
};

static MEDIA_TYPE: Message = Message { fields: &[("schema", 1, ValueForm::One(schema_or_reference))], extensions: 5 };

static SECURITY_SCHEME: Message = Message {
    fields: &[
        ("type", 1, ValueForm::Text),
        ("description", 2, ValueForm::Text),
        ("name", 3, ValueForm::Text),
        ("in", 4, ValueForm::Text),
    ],
    extensions: 9,
};

pub(in super::super) fn info(value: &Value) -> Vec<u8> {
    encode(&INFO, value)
}

pub(in super::super) fn path_item(value: &Value) -> Vec<u8> {
    encode(&PATH_ITEM, value)
}

pub(in super::super) fn schema_or_reference(value: &Value) -> Vec<u8> {
    if value.get("$ref").is_some() { only(2, &encode(&REFERENCE, value)) } else { only(1, &schema(value)) }
}

pub(in super::super) fn security_schemes(value: &Value) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    let schemes = value.as_object().into_iter().flatten();
    schemes.for_each(|(name, scheme)| writer.named(1, name, &only(1, &encode(&SECURITY_SCHEME, scheme))));
    writer.finish()
}

fn schema(value: &Value) -> Vec<u8> {
    encode(&SCHEMA, value)
}

fn external_docs(value: &Value) -> Vec<u8> {
    encode(&EXTERNAL_DOCS, value)
}

fn operation(value: &Value) -> Vec<u8> {
    encode(&OPERATION, value)
}

fn parameter(value: &Value) -> Vec<u8> {
    only(1, &encode(&PARAMETER, value))
}

fn request_body(value: &Value) -> Vec<u8> {
    only(1, &encode(&REQUEST_BODY, value))
}

fn response(value: &Value) -> Vec<u8> {
    only(1, &encode(&RESPONSE, value))
}

fn media_type(value: &Value) -> Vec<u8> {
    encode(&MEDIA_TYPE, value)
}

fn wrapped_schema(value: &Value) -> Vec<u8> {
    only(1, &schema_or_reference(value))
}

/// A schema, or whether there may be more.
fn additional(value: &Value) -> Vec<u8> {
    match value {
        Value::Bool(more) => vec![2 << 3, u8::from(*more)],
        schema => wrapped_schema(schema),
    }
}

/// A number, a truth or a text; the message has no place for lists and objects.
fn default(value: &Value) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    match value {
        Value::Number(number) => writer.double(1, number.as_f64().unwrap_or_default()),
        Value::Bool(truth) => writer.number(2, u64::from(*truth)),
        Value::String(text) => writer.text(3, text),
        Value::Null | Value::Array(_) | Value::Object(_) => {}
    }
    writer.finish()
}
