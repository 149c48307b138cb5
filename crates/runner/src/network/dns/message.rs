//! A datagram of the DNS → what is asked; what is answered → a datagram (RFC 1035, and RFC 6891 for larger ones).

use std::net::{Ipv4Addr, Ipv6Addr};

/// A sort of record by its number.
pub type RecordKind = u16;

/// Numbers of sorts of records (RFC 1035 §3.2.2, RFC 3596, RFC 2782, RFC 6891).
pub mod kinds {
    use super::RecordKind;

    /// An address of IPv4.
    pub const A: RecordKind = 1;
    /// Another name.
    pub const CNAME: RecordKind = 5;
    /// What a zone is.
    pub const SOA: RecordKind = 6;
    /// The name of an address.
    pub const PTR: RecordKind = 12;
    /// Text.
    pub const TXT: RecordKind = 16;
    /// An address of IPv6.
    pub const AAAA: RecordKind = 28;
    /// Host and port.
    pub const SRV: RecordKind = 33;
    /// What a client can do.
    pub const OPT: RecordKind = 41;
    /// All that there is.
    pub const ANY: RecordKind = 255;
}

const INTERNET: u16 = 1;
/// What a client takes that says nothing (RFC 1035 §2.3.4).
const USUAL_BYTES: usize = 512;
/// What this side takes by UDP: what passes any network in one piece.
const OWN_BYTES: u16 = 1232;
const LONGEST_NAME: usize = 255;
const MOST_LABELS: usize = 128;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverQuery {
    /// The number by which the client knows its answer.
    pub id: u16,
    /// The name: in small letters, without a dot at its end.
    pub name: String,
    /// Which records.
    pub kind: RecordKind,
    /// The question as it came, for the answer.
    question: Vec<u8>,
    /// How long an answer by UDP may be.
    pub most_bytes: usize,
    has_edns: bool,
    wants_recursion: bool,
}

/// Why a message is not answered as a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// It is no question at all, and gets no answer.
    Noise,
    /// It is refused.
    Refused {
        /// Its number.
        id: u16,
        /// Why.
        code: ReplyCode,
    },
}

/// How a question was answered (RFC 1035 §4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyCode {
    /// Well; there may be no records of the sort.
    NoError,
    /// It was not understood.
    FormatError,
    /// No server could tell.
    ServerFailure,
    /// There is no such name.
    NoName,
    /// Only questions are answered.
    NotImplemented,
}

