//! The text of a record in a zone file → its data.

use portolan_core::InvalidName;
use portolan_dns::{Data, RecordType};

use super::{InvalidValue, LONGEST_DATA, LONGEST_STRING, from_hex, soa::Soa};
use crate::{
    message::{DomainName, RecordData, TypeCode, unescaped},
    values::serial::Serial,
};

/// What is wrong with a text, before it is said which it was.
enum TextFault {
    Name(InvalidName),
    Why(&'static str),
}

impl From<InvalidName> for TextFault {
    fn from(name: InvalidName) -> Self {
        Self::Name(name)
    }
}

impl From<&'static str> for TextFault {
    fn from(why: &'static str) -> Self {
        Self::Why(why)
    }
}

/// What is said where a text does not have the parts of its type.
const OTHER_PARTS: &str = "it does not have the parts of its type, or the type is not read here: \
                           then write \\#, the count of bytes and the bytes in hexadecimal";

impl RecordData {
    /// Reads the text of a value as zone files have it; names are absolute with or without their last dot.
    pub fn parse(kind: TypeCode, text: &str) -> Result<Self, InvalidValue> {
        let text = text.trim();
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let read = match text.strip_prefix("\\#") {
            Some(generic) => generic_data(kind, generic),
            None => known_data(kind, text, &words),
        };
        read.map_err(|fault| match fault {
            TextFault::Name(name) => InvalidValue::Name(name),
            TextFault::Why(why) => InvalidValue::Value { kind, text: text.chars().take(80).collect(), why },
        })
    }
}

fn known_data(kind: TypeCode, text: &str, words: &[&str]) -> Result<RecordData, TextFault> {
    match (kind, words) {
        (TypeCode::A, [address]) => Ok(RecordData::a(address.parse().map_err(|_| "write an IPv4 address")?)),
        (TypeCode::AAAA, [address]) => Ok(RecordData::aaaa(address.parse().map_err(|_| "write an IPv6 address")?)),
        (TypeCode::NS | TypeCode::CNAME | TypeCode::PTR | TypeCode::DNAME, [target]) => {
            Ok(RecordData::name(&DomainName::parse(target)?))
        }
        (TypeCode::MX, [priority, target]) => {
            let priority = priority.parse().map_err(|_| "the priority is a number up to 65535")?;
            Ok(RecordData::mx(priority, &DomainName::parse(target)?))
        }
        (TypeCode::SRV, [priority, weight, port, target]) => {
            let numbers = numbers(&[*priority, *weight, *port]).ok_or("three numbers up to 65535 and a name")?;
            let [priority, weight, port] = numbers;
            Ok(RecordData::srv(priority, weight, port, &DomainName::parse(target)?))
        }
        (TypeCode::SOA, [primary, mailbox, rest @ ..]) => soa_data(primary, mailbox, rest),
        (TypeCode::TXT | TypeCode::SPF, _) => text_data(text),
        (TypeCode::CAA, [flags, tag, ..]) => authority_data(flags, tag, after_words(text, 2)),
        (TypeCode::URI, [priority, weight, ..]) => uri_data(priority, weight, after_words(text, 2)),
        _ => with_parts(kind, text).ok_or(TextFault::Why(OTHER_PARTS)),
    }
}

fn soa_data(primary: &str, mailbox: &str, rest: &[&str]) -> Result<RecordData, TextFault> {
    let numbers = numbers(rest).ok_or("two names and five numbers up to 4294967295")?;
    let [serial, refresh, retry, expire, negative_ttl] = numbers;
    let (primary, mailbox) = (DomainName::parse(primary)?, DomainName::parse(mailbox)?);
    Ok(Soa { primary, mailbox, serial: Serial(serial), refresh, retry, expire, negative_ttl }.to_data())
}

fn text_data(text: &str) -> Result<RecordData, TextFault> {
    let open = "a quote is not closed, or a backslash is not followed by what it escapes";
    let strings = strings(text).ok_or(open)?;
    if strings.iter().any(|string| string.len() > LONGEST_STRING) {
        return Err("a string has at most 255 bytes: write two, with a blank between them".into());
    }
    let data = RecordData::txt(strings.iter().map(Vec::as_slice));
    data.ok_or_else(|| "at least one string, and 65535 bytes at most".into())
}

fn authority_data(flags: &str, tag: &str, rest: &str) -> Result<RecordData, TextFault> {
    let flags = flags.parse().map_err(|_| "the flags are a number up to 255")?;
    let value = strings(rest).and_then(|strings| <[Vec<u8>; 1]>::try_from(strings).ok());
    let [value] = value.ok_or("after the tag comes one value, in quotes where it has blanks")?;
    RecordData::caa(flags, tag, &value).ok_or_else(|| "the tag has letters and digits only".into())
}

fn uri_data(priority: &str, weight: &str, rest: &str) -> Result<RecordData, TextFault> {
    let [priority, weight] = numbers(&[priority, weight]).ok_or("two numbers up to 65535 and a URI")?;
    let target = strings(rest).and_then(|strings| String::from_utf8(strings.concat()).ok());
    Ok(RecordData::uri(priority, weight, &target.ok_or("the URI stands in quotes")?))
}

fn generic_data(kind: TypeCode, text: &str) -> Result<RecordData, TextFault> {
    let data = unknown(kind, text);
    data.ok_or_else(|| {
        "after \\# come the count of bytes and the bytes in hexadecimal, and they must be such data".into()
    })
}

/// Those types whose parts the vocabulary of records knows.
fn with_parts(kind: TypeCode, text: &str) -> Option<RecordData> {
    let kind = kind.record_type();
    // The vocabulary reads some types without their priority, which stands beside the value at other servers.
    if matches!(kind, RecordType::Other | RecordType::Srv | RecordType::Uri | RecordType::Caa) {
        return None;
    }
    RecordData::of(&Data::read_text(kind, text, None)?)
}

fn unknown(kind: TypeCode, text: &str) -> Option<RecordData> {
    let (count, digits) = text.trim_start().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let digits: String = digits.split_ascii_whitespace().collect();
    let bytes = if digits.is_empty() { Vec::new() } else { from_hex(&digits)? };
    let is_whole = count.parse() == Ok(bytes.len()) && bytes.len() <= LONGEST_DATA;
    is_whole.then(|| RecordData::from_bytes(kind, &bytes).ok()).flatten()
}

fn numbers<const N: usize, T: std::str::FromStr>(words: &[&str]) -> Option<[T; N]> {
    let numbers: Vec<T> = words.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

fn after_words(text: &str, count: usize) -> &str {
    (0..count)
        .fold(text, |rest, _| rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest))
        .trim_start()
}

/// The character strings of a text: words, or whatever stands in quotes.
fn strings(text: &str) -> Option<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    let mut rest = text.trim_start().as_bytes();
    while let Some(first) = rest.first() {
        let is_quoted = *first == b'"';
        let mut string = Vec::new();
        rest = &rest[usize::from(is_quoted)..];
        loop {
            match rest.first() {
                Some(b'"') if is_quoted => {
                    rest = &rest[1..];
                    break;
                }
                Some(blank) if !is_quoted && blank.is_ascii_whitespace() => break,
                None if !is_quoted => break,
                _ => {
                    let (byte, more) = unescaped(rest)?;
                    string.push(byte);
                    rest = more;
                }
            }
        }
        strings.push(string);
        rest = rest.trim_ascii_start();
    }
    Some(strings)
}
