//! A record: whose, what type, how long, what. Those of the class IN are the records of zones; others say things in messages.

use std::fmt;

use super::{
    name::DomainName,
    rdata::RecordData,
    reader::{MalformedMessage, WireReader},
    type_code::TypeCode,
    writer::WireWriter,
};

/// The class of all records of zones (RFC 1035 §3.2.4).
pub(crate) const IN: u16 = 1;
/// In an update: what must not be there, or one record that is to go (RFC 2136 §2.4, §2.5).
pub(crate) const NONE: u16 = 254;
/// In an update: whatever is there (RFC 2136 §2.4, §2.5).
pub(crate) const ANY: u16 = 255;

/// A record of a zone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceRecord {
    /// Whose it is.
    pub name: DomainName,
    /// What type of data it has.
    pub kind: TypeCode,
    /// How many seconds it may be kept.
    pub ttl: u32,
    /// What it says.
    pub data: RecordData,
}

impl ResourceRecord {
    /// In lower case where case does not count, so that equal records have equal bytes.
    pub fn canonical(&self) -> Self {
        let Self { name, kind, ttl, data } = self;
        Self { name: name.canonical(), kind: *kind, ttl: *ttl, data: data.canonical(*kind) }
    }
}

impl fmt::Display for ResourceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} IN {} {}", self.name, self.ttl, self.kind, self.data.to_text(self.kind))
    }
}

impl fmt::Debug for ResourceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What stands in a section of a message: a record of whatever class, perhaps without data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: DomainName,
    pub(crate) kind: TypeCode,
    pub(crate) class: u16,
    pub(crate) ttl: u32,
    pub(crate) data: RecordData,
}

impl Entry {
    /// One that says something by its class and type alone.
    pub(crate) fn empty(name: DomainName, kind: TypeCode, class: u16) -> Self {
        Self { name, kind, class, ttl: 0, data: RecordData(Box::default()) }
    }

    pub(crate) fn read(reader: &mut WireReader<'_>) -> Result<Self, MalformedMessage> {
        let name = reader.name()?;
        let kind = TypeCode(reader.u16()?);
        let class = reader.u16()?;
        let ttl = reader.u32()?;
        let length = usize::from(reader.u16()?);
        let mut part = reader.part(length)?;
        let data = if class == IN { RecordData::read(kind, &mut part)? } else { RecordData(part.rest().into()) };
        Ok(Self { name, kind, class, ttl, data })
    }

    pub(crate) fn write(&self, writer: &mut WireWriter) {
        writer.name(&self.name);
        writer.u16(self.kind.0);
        writer.u16(self.class);
        writer.u32(self.ttl);
        writer.u16(u16::try_from(self.data.0.len()).expect("data comes from a message or from a value that fits one"));
        writer.bytes(&self.data.0);
    }

    /// The record of a zone that this is, if it is one.
    pub(crate) fn into_record(self) -> Option<ResourceRecord> {
        let Self { name, kind, class, ttl, data } = self;
        (class == IN).then_some(ResourceRecord { name, kind, ttl, data })
    }
}

impl From<ResourceRecord> for Entry {
    fn from(record: ResourceRecord) -> Self {
        let ResourceRecord { name, kind, ttl, data } = record;
        Self { name, kind, class: IN, ttl, data }
    }
}
