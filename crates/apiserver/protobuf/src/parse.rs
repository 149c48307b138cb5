//! A message's bytes → its fields by number. Fields that are not known are skipped; what stands twice is merged as the
//! real server merges it: of single values the last counts, messages add up, lists grow.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::budget::Budget;
use crate::error::ProtobufError;
use crate::messages::{self, Field, Message, SpecialForm, Type};
use crate::wire::{BYTES, FIXED64, Tag, VARINT, WireReader};

/// The fields that a message has, by number.
pub(crate) type WireFields = BTreeMap<u32, WireValue>;

/// A field's value.
#[derive(Debug)]
pub(crate) enum WireValue {
    /// Written as it is.
    Plain(Value),
    Message(WireFields),
    List(Vec<WireValue>),
    Map(BTreeMap<String, WireValue>),
}

/// Adds what the bytes hold to the message's fields.
pub(crate) fn parse(
    message: &'static Message,
    bytes: &[u8],
    into: &mut WireFields,
    budget: &mut Budget,
) -> Result<(), ProtobufError> {
    let mut reader = WireReader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.tag(message.short)?;
        match message.fields.get(&tag.number) {
            Some(field) => {
                let found = into.remove(&tag.number);
                let found = Site { field, tag }.read(field.kind, &mut reader, found, budget)?;
                into.insert(tag.number, found);
            }
            None => reader.skip(tag)?,
        }
    }
    Ok(())
}

/// A place where a value stands.
#[derive(Clone, Copy)]
struct Site {
    field: &'static Field,
    tag: Tag,
}

impl Site {
    fn read(
        self,
        kind: Type,
        reader: &mut WireReader<'_>,
        before: Option<WireValue>,
        budget: &mut Budget,
    ) -> Result<WireValue, ProtobufError> {
        budget.pay()?;
        Ok(match kind {
            Type::Message(name) => WireValue::Message(self.message(name, reader, before, budget)?),
            Type::List(item) => WireValue::List(self.list(*item, reader, before, budget)?),
            Type::Map(item) => WireValue::Map(self.map(*item, reader, before, budget)?),
            Type::Double => {
                WireValue::Plain(double(f64::from_le_bytes(self.expect(FIXED64, reader, WireReader::fixed64)?)))
            }
            Type::Flag | Type::Int32 | Type::Int64 => {
                WireValue::Plain(number(kind, self.expect(VARINT, reader, WireReader::varint)?))
            }
            Type::Text | Type::Bytes | Type::Json => {
                WireValue::Plain(plain(kind, self.expect(BYTES, reader, WireReader::bytes)?)?)
            }
        })
    }

    /// Reads what is written in a certain way, and refuses other ways.
    fn expect<'a, T>(
        self,
        wire_type: u8,
        reader: &mut WireReader<'a>,
        read: impl FnOnce(&mut WireReader<'a>) -> Result<T, ProtobufError>,
    ) -> Result<T, ProtobufError> {
        if self.tag.wire_type != wire_type {
            let field = self.field.go_name();
            return Err(ProtobufError::WireType { wire_type: self.tag.wire_type, field });
        }
        read(reader)
    }

    fn message(
        self,
        name: &str,
        reader: &mut WireReader<'_>,
        before: Option<WireValue>,
        budget: &mut Budget,
    ) -> Result<WireFields, ProtobufError> {
        let message = messages::named(name);
        let bytes = self.expect(BYTES, reader, WireReader::bytes)?;
        let mut fields = match before {
            // A time is replaced as a whole.
            Some(WireValue::Message(fields)) if !matches!(message.form, SpecialForm::Time | SpecialForm::MicroTime) => {
                fields
            }
            _ => WireFields::new(),
        };
        budget.below(|budget| parse(message, bytes, &mut fields, budget))?;
        Ok(fields)
    }

    fn list(
        self,
        item: Type,
        reader: &mut WireReader<'_>,
        before: Option<WireValue>,
        budget: &mut Budget,
    ) -> Result<Vec<WireValue>, ProtobufError> {
        let mut items = match before {
            Some(WireValue::List(items)) => items,
            _ => Vec::new(),
        };
        let numbers = matches!(item, Type::Flag | Type::Int32 | Type::Int64);
        if !numbers || self.tag.wire_type != BYTES {
            items.push(self.read(item, reader, None, budget)?);
            return Ok(items);
        }
        // Numbers may be packed: one length for all of them.
        let mut packed = WireReader::new(reader.bytes()?);
        while !packed.is_empty() {
            budget.pay()?;
            items.push(WireValue::Plain(number(item, packed.varint()?)));
        }
        Ok(items)
    }

    /// An entry of a map: a message with a key and a value.
    fn map(
        self,
        item: Type,
        reader: &mut WireReader<'_>,
        before: Option<WireValue>,
        budget: &mut Budget,
    ) -> Result<BTreeMap<String, WireValue>, ProtobufError> {
        let mut entries = match before {
            Some(WireValue::Map(entries)) => entries,
            _ => BTreeMap::new(),
        };
        let mut entry = WireReader::new(self.expect(BYTES, reader, WireReader::bytes)?);
        let (mut key, mut value) = (String::new(), None);
        while !entry.is_empty() {
            let site = Self { tag: entry.tag(self.field.name)?, ..self };
            match site.tag.number {
                1 => key = text(site.expect(BYTES, &mut entry, WireReader::bytes)?),
                2 => value = Some(site.read(item, &mut entry, value, budget)?),
                _ => entry.skip(site.tag)?,
            }
        }
        entries.insert(key, value.unwrap_or_else(|| nothing(item)));
        Ok(entries)
    }
}

/// The value of an entry without one.
fn nothing(kind: Type) -> WireValue {
    match kind {
        Type::Message(_) => WireValue::Message(WireFields::new()),
        Type::List(_) => WireValue::List(Vec::new()),
        Type::Map(_) => WireValue::Map(BTreeMap::new()),
        Type::Text | Type::Bytes => WireValue::Plain(Value::from("")),
        Type::Flag => WireValue::Plain(Value::from(false)),
        Type::Int32 | Type::Int64 | Type::Double => WireValue::Plain(Value::from(0)),
        Type::Json => WireValue::Plain(Value::Null),
    }
}

/// A number of the field's width: bits beyond it are lost, as in Go.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "that is how numbers are written")]
fn number(kind: Type, value: u64) -> Value {
    match kind {
        Type::Flag => Value::from(value != 0),
        Type::Int32 => Value::from(value as i32),
        _ => Value::from(value as i64),
    }
}

/// A number as it is written in JSON: `1.0` is `1`, and what is no number is nothing.
fn double(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within what a double holds exactly")]
        return Value::from(value as i64);
    }
    Value::from(value)
}

fn plain(kind: Type, bytes: &[u8]) -> Result<Value, ProtobufError> {
    Ok(match kind {
        Type::Bytes => Value::from(BASE64_STANDARD.encode(bytes)),
        Type::Json if bytes.is_empty() => Value::Null,
        Type::Json => serde_json::from_slice(bytes).map_err(|error| ProtobufError::Json(error.to_string()))?,
        _ => Value::from(text(bytes)),
    })
}

/// Bytes that are no text are replaced, not refused: that is what Go's JSON does.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
