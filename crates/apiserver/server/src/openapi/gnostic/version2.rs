//! The messages of version 2.

use serde_json::Value;

use super::{Form, Message, Writer, encode, only};

static INFO: Message = Message { fields: &[("title", 1, Form::Text), ("version", 2, Form::Text)], extensions: 7 };

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Form::Text),
        ("format", 2, Form::Text),
        ("title", 3, Form::Text),
        ("description", 4, Form::Text),
        ("default", 5, Form::Any),
        ("multipleOf", 6, Form::Double),
        ("maximum", 7, Form::Double),
        ("exclusiveMaximum", 8, Form::Flag),
        ("minimum", 9, Form::Double),
        ("exclusiveMinimum", 10, Form::Flag),
        ("maxLength", 11, Form::Integer),
        ("minLength", 12, Form::Integer),
        ("pattern", 13, Form::Text),
        ("maxItems", 14, Form::Integer),
        ("minItems", 15, Form::Integer),
        ("uniqueItems", 16, Form::Flag),
        ("maxProperties", 17, Form::Integer),
        ("minProperties", 18, Form::Integer),
        ("required", 19, Form::Texts),
        ("enum", 20, Form::Anys),
        ("additionalProperties", 21, Form::One(additional)),
        ("type", 22, Form::One(type_item)),
        ("items", 23, Form::One(wrapped_schema)),
        ("allOf", 24, Form::Each(schema)),
        ("properties", 25, Form::Named(1, schema)),
        ("externalDocs", 29, Form::One(external_docs)),
        ("example", 30, Form::Any),
    ],
    extensions: 31,
};

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, Form::Text), ("url", 2, Form::Text)], extensions: 3 };

static PATH_ITEM: Message = Message {
    fields: &[
        ("get", 2, Form::One(operation)),
        ("put", 3, Form::One(operation)),
        ("post", 4, Form::One(operation)),
        ("delete", 5, Form::One(operation)),
        ("options", 6, Form::One(operation)),
        ("head", 7, Form::One(operation)),
        ("patch", 8, Form::One(operation)),
        ("parameters", 9, Form::Each(parameter_or_reference)),
    ],
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Form::Texts),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("produces", 6, Form::Texts),
        ("consumes", 7, Form::Texts),
        ("parameters", 8, Form::Each(parameter_or_reference)),
        ("responses", 9, Form::Named(1, response)),
        ("schemes", 10, Form::Texts),
    ],
    extensions: 13,
};

static RESPONSE: Message =
    Message { fields: &[("description", 1, Form::Text), ("schema", 2, Form::One(wrapped_schema))], extensions: 5 };

static BODY: Message = Message {
    fields: &[
        ("description", 1, Form::Text),
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("required", 4, Form::Flag),
        ("schema", 5, Form::One(schema)),
    ],
    extensions: 6,
};

static QUERY: Message = Message {
    fields: &[
        ("required", 1, Form::Flag),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 6, Form::Text),
        ("format", 7, Form::Text),
        ("uniqueItems", 20, Form::Flag),
    ],
    extensions: 23,
};

static PATH: Message = Message {
    fields: &[
        ("required", 1, Form::Flag),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 5, Form::Text),
        ("format", 6, Form::Text),
        ("uniqueItems", 19, Form::Flag),
    ],
    extensions: 22,
};

static REFERENCE: Message = Message { fields: &[("$ref", 1, Form::Text)], extensions: 2 };

static API_KEY: Message = Message {
    fields: &[("type", 1, Form::Text), ("name", 2, Form::Text), ("in", 3, Form::Text), ("description", 4, Form::Text)],
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
    let mut writer = Writer::default();
    writer.named(1, name, &[]);
    writer.finish()
}

pub(in super::super) fn security_definitions(value: &Value) -> Vec<u8> {
    let mut writer = Writer::default();
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
