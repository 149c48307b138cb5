//! The messages whose JSON is not an object of their fields: times, quantities, numbers or texts, any JSON, and what an
//! `OpenAPI` schema may have in place of a schema.

use jiff::Timestamp;
use serde_json::Value;

use crate::budget::Budget;
use crate::complete::value;
use crate::error::ProtobufError;
use crate::messages::{Message, SpecialForm};
use crate::parse::WireFields;

/// Seconds of Go's zero time, the start of year 1.
const ZERO_TIME: i64 = -62_135_596_800;

/// The fields of such a message, taken out one by one.
struct MessageParts<'a> {
    message: &'a Message,
    fields: WireFields,
    budget: &'a mut Budget,
}

/// The JSON of a message that is written in a form of its own.
pub(crate) fn write(
    form: SpecialForm,
    message: &Message,
    fields: WireFields,
    budget: &mut Budget,
) -> Result<Value, ProtobufError> {
    let mut parts = MessageParts { message, fields, budget };
    match form {
        SpecialForm::Time => parts.time("%Y-%m-%dT%H:%M:%SZ", |_| 0),
        SpecialForm::MicroTime => parts.time("%Y-%m-%dT%H:%M:%S.%6fZ", |nanos| nanos / 1000 * 1000),
        SpecialForm::Quantity => Ok(parts.take(1)?.unwrap_or_else(|| Value::from("0"))),
        SpecialForm::IntOrString => parts.int_or_string(),
        SpecialForm::Object | SpecialForm::Raw => Ok(parts.take(1)?.unwrap_or(Value::Null)),
        SpecialForm::Items => Ok(parts.take(1)?.unwrap_or_else(|| Value::Array(Vec::new()))),
        SpecialForm::SchemaOrSchemas | SpecialForm::SchemaOrStrings => {
            let many = parts.take(2)?;
            Ok(many.or(parts.take(1)?).unwrap_or(Value::Null))
        }
        SpecialForm::SchemaOrBool => {
            let schema = parts.take(2)?;
            Ok(schema.or(parts.take(1)?).unwrap_or(Value::Bool(false)))
        }
    }
}

impl MessageParts<'_> {
    fn take(&mut self, number: u32) -> Result<Option<Value>, ProtobufError> {
        let Some(found) = self.fields.remove(&number) else { return Ok(None) };
        let field = self.message.fields.get(&number).expect("only fields of the message are read");
        value(field.kind, found, self.budget).map(Some)
    }

    fn number(&mut self, number: u32) -> Result<i64, ProtobufError> {
        Ok(self.take(number)?.and_then(|value| value.as_i64()).unwrap_or_default())
    }

    /// Seconds and nanoseconds since 1970, of which as much is kept as JSON shows.
    fn time(&mut self, format: &str, keep: impl Fn(i64) -> i64) -> Result<Value, ProtobufError> {
        if self.fields.is_empty() {
            return Ok(Value::Null);
        }
        let (seconds, nanos) = (self.number(1)?, keep(self.number(2)?));
        if (seconds, nanos) == (ZERO_TIME, 0) {
            return Ok(Value::Null);
        }
        let range = |_| ProtobufError::Time(seconds);
        let whole = Timestamp::from_second(seconds).map_err(range)?;
        let time = whole.checked_add(jiff::SignedDuration::from_nanos(nanos)).map_err(range)?;
        Ok(Value::from(time.strftime(format).to_string()))
    }

    fn int_or_string(&mut self) -> Result<Value, ProtobufError> {
        match self.number(1)? {
            0 => self.number(2).map(Value::from),
            1 => Ok(self.take(3)?.unwrap_or_else(|| Value::from(""))),
            _ => Err(ProtobufError::IntOrString),
        }
    }
}
