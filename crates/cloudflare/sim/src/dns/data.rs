//! Records whose parts are members of `data`: which parts a type has, and the content they make together.

use serde_json::{Map, Value};

use super::content::host;
use crate::reply::Refusal;

/// What a part may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum DataPart {
    /// A whole number up to this.
    Whole(u64),
    /// A number between these.
    Number(f64, f64),
    Text,
    /// Text that may be empty or left out.
    Maybe,
    /// A host name or `.`.
    Host,
    Hex,
    OneOf(&'static [&'static str]),
}

/// The parts of a type, in the order of its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataForm {
    pub(super) parts: &'static [(&'static str, DataPart)],
    pub(super) write: fn(&Map<String, Value>) -> String,
}

impl DataForm {
    /// The parts, checked and normalised, and the content they make.
    pub(super) fn read(&self, given: &Map<String, Value>) -> Result<(Map<String, Value>, String), Refusal> {
        let unknown = given.keys().find(|name| !self.parts.iter().any(|(part, _)| part == name));
        if let Some(name) = unknown {
            return Err(Refusal::bad(9207, format!("Request body is invalid: unknown data field \"{name}\".")));
        }
        let mut data = Map::new();
        for (name, part) in self.parts {
            data.insert((*name).to_owned(), part.read(name, given.get(*name))?);
        }
        let content = (self.write)(&data);
        Ok((data, content))
    }
}

impl DataPart {
    fn read(self, name: &str, given: Option<&Value>) -> Result<Value, Refusal> {
        let wrong = |must: &str| Refusal::bad(9103, format!("Invalid {name}, must be {must}."));
        let Some(given) = given.filter(|given| !given.is_null()) else {
            return match self {
                Self::Maybe => Ok(Value::from("")),
                Self::Number(0.0, _) => Ok(Value::from(0)),
                _ => Err(Refusal::bad(9101, format!("{name} is a required data field."))),
            };
        };
        let text = given.as_str();
        match self {
            Self::Whole(max) => match super::whole(given) {
                Some(number) if number <= max => Ok(Value::from(number)),
                _ => Err(wrong(&format!("between 0 and {max}"))),
            },
            Self::Number(min, max) => match given.as_f64() {
                Some(number) if (min..=max).contains(&number) => Ok(given.clone()),
                _ => Err(wrong(&format!("a number between {min} and {max}"))),
            },
            Self::Text => text.filter(|text| !text.is_empty()).map(Value::from).ok_or_else(|| wrong("a string")),
            Self::Maybe => text.map(Value::from).ok_or_else(|| wrong("a string")),
            Self::Host if text == Some(".") => Ok(Value::from(".")),
            Self::Host => text.and_then(host).map(Value::from).ok_or_else(|| wrong("a hostname")),
            Self::Hex => match text {
                Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit()) => Ok(text.into()),
                _ => Err(wrong("hexadecimal")),
            },
            Self::OneOf(choices) => match text {
                Some(text) if choices.contains(&text) => Ok(Value::from(text)),
                _ => Err(wrong(&format!("one of {}", choices.join(", ")))),
            },
        }
    }
}

/// All parts but the last `quoted`, separated by spaces; those in quotes.
pub(super) fn joined(data: &Map<String, Value>, names: &[&str]) -> String {
    let part = |name: &&str| match data.get(*name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    names.iter().map(part).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A part in quotes.
pub(super) fn quoted(data: &Map<String, Value>, name: &str) -> String {
    format!("\"{}\"", data.get(name).and_then(Value::as_str).unwrap_or_default())
}
