//! The data of a record as somebody sent it → the same without pointers, and its parts: where names stand in it.

use std::fmt;

use super::{
    name::DomainName,
    reader::{MalformedMessage, WireReader},
    type_code::TypeCode,
};

/// The data of one record: its bytes on the wire, names uncompressed and spelled as they came.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordData(pub(crate) Box<[u8]>);

/// In the form for types that nobody knows, since data does not know its own.
impl fmt::Debug for RecordData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(TypeCode(0)))
    }
}

/// A part of a record's data.
#[derive(Clone, Copy)]
enum Part {
    /// So many bytes.
    Bytes(usize),
    /// A length and as many bytes.
    Text,
    /// A name, which old types may have compressed.
    Name,
}

/// The parts up to the last name; what follows is bytes.
fn parts(kind: TypeCode) -> &'static [Part] {
    use Part::{Bytes, Name, Text};
    match kind {
        TypeCode::NS | TypeCode::CNAME | TypeCode::PTR | TypeCode::DNAME | TypeCode::NSEC => &[Name],
        TypeCode::SOA | TypeCode::RP => &[Name, Name],
        TypeCode::MX | TypeCode::AFSDB | TypeCode::KX | TypeCode::SVCB | TypeCode::HTTPS => &[Bytes(2), Name],
        TypeCode::SRV => &[Bytes(6), Name],
        TypeCode::NAPTR => &[Bytes(4), Text, Text, Text, Name],
        TypeCode::RRSIG => &[Bytes(18), Name],
        _ => &[],
    }
}

/// How many bytes stand behind the last part, where a type says so.
fn bytes_behind(kind: TypeCode) -> Option<usize> {
    match kind {
        TypeCode::A => Some(4),
        TypeCode::AAAA => Some(16),
        TypeCode::SOA => Some(20),
        TypeCode::RRSIG | TypeCode::NSEC | TypeCode::SVCB | TypeCode::HTTPS => None,
        _ if !parts(kind).is_empty() => Some(0),
        _ => None,
    }
}

impl RecordData {
    /// The bytes on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes that are data of a type; what does not fit the type is refused.
    pub fn from_bytes(kind: TypeCode, bytes: &[u8]) -> Result<Self, MalformedMessage> {
        Self::read(kind, &mut WireReader::new(bytes))
    }

    /// In lower case where names stand, so that equal data has equal bytes (RFC 4034 §6.2).
    pub fn canonical(&self, kind: TypeCode) -> Self {
        let lower = |name: DomainName| name.canonical();
        rewritten(kind, &mut WireReader::new(&self.0), lower).map_or_else(|_| self.clone(), Self)
    }

    /// Reads all of a part of a message.
    pub(crate) fn read(kind: TypeCode, reader: &mut WireReader<'_>) -> Result<Self, MalformedMessage> {
        rewritten(kind, reader, |name| name).map(Self)
    }
}

fn rewritten(
    kind: TypeCode,
    reader: &mut WireReader<'_>,
    spelling: impl Fn(DomainName) -> DomainName,
) -> Result<Box<[u8]>, MalformedMessage> {
    let mut bytes = Vec::new();
    for part in parts(kind) {
        match part {
            Part::Bytes(count) => bytes.extend_from_slice(reader.bytes(*count)?),
            Part::Text => {
                let text = reader.character_string()?;
                bytes.push(u8::try_from(text.len()).expect("a character string is at most 255 bytes long"));
                bytes.extend_from_slice(text);
            }
            Part::Name => bytes.extend_from_slice(spelling(reader.name()?).wire()),
        }
    }
    let behind = reader.rest();
    if bytes_behind(kind).is_some_and(|count| count != behind.len()) {
        return Err(MalformedMessage::Value("the data of a record does not have the length of its type"));
    }
    bytes.extend_from_slice(behind);
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_data_are_read_through_their_pointers() {
        let message = b"\x07example\x03com\0\x00\x0a\x04Mail\xc0\x00";
        let mut reader = WireReader::new(message);
        reader.name().unwrap();

        let data = RecordData::read(TypeCode::MX, &mut reader).unwrap();

        assert_eq!(data.as_bytes(), b"\x00\x0a\x04Mail\x07example\x03com\0");
        assert_eq!(data.canonical(TypeCode::MX).as_bytes(), b"\x00\x0a\x04mail\x07example\x03com\0");
    }

    #[test]
    fn data_that_does_not_fit_its_type_is_refused() {
        for (kind, bytes) in [
            (TypeCode::A, &b"\x7f\0\0"[..]),
            (TypeCode::AAAA, b"\0"),
            (TypeCode::MX, b"\0\x0a"),
            (TypeCode::NS, b"\x01a\0x"),
            (TypeCode::SOA, b"\0\0\0\0"),
            (TypeCode::NAPTR, b"\0\0\0\0\x05ab"),
        ] {
            assert!(RecordData::from_bytes(kind, bytes).is_err(), "{kind}");
        }
    }

    #[test]
    fn text_keeps_its_case() {
        let data = RecordData::from_bytes(TypeCode::TXT, b"\x05Hello").unwrap();
        assert_eq!(data.canonical(TypeCode::TXT), data);
    }
}