impl ReplyCode {
    fn number(self) -> u8 {
        match self {
            Self::NoError => 0,
            Self::FormatError => 1,
            Self::ServerFailure => 2,
            Self::NoName => 3,
            Self::NotImplemented => 4,
        }
    }
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordContent {
    /// An address.
    A(Ipv4Addr),
    /// An address of IPv6.
    Aaaa(Ipv6Addr),
    /// Another name.
    Cname(String),
    /// The name of an address.
    Ptr(String),
    /// Host and port.
    Srv {
        /// The share of requests.
        weight: u16,
        /// The port.
        port: u16,
        /// The host.
        target: String,
    },
    /// Text.
    Txt(String),
    /// The zone that a name would be in.
    Soa {
        /// The zone.
        zone: String,
    },
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverRecord {
    /// Whose it is.
    pub name: String,
    /// How long it may be kept, in seconds.
    pub seconds: u32,
    /// What it says.
    pub content: RecordContent,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverReply {
    /// How it went.
    pub code: ReplyCode,
    /// What was asked for.
    pub answers: Vec<ResolverRecord>,
    /// Whose word it is that there is nothing.
    pub authority: Vec<ResolverRecord>,
    /// What will be asked for next.
    pub additional: Vec<ResolverRecord>,
}

/// Reads bytes from the front.
struct QuestionReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> QuestionReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A name that is written out.
    fn name(&mut self) -> Option<String> {
        let mut labels: Vec<String> = Vec::new();
        let begin = self.at;
        loop {
            let length = usize::from(self.byte()?);
            if length == 0 {
                return Some(labels.join("."));
            }
            // Two bits are for names that stand elsewhere, and nothing stands before a question.
            if length > 63 || self.at - begin > LONGEST_NAME {
                return None;
            }
            labels.push(self.take(length)?.iter().map(|byte| letter(*byte)).collect());
        }
    }

    /// Passes over a name, which may go on elsewhere.
    fn skip_name(&mut self) -> Option<()> {
        for _ in 0..MOST_LABELS {
            match self.byte()? {
                0 => return Some(()),
                length if length >= 0xC0 => return self.byte().map(drop),
                length => drop(self.take(usize::from(length))?),
            }
        }
        None
    }

    /// Passes over a record; gives back its sort, its class and what it says.
    fn record(&mut self) -> Option<(RecordKind, u16, &'a [u8])> {
        self.skip_name()?;
        let (kind, class) = (self.number()?, self.number()?);
        self.take(4)?;
        let length = usize::from(self.number()?);
        Some((kind, class, self.take(length)?))
    }
}

/// A byte of a label as a letter of a name; a dot within a label is none that parts labels.
fn letter(byte: u8) -> char {
    if byte == b'.' { char::REPLACEMENT_CHARACTER } else { char::from(byte.to_ascii_lowercase()) }
}

/// Reads a question.
pub fn read_query(bytes: &[u8]) -> Result<ResolverQuery, NotAsked> {
    let mut reader = QuestionReader { bytes, at: 0 };
    let head = (|| Some((reader.number()?, reader.byte()?, reader.byte()?)))();
    let Some((id, flags, _)) = head.filter(|(_, flags, _)| flags & 0x80 == 0) else { return Err(NotAsked::Noise) };
    if flags & 0x78 != 0 {
        return Err(NotAsked::Refused { id, code: ReplyCode::NotImplemented });
    }
    let query = read_question(&mut reader, id, flags & 1 != 0);
    query.ok_or(NotAsked::Refused { id, code: ReplyCode::FormatError })
}

fn read_question(reader: &mut QuestionReader<'_>, id: u16, wants_recursion: bool) -> Option<ResolverQuery> {
    let counts = [reader.number()?, reader.number()?, reader.number()?, reader.number()?];
    if counts[0] != 1 {
        return None;
    }
    let begin = reader.at;
    let name = reader.name()?;
    let (kind, class) = (reader.number()?, reader.number()?);
    let question = reader.bytes[begin..reader.at].to_vec();
    if class != INTERNET {
        return None;
    }
    let (mut most_bytes, mut has_edns) = (USUAL_BYTES, false);
    for _ in 0..counts[1..].iter().map(|count| usize::from(*count)).sum::<usize>() {
        let (kind, class, _) = reader.record()?;
        if kind == kinds::OPT {
            has_edns = true;
            most_bytes = usize::from(class.clamp(512, 4096));
        }
    }
    Some(ResolverQuery { id, name, kind, question, most_bytes, has_edns, wants_recursion })
}

/// The answer to a question, in at most so many bytes: one that is longer says so, and is asked for again by TCP.
pub fn write_reply(query: &ResolverQuery, reply: &ResolverReply, most_bytes: usize) -> Vec<u8> {
    let whole = written(query, reply);
    if whole.len() <= most_bytes {
        return whole;
    }
    let nothing = ResolverReply { answers: Vec::new(), authority: Vec::new(), additional: Vec::new(), ..reply.clone() };
    let mut short = written(query, &nothing);
    short[2] |= 2;
    short
}

fn written(query: &ResolverQuery, reply: &ResolverReply) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    out.extend(query.id.to_be_bytes());
    let recursion = u8::from(query.wants_recursion);
    // An answer, by whom the names belong to; and others' names are found for the client as well.
    out.extend([0x84 | recursion, 0x80 | reply.code.number()]);
    let opt = usize::from(query.has_edns);
    for count in [1, reply.answers.len(), reply.authority.len(), reply.additional.len() + opt] {
        out.extend(u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
    }
    out.extend(&query.question);
    for record in reply.answers.iter().chain(&reply.authority).chain(&reply.additional) {
        write_record(&mut out, record, &query.name);
    }
    if query.has_edns {
        out.push(0);
        out.extend(kinds::OPT.to_be_bytes());
        out.extend(OWN_BYTES.to_be_bytes());
        out.extend([0; 6]);
    }
    out
}

/// The answer to what is refused, which need not have a question.
pub fn write_refusal(id: u16, code: ReplyCode) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend([0x80, code.number()]);
    out.extend([0; 8]);
    out
}

/// A question of our own, for another server.
pub fn write_question(id: u16, name: &str, kind: RecordKind) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    write_name(&mut out, name);
    out.extend(kind.to_be_bytes());
    out.extend(INTERNET.to_be_bytes());
    out
}

