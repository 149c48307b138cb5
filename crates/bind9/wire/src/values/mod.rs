//! Values of records as the rest of the program has them ↔ their bytes. Pure.
//!
//! ```text
//! addresses, names, texts ─┐
//! portolan_dns::Data ──────┼─► RecordData ─► the text of a zone file
//! the text of a zone file ─┘
//! ```
//! Names in values are always absolute, with or without the dot at their end. What is not read here, LOC and the parameters of SVCB and
//! HTTPS, goes and comes in the form for types that nobody knows: `\# 4 0a000001` (RFC 3597 §5).

mod dnskey;
mod parse;
mod serial;
mod soa;
mod text;

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::{Engine, prelude::BASE64_STANDARD};
use portolan_core::InvalidName;
use portolan_dns::Data;

use crate::message::{DomainName, RecordData, TypeCode, WireReader};

pub use dnskey::DsDigest;
pub use serial::Serial;
pub use soa::Soa;
pub(crate) use text::hex;

/// A value of a record that cannot be one; its message says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// A name in it.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Anything else.
    #[error("{text:?} is no value of a {kind} record: {why}")]
    Value {
        /// The type.
        kind: TypeCode,
        /// The text, or the beginning of it.
        text: String,
        /// What to change.
        why: &'static str,
    },
}

/// Bytes of a character string (RFC 1035 §3.3).
const LONGEST_STRING: usize = 255;
/// Bytes of a record's data.
pub(crate) const LONGEST_DATA: usize = 65_535;

impl RecordData {
    /// The address of an A record.
    pub fn a(address: Ipv4Addr) -> Self {
        Self(address.octets().into())
    }

    /// The address of an AAAA record.
    pub fn aaaa(address: Ipv6Addr) -> Self {
        Self(address.octets().into())
    }

    /// The one name that is all of an NS, CNAME, PTR or DNAME record.
    pub fn name(target: &DomainName) -> Self {
        Self(target.wire().into())
    }

    /// A mail server.
    pub fn mx(priority: u16, target: &DomainName) -> Self {
        Self([&priority.to_be_bytes()[..], target.wire()].concat().into())
    }

    /// A service's host and port.
    pub fn srv(priority: u16, weight: u16, port: u16, target: &DomainName) -> Self {
        let numbers = [priority, weight, port].map(u16::to_be_bytes).concat();
        Self([&numbers[..], target.wire()].concat().into())
    }

    /// Texts as the character strings of one TXT record: each in as many strings as it needs, an empty one in one. `None` when
    /// they are longer than a record can be, or none at all.
    pub fn txt<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut bytes = Vec::new();
        for text in texts {
            if text.is_empty() {
                bytes.push(0);
            }
            text.chunks(LONGEST_STRING).for_each(|string| push_string(&mut bytes, string));
        }
        (1..=LONGEST_DATA).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// Who may issue certificates. `None` for a tag that is not of letters and digits (RFC 8659 §4.1), or a value that is too long.
    pub fn caa(flags: u8, tag: &str, value: &[u8]) -> Option<Self> {
        let fits = (1..=LONGEST_STRING).contains(&tag.len()) && value.len() + tag.len() + 2 <= LONGEST_DATA;
        let is_tag = tag.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (fits && is_tag).then(|| {
            let mut bytes = vec![flags];
            push_string(&mut bytes, tag.as_bytes());
            bytes.extend_from_slice(value);
            Self(bytes.into())
        })
    }

    /// A value with parts. `None` for one that cannot be sent: a name, a number in base64 or hexadecimal that is none, a text that
    /// is too long, and LOC, SVCB and HTTPS.
    pub fn of(data: &Data) -> Option<Self> {
        let name = |text: &str| DomainName::parse(text).ok();
        Some(match data {
            Data::Srv { priority, weight, port, target } => Self::srv(*priority, *weight, *port, &name(target)?),
            Data::Caa { flags, tag, value } => Self::caa(*flags, tag, value.as_bytes())?,
            Data::Cert { kind, key_tag, algorithm, certificate } => {
                let numbers = [kind.to_be_bytes(), key_tag.to_be_bytes()].concat();
                Self([&numbers[..], &[*algorithm], &from_base64(certificate)?].concat().into())
            }
            Data::Dnskey { flags, protocol, algorithm, public_key } => {
                Self([&flags.to_be_bytes()[..], &[*protocol, *algorithm], &from_base64(public_key)?].concat().into())
            }
            Data::Ds { key_tag, algorithm, digest_type, digest } => {
                Self([&key_tag.to_be_bytes()[..], &[*algorithm, *digest_type], &from_hex(digest)?].concat().into())
            }
            Data::Association { usage, selector, matching_type, certificate } => {
                Self([&[*usage, *selector, *matching_type][..], &from_hex(certificate)?].concat().into())
            }
            Data::Sshfp { algorithm, kind, fingerprint } => {
                Self([&[*algorithm, *kind][..], &from_hex(fingerprint)?].concat().into())
            }
            Data::Naptr(naptr) => {
                let mut bytes = [naptr.order.to_be_bytes(), naptr.preference.to_be_bytes()].concat();
                for text in [&naptr.flags, &naptr.service, &naptr.regex] {
                    let fitting = Some(text.as_bytes()).filter(|text| text.len() <= LONGEST_STRING)?;
                    push_string(&mut bytes, fitting);
                }
                bytes.extend_from_slice(name(&naptr.replacement)?.wire());
                Self(bytes.into())
            }
            // The priority of a URI stands beside the value in the vocabulary; see `RecordData::uri`.
            Data::Uri { .. } | Data::Service { .. } | Data::Loc(_) => return None,
        })
    }

    /// The name that a record of this type points to: a server, an alias' target, a mail server.
    pub fn target(&self, kind: TypeCode) -> Option<DomainName> {
        let before = match kind {
            TypeCode::NS | TypeCode::CNAME | TypeCode::PTR | TypeCode::DNAME => 0,
            TypeCode::MX | TypeCode::AFSDB | TypeCode::KX => 2,
            TypeCode::SRV => 6,
            _ => return None,
        };
        let mut reader = WireReader::new(self.0.get(before..)?);
        reader.name().ok()
    }

    /// A URI and its place among others.
    pub fn uri(priority: u16, weight: u16, target: &str) -> Self {
        Self([&priority.to_be_bytes()[..], &weight.to_be_bytes(), target.as_bytes()].concat().into())
    }
}

fn push_string(bytes: &mut Vec<u8>, string: &[u8]) {
    bytes.push(u8::try_from(string.len()).expect("who calls this has cut it at 255 bytes"));
    bytes.extend_from_slice(string);
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests;
