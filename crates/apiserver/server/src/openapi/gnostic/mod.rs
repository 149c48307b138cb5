//! JSON of a document → protocol buffers, as Google's gnostic defines them and `kubectl` reads them.
//!
//! A message is a table: which keyword goes to which field in which form.

pub(super) mod version2;
pub(super) mod version3;

use serde_json::Value;

/// A message: its fields, and the number of the one that holds the keywords that start with `x-`.
pub(super) struct Message {
    fields: &'static [(&'static str, u32, ValueForm)],
    extensions: u32,
}

/// How a keyword's value is written.
enum ValueForm {
    Text,
    Texts,
    Flag,
    Double,
    Integer,
    /// Any value, as YAML text.
    Any,
    Anys,
    /// A message.
    One(fn(&Value) -> Vec<u8>),
    /// A list of messages.
    Each(fn(&Value) -> Vec<u8>),
    /// A message with a list of named messages under a number.
    Named(u32, fn(&Value) -> Vec<u8>),
}

/// Writes the fields of one message.
#[derive(Default)]
pub(super) struct MessageWriter {
    bytes: Vec<u8>,
}

impl MessageWriter {
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.message(field, text.as_bytes());
    }

    pub(super) fn message(&mut self, field: u32, message: &[u8]) {
        self.varint((u64::from(field) << 3) | 2);
        self.varint(message.len() as u64);
        self.bytes.extend_from_slice(message);
    }

    /// A message of a name and a value.
    pub(super) fn named(&mut self, field: u32, name: &str, value: &[u8]) {
        let mut named = Self::default();
        named.text(1, name);
        named.message(2, value);
        self.message(field, &named.bytes);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn double(&mut self, field: u32, value: f64) {
        self.varint((u64::from(field) << 3) | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Writes what a message knows of a JSON object.
fn encode(message: &Message, value: &Value) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    for (key, field, form) in message.fields {
        if let Some(value) = value.get(*key) {
            write(&mut writer, *field, form, value);
        }
    }
    let extensions = value.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("x-"));
    extensions.for_each(|(key, value)| writer.named(message.extensions, key, &any(value)));
    writer.finish()
}

fn write(writer: &mut MessageWriter, field: u32, form: &ValueForm, value: &Value) {
    let items = || value.as_array().into_iter().flatten();
    match form {
        ValueForm::Text => writer.text(field, value.as_str().unwrap_or_default()),
        ValueForm::Texts => items().filter_map(Value::as_str).for_each(|text| writer.text(field, text)),
        ValueForm::Flag if value == true => writer.number(field, 1),
        ValueForm::Flag => {}
        ValueForm::Double => writer.double(field, value.as_f64().unwrap_or_default()),
        ValueForm::Integer => writer.number(field, value.as_u64().unwrap_or_default()),
        ValueForm::Any => writer.message(field, &any(value)),
        ValueForm::Anys => items().for_each(|value| writer.message(field, &any(value))),
        ValueForm::One(encode) => writer.message(field, &encode(value)),
        ValueForm::Each(encode) => items().for_each(|value| writer.message(field, &encode(value))),
        ValueForm::Named(inner, encode) => {
            let mut all = MessageWriter::default();
            let entries = value.as_object().into_iter().flatten();
            entries.for_each(|(name, value)| all.named(*inner, name, &encode(value)));
            writer.message(field, &all.finish());
        }
    }
}

/// JSON is YAML.
fn any(value: &Value) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    writer.text(2, &value.to_string());
    writer.finish()
}

/// A message with one field.
fn only(field: u32, message: &[u8]) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    writer.message(field, message);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_written_with_number_and_length() {
        let mut writer = MessageWriter::default();

        writer.text(1, "2.0");
        writer.message(31, &[7; 200]);

        let bytes = writer.finish();
        assert_eq!(&bytes[..5], b"\n\x032.0");
        assert_eq!(&bytes[5..9], &[0xfa, 0x01, 0xc8, 0x01]);
    }

    #[test]
    fn a_message_writes_what_its_table_names_and_extensions() {
        static MESSAGE: Message =
            Message { fields: &[("name", 2, ValueForm::Text), ("on", 3, ValueForm::Flag)], extensions: 4 };

        let bytes = encode(&MESSAGE, &json!({"name": "a", "on": true, "other": 1, "x-y": "z"}));

        assert_eq!(bytes, b"\x12\x01a\x18\x01\x22\x0c\x0a\x03x-y\x12\x05\x12\x03\"z\"");
    }
}