/// The addresses in another server's answer to the question of this number.
pub fn read_addresses(bytes: &[u8], id: u16) -> Vec<RecordContent> {
    let mut found = Vec::new();
    let mut reader = QuestionReader { bytes, at: 0 };
    let _ = read_answers(&mut reader, id, &mut found);
    found
}

fn read_answers(reader: &mut QuestionReader<'_>, id: u16, found: &mut Vec<RecordContent>) -> Option<()> {
    if reader.number()? != id || reader.number()? & 0x8000 == 0 {
        return None;
    }
    let counts = [reader.number()?, reader.number()?];
    reader.take(4)?;
    for _ in 0..counts[0] {
        reader.skip_name()?;
        reader.take(4)?;
    }
    for _ in 0..counts[1] {
        let (kind, _, content) = reader.record()?;
        match (kind, <[u8; 4]>::try_from(content), <[u8; 16]>::try_from(content)) {
            (kinds::A, Ok(address), _) => found.push(RecordContent::A(address.into())),
            (kinds::AAAA, _, Ok(address)) => found.push(RecordContent::Aaaa(address.into())),
            _ => {}
        }
    }
    Some(())
}

fn write_record(out: &mut Vec<u8>, record: &ResolverRecord, asked: &str) {
    if record.name == asked {
        // The question's name, which stands after the head of twelve bytes.
        out.extend([0xC0, 12]);
    } else {
        write_name(out, &record.name);
    }
    let (kind, content) = written_content(&record.content);
    out.extend(kind.to_be_bytes());
    out.extend(INTERNET.to_be_bytes());
    out.extend(record.seconds.to_be_bytes());
    out.extend(u16::try_from(content.len()).unwrap_or(0).to_be_bytes());
    out.extend(content);
}

fn written_content(content: &RecordContent) -> (RecordKind, Vec<u8>) {
    let mut out = Vec::new();
    let kind = match content {
        RecordContent::A(address) => {
            out.extend(address.octets());
            kinds::A
        }
        RecordContent::Aaaa(address) => {
            out.extend(address.octets());
            kinds::AAAA
        }
        RecordContent::Cname(name) => {
            write_name(&mut out, name);
            kinds::CNAME
        }
        RecordContent::Ptr(name) => {
            write_name(&mut out, name);
            kinds::PTR
        }
        RecordContent::Srv { weight, port, target } => {
            for number in [0, *weight, *port] {
                out.extend(number.to_be_bytes());
            }
            write_name(&mut out, target);
            kinds::SRV
        }
        RecordContent::Txt(text) => {
            let text = &text.as_bytes()[..text.len().min(255)];
            out.push(u8::try_from(text.len()).unwrap_or(0));
            out.extend(text);
            kinds::TXT
        }
        RecordContent::Soa { zone } => {
            write_name(&mut out, &format!("ns.dns.{zone}"));
            write_name(&mut out, &format!("hostmaster.{zone}"));
            // Nobody transfers the zone; the last number is how long it is believed that there is nothing.
            for number in [1_u32, 7200, 1800, 86_400, 5] {
                out.extend(number.to_be_bytes());
            }
            kinds::SOA
        }
    };
    (kind, out)
}

/// A name as labels. One that no name can be ends where it stops being one.
fn write_name(out: &mut Vec<u8>, name: &str) {
    let mut length = 1;
    for label in name.split('.').filter(|label| !label.is_empty()) {
        length += label.len() + 1;
        let Some(count) = u8::try_from(label.len()).ok().filter(|count| *count < 64 && length <= LONGEST_NAME) else {
            break;
        };
        out.push(count);
        out.extend(label.as_bytes());
    }
    out.push(0);
}

#[cfg(test)]
mod tests;
