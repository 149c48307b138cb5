//! A message's fields → the JSON that Go's encoder writes: zero values where a field is always written, nothing where it
//! is left out when empty, and the fields of inlined messages in their parent.

use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::error::ProtobufError;
use crate::form;
use crate::messages::{self, Emit, Field, Message, SpecialForm, Type};
use crate::parse::{WireFields, WireValue};

/// The JSON of a message.
pub(crate) fn complete(message: &Message, fields: WireFields, budget: &mut Budget) -> Result<Value, ProtobufError> {
    match message.form {
        SpecialForm::Object => {
            let mut object = Map::new();
            write_fields(message, fields, &mut object, budget)?;
            Ok(Value::Object(object))
        }
        other => form::write(other, message, fields, budget),
    }
}

/// The JSON of a field's value.
pub(crate) fn value(kind: Type, found: WireValue, budget: &mut Budget) -> Result<Value, ProtobufError> {
    match (found, kind) {
        (WireValue::Message(fields), Type::Message(name)) => {
            budget.below(|budget| complete(messages::named(name), fields, budget))
        }
        (WireValue::List(items), Type::List(item)) => {
            items.into_iter().map(|found| value(*item, found, budget)).collect()
        }
        (WireValue::Map(entries), Type::Map(item)) => {
            let entries = entries.into_iter().map(|(key, found)| Ok((key, value(*item, found, budget)?)));
            Ok(Value::Object(entries.collect::<Result<_, ProtobufError>>()?))
        }
        (WireValue::Plain(plain), _) => Ok(plain),
        (WireValue::Message(_) | WireValue::List(_) | WireValue::Map(_), _) => {
            unreachable!("fields were read with the types of this table")
        }
    }
}

/// Writes every field of the message into `object`.
fn write_fields(
    message: &Message,
    mut fields: WireFields,
    object: &mut Map<String, Value>,
    budget: &mut Budget,
) -> Result<(), ProtobufError> {
    for (number, field) in &message.fields {
        let found = fields.remove(number);
        if let (true, Type::Message(name)) = (field.name.is_empty(), field.kind) {
            let inner = match found {
                Some(WireValue::Message(inner)) => inner,
                _ => WireFields::new(),
            };
            budget.below(|budget| write_fields(messages::named(name), inner, object, budget))?;
        } else if let Some(written) = write_field(field, found, budget)? {
            object.insert(field.name.to_owned(), written);
        }
    }
    Ok(())
}

/// What is written for a field; `None` where it is left out.
fn write_field(field: &Field, found: Option<WireValue>, budget: &mut Budget) -> Result<Option<Value>, ProtobufError> {
    Ok(match (found, field.emit) {
        (None, Emit::Omitted | Emit::Pointer) => None,
        (None, Emit::Null) => Some(Value::Null),
        (None, Emit::Always) => Some(zero(field.kind, budget)?),
        (Some(found), Emit::Omitted) => {
            let written = value(field.kind, found, budget)?;
            (!is_empty(&written)).then_some(written)
        }
        (Some(found), Emit::Always | Emit::Pointer | Emit::Null) => Some(value(field.kind, found, budget)?),
    })
}

/// What a field without a value is where it is written nevertheless.
fn zero(kind: Type, budget: &mut Budget) -> Result<Value, ProtobufError> {
    budget.pay()?;
    Ok(match kind {
        Type::Text => Value::from(""),
        Type::Flag => Value::from(false),
        Type::Int32 | Type::Int64 | Type::Double => Value::from(0),
        Type::Bytes | Type::Json | Type::List(_) | Type::Map(_) => Value::Null,
        Type::Message(name) => match messages::named(name) {
            // A list that is a message is none where the message is absent.
            message if message.form == SpecialForm::Items => Value::Null,
            message => complete(message, WireFields::new(), budget)?,
        },
    })
}

/// Whether Go leaves the value out. Of messages only times are left out, which are `null` then.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
