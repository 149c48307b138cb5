//! The data of a record → its text in a zone file.

use std::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
};

use base64::{Engine, prelude::BASE64_STANDARD};

use super::soa::Soa;
use crate::message::{MalformedMessage, RecordData, TypeCode, WireReader, write_escaped};

impl RecordData {
    /// The text as zone files have it. What is not known here, or what its type's text cannot say, gets the form that every
    /// server reads (RFC 3597 §5).
    pub fn to_text(&self, kind: TypeCode) -> String {
        let text = known(kind, &mut WireReader::new(&self.0)).ok().flatten();
        let says_it =
            |text: &String| Self::parse(kind, text).is_ok_and(|read| read.canonical(kind) == self.canonical(kind));
        text.filter(says_it).unwrap_or_else(|| generic(&self.0))
    }
}

fn generic(bytes: &[u8]) -> String {
    format!("\\# {} {}", bytes.len(), hex(bytes)).trim_end().to_owned()
}

fn known(kind: TypeCode, reader: &mut WireReader<'_>) -> Result<Option<String>, MalformedMessage> {
    let text = match kind {
        TypeCode::A => <[u8; 4]>::try_from(reader.rest()).ok().map(|octets| Ipv4Addr::from(octets).to_string()),
        TypeCode::AAAA => <[u8; 16]>::try_from(reader.rest()).ok().map(|octets| Ipv6Addr::from(octets).to_string()),
        TypeCode::NS | TypeCode::CNAME | TypeCode::PTR | TypeCode::DNAME => Some(reader.name()?.to_string()),
        TypeCode::SOA => Some(soa(&Soa::read(&RecordData(reader.rest().into()))?)),
        TypeCode::MX => Some(format!("{} {}", reader.u16()?, reader.name()?)),
        TypeCode::TXT | TypeCode::SPF => Some(strings(reader)?),
        TypeCode::SRV => Some(format!("{} {} {} {}", reader.u16()?, reader.u16()?, reader.u16()?, reader.name()?)),
        TypeCode::CAA => {
            let flags = reader.u8()?;
            let tag = String::from_utf8_lossy(reader.character_string()?).into_owned();
            Some(format!("{flags} {tag} {}", quoted(reader.rest())))
        }
        TypeCode::DS | TypeCode::CDS => {
            Some(format!("{} {} {} {}", reader.u16()?, reader.u8()?, reader.u8()?, hex(reader.rest())))
        }
        TypeCode::DNSKEY | TypeCode::CDNSKEY => {
            Some(format!("{} {} {} {}", reader.u16()?, reader.u8()?, reader.u8()?, base64(reader.rest())))
        }
        TypeCode::CERT => {
            Some(format!("{} {} {} {}", reader.u16()?, reader.u16()?, reader.u8()?, base64(reader.rest())))
        }
        TypeCode::TLSA | TypeCode::SMIMEA => {
            Some(format!("{} {} {} {}", reader.u8()?, reader.u8()?, reader.u8()?, hex(reader.rest())))
        }
        TypeCode::SSHFP => Some(format!("{} {} {}", reader.u8()?, reader.u8()?, hex(reader.rest()))),
        TypeCode::URI => Some(format!("{} {} {}", reader.u16()?, reader.u16()?, quoted(reader.rest()))),
        TypeCode::NAPTR => {
            let (order, preference) = (reader.u16()?, reader.u16()?);
            let [flags, service, regex] =
                [reader.character_string()?, reader.character_string()?, reader.character_string()?];
            let texts = [flags, service, regex].map(quoted).join(" ");
            Some(format!("{order} {preference} {texts} {}", reader.name()?))
        }
        _ => None,
    };
    reader.finish()?;
    Ok(text)
}

fn soa(soa: &Soa) -> String {
    let Soa { primary, mailbox, serial, refresh, retry, expire, negative_ttl } = soa;
    format!("{primary} {mailbox} {serial} {refresh} {retry} {expire} {negative_ttl}")
}

fn strings(reader: &mut WireReader<'_>) -> Result<String, MalformedMessage> {
    let mut texts = Vec::new();
    while !reader.is_at_end() {
        texts.push(quoted(reader.character_string()?));
    }
    Ok(texts.join(" "))
}

fn quoted(text: &[u8]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text {
        match byte {
            b' ' => quoted.push(' '),
            _ => write_escaped(&mut quoted, *byte, b"\"\\").expect("a String takes everything"),
        }
    }
    quoted.push('"');
    quoted
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}
