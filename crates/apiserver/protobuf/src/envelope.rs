//! A body → the kind that it names and the kind's message → the object.

use serde_json::Value;

use crate::budget::Budget;
use crate::complete::complete;
use crate::error::ProtobufError;
use crate::messages;
use crate::parse::{WireFields, parse};
use crate::wire::{BYTES, WireReader};

/// The bytes that every body begins with.
const PREFIX: &[u8] = b"k8s\0";

/// What a body says of itself, and the message in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The version that the body names, as `apps/v1`; empty where it names none.
    pub api_version: String,
    /// The kind that the body names; empty where it names none.
    pub kind: String,
    message: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens a body.
    pub fn open(body: &'a [u8]) -> Result<Self, ProtobufError> {
        if body.is_empty() {
            return Err(ProtobufError::Empty);
        }
        let rest = body.strip_prefix(PREFIX).ok_or(ProtobufError::Prefix)?;
        if rest.is_empty() {
            return Err(ProtobufError::EmptyBody);
        }
        // How the message is written is told by the request's header, not by the last two.
        let [type_meta, message, ..] = last_of(rest, "Unknown", ["TypeMeta", "Raw", "ContentEncoding", "ContentType"])?
            .map(Option::unwrap_or_default);
        let [api_version, kind] =
            last_of(type_meta, "TypeMeta", ["APIVersion", "Kind"])?.map(Option::unwrap_or_default);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok(Self { api_version: text(api_version), kind: text(kind), message })
    }

    /// The same, with a version and a kind where the body names none.
    #[must_use]
    pub fn or(mut self, api_version: &str, kind: &str) -> Self {
        // What is no group and version counts as none.
        if self.api_version.is_empty() || self.api_version.matches('/').count() > 1 {
            api_version.clone_into(&mut self.api_version);
        }
        if self.kind.is_empty() {
            kind.clone_into(&mut self.kind);
        }
        self
    }

    /// The object, as its JSON would be.
    pub fn object(&self) -> Result<Value, ProtobufError> {
        let unknown = || ProtobufError::Kind { api_version: self.api_version.clone(), kind: self.kind.clone() };
        let message = messages::of_kind(&self.api_version, &self.kind).ok_or_else(unknown)?;
        let (mut fields, budget) = (WireFields::new(), &mut Budget::new());
        parse(message, self.message, &mut fields, budget)?;
        let mut object = complete(message, fields, budget)?;
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".to_owned(), Value::from(self.api_version.as_str()));
            object.insert("kind".to_owned(), Value::from(self.kind.as_str()));
        }
        Ok(object)
    }
}

/// The fields 1, 2, … of a message that holds bytes only; of those that stand twice the last.
fn last_of<'a, const N: usize>(
    bytes: &'a [u8],
    message: &'static str,
    names: [&str; N],
) -> Result<[Option<&'a [u8]>; N], ProtobufError> {
    let mut found = [None; N];
    let mut reader = WireReader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.tag(message)?;
        let index = usize::try_from(tag.number).map_or(N, |number| number - 1);
        match (found.get_mut(index), tag.wire_type) {
            (Some(place), BYTES) => *place = Some(reader.bytes()?),
            (Some(_), wire_type) => return Err(ProtobufError::WireType { wire_type, field: names[index].to_owned() }),
            (None, _) => reader.skip(tag)?,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &[u8]) -> String {
        Envelope::open(body).unwrap_err().to_string()
    }

    #[test]
    fn a_body_begins_with_four_bytes_and_an_envelope() {
        assert_eq!(refused(b""), "empty data");
        assert_eq!(refused(b"k8s\0"), "empty body");
        assert!(refused(b"{}").ends_with("expected prefix [107 56 115 0]"));
        assert_eq!(refused(b"k8s\0\x0a\x09\x0a"), "unexpected EOF");
        assert_eq!(refused(b"k8s\0\x08\x01"), "proto: wrong wireType = 0 for field TypeMeta");
        assert_eq!(refused(b"k8s\0\x0a\x02\x08\x01"), "proto: wrong wireType = 0 for field APIVersion");
    }

    #[test]
    fn the_path_tells_the_kind_where_the_body_does_not() {
        let body = b"k8s\0\x12\x00";

        let envelope = Envelope::open(body).unwrap().or("v1", "ConfigMap");

        assert_eq!(
            envelope.object().unwrap(),
            serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
        );
    }

    #[test]
    fn kinds_that_are_not_known_are_named() {
        let error = Envelope::open(b"k8s\0\x12\x00").unwrap().or("v1", "Nonsense").object().unwrap_err();

        assert_eq!(error.to_string(), "no kind \"Nonsense\" is registered for version \"v1\"");
    }
}
