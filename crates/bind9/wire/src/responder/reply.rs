//! Bytes that somebody sent, and the zones that are being seeded → what to answer. Pure.

use super::table::{SeedTable, ZoneSeed};
use crate::{
    message::{
        DnsMessage, DomainName, Entry, Header, IN, LONGEST_MESSAGE, MessageBuilder, Opcode, Question, ResourceRecord,
        ResponseCode, Section, TypeCode, WireReader,
    },
    tsig::{Checked, Conversation, check_request},
    values::Soa,
};

/// By what a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Datagram,
    Connection,
}

/// What is done about a request.
#[derive(Debug)]
pub(super) enum SeedReply {
    /// It is not even answered.
    Silence,
    /// One message.
    Message(Vec<u8>),
    /// All of a zone.
    Transfer(Box<Fetch>),
}

/// A zone on its way to who asked for it.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) header: Header,
    pub(super) question: Question,
    pub(super) seed: ZoneSeed,
    pub(super) conversation: Conversation,
}

/// Decides about one request. `now` is in seconds since 1970.
pub(super) fn reply(bytes: &[u8], by: Arrival, zones: &SeedTable, now: u64) -> SeedReply {
    let Ok(header) = Header::read(&mut WireReader::new(bytes)) else { return SeedReply::Silence };
    // Answering answers would let two servers talk for ever.
    if header.is_answer {
        return SeedReply::Silence;
    }
    let Some(question) = question_of(bytes) else { return refuse(header, None, ResponseCode::FORMERR) };
    let seed = zones.get(&question.name);
    let key_of = |name: &DomainName| seed.as_ref().and_then(|seed| seed.key(name)).cloned();
    match check_request(bytes, key_of, now) {
        Err(_) => refuse(header, None, ResponseCode::FORMERR),
        Ok(Checked::Unsigned) => refuse(header, Some(&question), ResponseCode::REFUSED),
        Ok(Checked::Refused(rejection)) => {
            SeedReply::Message(rejection.seal(bare(header.answering(ResponseCode::NOTAUTH), Some(&question))))
        }
        Ok(Checked::Verified(message, conversation)) => match (DnsMessage::read(&message), seed) {
            (Ok(message), Some(seed)) => answer(message, question, seed, conversation, by, now),
            _ => refuse(header, None, ResponseCode::FORMERR),
        },
    }
}

/// The one question that a request may have; it stands right behind the header.
fn question_of(bytes: &[u8]) -> Option<Question> {
    let mut reader = WireReader::new(bytes);
    Header::read(&mut reader).ok()?;
    let questions = reader.u16().ok()?;
    reader.bytes(6).ok()?;
    let question =
        Question { name: reader.name().ok()?, kind: TypeCode(reader.u16().ok()?), class: reader.u16().ok()? };
    (questions == 1).then_some(question)
}

fn answer(
    message: DnsMessage,
    question: Question,
    seed: ZoneSeed,
    conversation: Conversation,
    by: Arrival,
    now: u64,
) -> SeedReply {
    let header = message.header;
    let is_query = header.opcode == Opcode::QUERY && question.class == IN;
    match question.kind {
        TypeCode::SOA if is_query => apex(header, &question, &seed, conversation, now),
        // Who asks by datagram what does not fit one comes back by connection (RFC 1995 §2).
        TypeCode::IXFR if is_query && (by == Arrival::Datagram || is_up_to_date(&message, &seed.soa)) => {
            apex(header, &question, &seed, conversation, now)
        }
        TypeCode::AXFR | TypeCode::IXFR if is_query && by == Arrival::Connection => {
            SeedReply::Transfer(Box::new(Fetch {
                header: header.answering(ResponseCode::NOERROR),
                question,
                seed,
                conversation,
            }))
        }
        _ => {
            let mut conversation = conversation;
            let code = if header.opcode == Opcode::QUERY { ResponseCode::REFUSED } else { ResponseCode::NOTIMP };
            SeedReply::Message(conversation.sign(bare(header.answering(code), Some(&question)), now))
        }
    }
}

/// Whether who asks has this version or a newer one.
fn is_up_to_date(message: &DnsMessage, soa: &Soa) -> bool {
    let theirs = message
        .authorities
        .iter()
        .find(|entry| entry.kind == TypeCode::SOA)
        .and_then(|entry| Soa::read(&entry.data).ok());
    theirs.is_some_and(|theirs| !soa.serial.is_newer_than(theirs.serial))
}

fn apex(header: Header, question: &Question, seed: &ZoneSeed, mut conversation: Conversation, now: u64) -> SeedReply {
    let mut builder = MessageBuilder::new(header.answering(ResponseCode::NOERROR), Some(question));
    let fits = builder.push_within(Section::Answer, &soa_entry(&question.name, seed), LONGEST_MESSAGE);
    debug_assert!(fits, "one record is short");
    SeedReply::Message(conversation.sign(builder.finish(), now))
}

pub(super) fn soa_entry(zone: &DomainName, seed: &ZoneSeed) -> Entry {
    ResourceRecord { name: zone.clone(), kind: TypeCode::SOA, ttl: seed.soa_ttl, data: seed.soa.to_data() }.into()
}

fn refuse(header: Header, question: Option<&Question>, code: ResponseCode) -> SeedReply {
    SeedReply::Message(bare(header.answering(code), question))
}

fn bare(header: Header, question: Option<&Question>) -> Vec<u8> {
    MessageBuilder::new(header, question).finish()
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
