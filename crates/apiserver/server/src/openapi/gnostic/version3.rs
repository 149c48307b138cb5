//! The messages of version 3.

use serde_json::Value;

use super::{Form, Message, Writer, encode, only};

static INFO: Message = Message { fields: &[("title", 1, Form::Text), ("version", 6, Form::Text)], extensions: 7 };

static SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, Form::Flag),
        ("externalDocs", 6, Form::One(external_docs)),
        ("example", 7, Form::Any),
        ("title", 9, Form::Text),
        ("multipleOf", 10, Form::Double),
        ("maximum", 11, Form::Double),
        ("exclusiveMaximum", 12, Form::Flag),
        ("minimum", 13, Form::Double),
        ("exclusiveMinimum", 14, Form::Flag),
        ("maxLength", 15, Form::Integer),
        ("minLength", 16, Form::Integer),
        ("pattern", 17, Form::Text),
        ("maxItems", 18, Form::Integer),
        ("minItems", 19, Form::Integer),
        ("uniqueItems", 20, Form::Flag),
        ("maxProperties", 21, Form::Integer),
        ("minProperties", 22, Form::Integer),
        ("required", 23, Form::Texts),
        ("enum", 24, Form::Anys),
        ("type", 25, Form::Text),
        ("allOf", 26, Form::Each(schema_or_reference)),
        ("oneOf", 27, Form::Each(schema_or_reference)),
        ("anyOf", 28, Form::Each(schema_or_reference)),
        ("not", 29, Form::One(schema)),
        ("items", 30, Form::One(wrapped_schema)),
        ("properties", 31, Form::Named(1, schema_or_reference)),
        ("additionalProperties", 32, Form::One(additional)),
        ("default", 33, Form::One(default)),
        ("description", 34, Form::Text),
        ("format", 35, Form::Text),
    ],
    extensions: 36,
};

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, Form::Text), ("url", 2, Form::Text)], extensions: 3 };

static REFERENCE: Message = Message { fields: &[("$ref", 1, Form::Text)], extensions: 4 };

static PATH_ITEM: Message = Message {
    fields: &[
        ("get", 4, Form::One(operation)),
        ("put", 5, Form::One(operation)),
        ("post", 6, Form::One(operation)),
        ("delete", 7, Form::One(operation)),
        ("options", 8, Form::One(operation)),
        ("head", 9, Form::One(operation)),
        ("patch", 10, Form::One(operation)),
        ("parameters", 13, Form::Each(parameter)),
    ],
    extensions: 14,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Form::Texts),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("parameters", 6, Form::Each(parameter)),
        ("requestBody", 7, Form::One(request_body)),
        ("responses", 8, Form::Named(2, response)),
    ],
    extensions: 13,
};

static PARAMETER: Message = Message {
    fields: &[
        ("name", 1, Form::Text),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("required", 4, Form::Flag),
        ("schema", 10, Form::One(schema_or_reference)),
    ],
    extensions: 14,
};

static REQUEST_BODY: Message = Message {
    fields: &[("description", 1, Form::Text), ("content", 2, Form::Named(1, media_type)), ("required", 3, Form::Flag)],
    extensions: 4,
};

static RESPONSE: Message =
    Message { fields: &[("description", 1, Form::Text), ("content", 3, Form::Named(1, media_type))], extensions: 5 };

static MEDIA_TYPE: Message = Message { fields: &[("schema", 1, Form::One(schema_or_reference))], extensions: 5 };

static SECURITY_SCHEME: Message = Message {
    fields: &[("type", 1, Form::Text), ("description", 2, Form::Text), ("name", 3, Form::Text), ("in", 4, Form::Text)],
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
    let mut writer = Writer::default();
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
    let mut writer = Writer::default();
    match value {
        Value::Number(number) => writer.double(1, number.as_f64().unwrap_or_default()),
        Value::Bool(truth) => writer.number(2, u64::from(*truth)),
        Value::String(text) => writer.text(3, text),
        Value::Null | Value::Array(_) | Value::Object(_) => {}
    }
    writer.finish()
}
