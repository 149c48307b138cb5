//! The text of a record in a zone file → its data.

use portolan_dns::{Data, RecordType};

use super::{InvalidValue, LONGEST_DATA, from_hex, soa::Soa};
use crate::{
    message::{DomainName, RecordData, TypeCode, unescaped},
    values::serial::Serial,
};

impl RecordData {
    /// Reads the text of a value as zone files have it; names are absolute with or without their last dot.
    pub fn parse(kind: TypeCode, text: &str) -> Result<Self, InvalidValue> {
        let text = text.trim();
        let invalid = |why| InvalidValue::Value { kind, text: text.chars().take(80).collect(), why };
        if let Some(generic) = text.strip_prefix("\\#") {
            return unknown(kind, generic).ok_or_else(|| {
                invalid("after \\# come the count of bytes and the bytes in hexadecimal, and they must be such data")
            });
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match (kind, &words[..]) {
            (TypeCode::A, [address]) => address.parse().map(Self::a).map_err(|_| invalid("write an IPv4 address")),
            (TypeCode::AAAA, [address]) => address.parse().map(Self::aaaa).map_err(|_| invalid("write an IPv6 address")),
            (TypeCode::NS | TypeCode::CNAME | TypeCode::PTR | TypeCode::DNAME, [target]) => {
                Ok(Self::name(&DomainName::parse(target)?))
            }
            (TypeCode::MX, [priority, target]) => {
                let priority = priority.parse().map_err(|_| invalid("the priority is a number up to 65535"))?;
                Ok(Self::mx(priority, &DomainName::parse(target)?))
            }
            (TypeCode::SOA, [primary, mailbox, numbers @ ..]) => {
                let numbers = parsed(numbers).ok_or_else(|| invalid("two names and five numbers up to 4294967295"))?;
                let [serial, refresh, retry, expire, negative_ttl] = numbers;
                let (primary, mailbox) = (DomainName::parse(primary)?, DomainName::parse(mailbox)?);
                Ok(Soa { primary, mailbox, serial: Serial(serial), refresh, retry, expire, negative_ttl }.to_data())
            }
            (TypeCode::SRV, [priority, weight, port, target]) => {
                let numbers = parsed(&[*priority, *weight, *port]).ok_or_else(|| invalid("three numbers up to 65535 and a name"))?;
                let [priority, weight, port] = numbers;
                Ok(Self::srv(priority, weight, port, &DomainName::parse(target)?))
            }
            (TypeCode::TXT | TypeCode::SPF, _) => {
                let strings = strings(text).ok_or_else(|| invalid("a quote is not closed, or a backslash is not followed by what it escapes"))?;
                if let Some(_long) = strings.iter().find(|string| string.len() > super::LONGEST_STRING) {
                    return Err(invalid("a string has at most 255 bytes: write two, with a blank between them"));
                }
                Self::txt(strings.iter().map(Vec::as_slice)).ok_or_else(|| invalid("at least one string, and 65535 bytes at most"))
            }
            (TypeCode::CAA, [flags, tag, ..]) => {
                let flags = flags.parse().map_err(|_| invalid("the flags are a number up to 255"))?;
                let value = strings(after_words(text, 2)).filter(|strings| strings.len() == 1);
                let value = value.ok_or_else(|| invalid("after the tag comes one value, in quotes where it has blanks"))?;
                Self::caa(flags, tag, &value[0]).ok_or_else(|| invalid("the tag has letters and digits only"))
            }
            (TypeCode::URI, [priority, weight, ..]) => {
                let numbers = parsed(&[*priority, *weight]).ok_or_else(|| invalid("two numbers up to 65535 and a URI"))?;
                let [priority, weight] = numbers;
                let target = strings(after_words(text, 2)).and_then(|strings| String::from_utf8(strings.concat()).ok());
                target.map(|target| Self::uri(priority, weight, &target)).ok_or_else(|| invalid("the URI stands in quotes"))
            }
            _ => with_parts(kind, text).ok_or_else(|| invalid("it does not have the parts of its type, or the type is not read here: then write \\#, the count of bytes and the bytes in hexadecimal")),
        }
    }
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

fn parsed<const N: usize, T: std::str::FromStr>(words: &[&str]) -> Option<[T; N]> {
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
