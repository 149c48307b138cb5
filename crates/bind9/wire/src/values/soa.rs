//! What stands at a zone's apex: who is responsible, which version this is, how secondaries keep up (RFC 1035 §3.3.13).

use super::serial::Serial;
use crate::message::{DomainName, MalformedMessage, RecordData, WireReader};

/// The data of a SOA record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Soa {
    /// The server that updates go to.
    pub primary: DomainName,
    /// The mail address of who is responsible, its `@` a dot.
    pub mailbox: DomainName,
    /// The zone's version.
    pub serial: Serial,
    /// Seconds after which a secondary looks for a newer one.
    pub refresh: u32,
    /// Seconds after which it tries again.
    pub retry: u32,
    /// Seconds after which it no longer answers without having reached a primary.
    pub expire: u32,
    /// Seconds for which others may keep that there is nothing.
    pub negative_ttl: u32,
}

impl Soa {
    /// The data of the record.
    pub fn to_data(&self) -> RecordData {
        let Self { primary, mailbox, serial, refresh, retry, expire, negative_ttl } = self;
        let numbers = [serial.0, *refresh, *retry, *expire, *negative_ttl].map(u32::to_be_bytes).concat();
        RecordData([primary.wire(), mailbox.wire(), &numbers].concat().into())
    }

    /// Reads the data of a SOA record.
    pub fn read(data: &RecordData) -> Result<Self, MalformedMessage> {
        let mut reader = WireReader::new(data.as_bytes());
        let soa = Self {
            primary: reader.name()?,
            mailbox: reader.name()?,
            serial: Serial(reader.u32()?),
            refresh: reader.u32()?,
            retry: reader.u32()?,
            expire: reader.u32()?,
            negative_ttl: reader.u32()?,
        };
        reader.finish()?;
        Ok(soa)
    }
}
