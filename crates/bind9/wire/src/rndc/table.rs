//! The tables that commands and answers are made of ↔ their bytes: names, and texts or further tables.

use crate::message::{MalformedMessage, WireReader};

/// Values by name, in the order in which they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table(Vec<(Box<[u8]>, Value)>);

/// What stands under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(Vec<u8>),
    Table(Table),
}

/// Kinds of values (lib/isccc/include/isccc/sexpr.h and cc.c of BIND 9): text may be sent as either of the first two.
const STRING: u8 = 0;
const BINARY: u8 = 1;
const TABLE: u8 = 2;
/// Tables in tables: answers have two.
const DEEPEST: usize = 4;

impl Table {
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.0.push((name.as_bytes().into(), value));
        self
    }

    pub(super) fn with_text(self, name: &str, text: impl Into<Vec<u8>>) -> Self {
        self.with(name, Value::Text(text.into()))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(there, _)| **there == *name.as_bytes()).map(|(_, value)| value)
    }

    pub(super) fn table(&self, name: &str) -> Option<&Self> {
        match self.get(name)? {
            Value::Table(table) => Some(table),
            Value::Text(_) => None,
        }
    }

    /// A text; bytes that are none are replaced, and the NUL that ends some is left out.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Text(text) => Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()),
            Value::Table(_) => None,
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.text(name)?.trim().parse().ok()
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        for (name, value) in &self.0 {
            write_entry(name, value, bytes);
        }
    }

    pub(super) fn read(reader: &mut WireReader<'_>) -> Result<Self, MalformedMessage> {
        Self::read_at(reader, 0)
    }

    fn read_at(reader: &mut WireReader<'_>, depth: usize) -> Result<Self, MalformedMessage> {
        let mut table = Self::default();
        while !reader.is_at_end() {
            let name = reader.character_string()?.into();
            let kind = reader.u8()?;
            let length = reader.u32()?;
            let length = usize::try_from(length).map_err(|_| MalformedMessage::Short)?;
            let mut part = reader.part(length)?;
            let value = match kind {
                STRING | BINARY => Value::Text(part.rest().to_vec()),
                TABLE if depth < DEEPEST => Value::Table(Self::read_at(&mut part, depth + 1)?),
                _ => return Err(MalformedMessage::Value("a value in it is neither text nor a table")),
            };
            table.0.push((name, value));
        }
        Ok(table)
    }
}

fn write_entry(name: &[u8], value: &Value, bytes: &mut Vec<u8>) {
    bytes.push(u8::try_from(name.len()).expect("our names are short"));
    bytes.extend_from_slice(name);
    let (kind, content) = match value {
        Value::Text(text) => (BINARY, text.clone()),
        Value::Table(table) => {
            let mut content = Vec::new();
            table.write(&mut content);
            (TABLE, content)
        }
    };
    bytes.push(kind);
    bytes.extend(u32::try_from(content.len()).expect("a command is checked to be short").to_be_bytes());
    bytes.extend(content);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let inner = Table::default().with_text("type", "status");
        let table = Table::default().with_text("_ser", "7").with("_data", Value::Table(inner));
        let mut bytes = Vec::new();
        table.write(&mut bytes);

        let read = Table::read(&mut WireReader::new(&bytes)).unwrap();

        assert_eq!(read, table);
        assert_eq!(read.number("_ser"), Some(7));
        assert_eq!(read.table("_data").unwrap().text("type").unwrap(), "status");
        assert_eq!((read.text("_data"), read.text("none")), (None, None));
    }

    #[test]
    fn tables_are_not_read_deeper_than_answers_have_them() {
        let deep = (0..10).fold(Table::default(), |inner, _| Table::default().with("t", Value::Table(inner)));
        let mut bytes = Vec::new();
        deep.write(&mut bytes);

        assert!(Table::read(&mut WireReader::new(&bytes)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_table_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Table::read(&mut WireReader::new(&bytes));
        }
    }
}
