//! Values of records in one spelling: whoever wrote them, equal ones become equal texts.

use std::net::IpAddr;

use portolan_core::Hostname;

use crate::record_type::RecordType;

/// Bytes in one character string of a TXT record (RFC 1035 §3.3.14).
const LONGEST_STRING: usize = 255;

/// The value of a type without parts, in one spelling.
pub fn spelled(kind: RecordType, text: &str) -> String {
    match kind {
        RecordType::A | RecordType::Aaaa => ip(text),
        RecordType::Cname | RecordType::Mx | RecordType::Ns => host(text),
        RecordType::Txt => txt_content(&txt(text)),
        _ => text.to_owned(),
    }
}

/// The same where it is a value of that type at all; else what such a value is.
pub fn checked(kind: RecordType, text: &str) -> Result<String, &'static str> {
    let is_name = || text.trim() == "." && kind == RecordType::Mx || Hostname::parse(text.trim()).is_ok();
    match (kind, text.trim().parse::<IpAddr>()) {
        (RecordType::A, Ok(IpAddr::V4(_))) | (RecordType::Aaaa, Ok(IpAddr::V6(_))) => Ok(spelled(kind, text)),
        (RecordType::A, _) => Err("an IPv4 address, as 203.0.113.7"),
        (RecordType::Aaaa, _) => Err("an IPv6 address, as 2001:db8::7"),
        (RecordType::Cname | RecordType::Ns | RecordType::Mx, Ok(_)) => Err("a host name, not an address"),
        (RecordType::Cname | RecordType::Ns | RecordType::Mx, Err(_)) if !is_name() => {
            Err("a host name, as target.example.com")
        }
        _ => Ok(spelled(kind, text)),
    }
}

/// A host name in lower-case punycode without trailing dot; `.` alone stays.
pub fn host(text: &str) -> String {
    let text = text.trim();
    match Hostname::parse(text) {
        Ok(name) => name.as_str().to_owned(),
        Err(_) if text == "." => text.to_owned(),
        Err(_) => text.trim_end_matches('.').to_ascii_lowercase(),
    }
}

/// An IP address as RFC 5952 writes it; anything else as it is.
pub fn ip(text: &str) -> String {
    portolan_core::waypoint!();
    text.trim().parse::<IpAddr>().map_or_else(|_| text.trim().to_owned(), |ip| ip.to_string())
}

/// Hexadecimal digits in lower case without blanks.
pub fn hex(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect()
}

/// Base64 without blanks and line ends.
pub fn base64(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The text of a TXT record: what stands in its character strings, joined. Text without quotes is its own value.
pub fn txt(content: &str) -> String {
    let content = content.trim();
    quoted(content).map_or_else(|| content.to_owned(), |strings| strings.concat())
}

/// The text as it is written. Short and harmless text goes as the user wrote it, other text in quoted strings.
pub fn txt_content(text: &str) -> String {
    let harmless = |c: char| !matches!(c, '"' | '\\') && !c.is_control();
    if text.len() <= LONGEST_STRING && text.chars().all(harmless) && text.trim() == text && !text.is_empty() {
        return text.to_owned();
    }
    let strings: Vec<String> = chunks(text).into_iter().map(quote).collect();
    strings.join(" ")
}

/// Pieces of at most 255 bytes, cut between characters.
fn chunks(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > LONGEST_STRING {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(LONGEST_STRING));
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    pieces
}

/// A quoted string with its escapes.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The strings of a text that consists of quoted strings alone.
fn quoted(text: &str) -> Option<Vec<String>> {
    let mut strings = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (string, more) = unquote(rest.strip_prefix('"')?)?;
        strings.push(string);
        let trimmed = more.trim_start();
        if !trimmed.is_empty() && trimmed.len() == more.len() && !trimmed.starts_with('"') {
            return None;
        }
        rest = trimmed;
    }
    (!strings.is_empty()).then_some(strings)
}

/// The string up to its closing quote, and what follows: `\"`, `\\` and `\DDD` are undone.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let raw = text.as_bytes();
    let mut at = 0;
    loop {
        let (byte, width) = match *raw.get(at)? {
            b'"' => return Some((String::from_utf8_lossy(&bytes).into_owned(), &text[at + 1..])),
            b'\\' => match decimal(raw.get(at + 1..at + 4)) {
                Some(byte) => (byte, 4),
                None => (*raw.get(at + 1)?, 2),
            },
            byte => (byte, 1),
        };
        bytes.push(byte);
        at += width;
    }
}

fn decimal(digits: Option<&[u8]>) -> Option<u8> {
    let digits = std::str::from_utf8(digits?).ok()?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The words of a text; those in quotes are one each, without the quotes.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, more) = rest.strip_prefix('"').and_then(unquote).unwrap_or_else(|| {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        });
        words.push(word);
        rest = more.trim_start();
    }
    words
}

/// Parameters of HTTPS and SVCB records in one spelling: a blank between them, and every value in quotes.
pub fn service_parameters(text: &str) -> String {
    let one = |parameter: String| match parameter.split_once('=') {
        Some((key, value)) => format!("{}=\"{}\"", key.to_ascii_lowercase(), value.trim_matches('"')),
        None => parameter.to_ascii_lowercase(),
    };
    outside_quotes(text).into_iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Splits at blanks that do not stand in quotes.
fn outside_quotes(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut inside = false;
    for c in text.chars() {
        inside ^= c == '"';
        match parts.last_mut() {
            Some(part) if inside || !c.is_whitespace() => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_and_escapes_do_not_change_a_text() {
        for (content, text) in [
            ("v=spf1 -all", "v=spf1 -all"),
            ("\"v=spf1 -all\"", "v=spf1 -all"),
            ("\"one\" \"two\"", "onetwo"),
            ("\"one\"\"two\"", "onetwo"),
            (r#""say \"hi\" \\ \065""#, "say \"hi\" \\ A"),
            ("say \"hi\"", "say \"hi\""),
            ("\"not closed", "\"not closed"),
            ("\"a\" b", "\"a\" b"),
            ("\"\"", ""),
        ] {
            assert_eq!(txt(content), text, "{content}");
        }
    }

    #[test]
    fn long_texts_are_sent_in_strings_of_at_most_255_bytes() {
        let long = "é".repeat(200);

        let content = txt_content(&long);

        assert_eq!(txt(&content), long);
        assert!(content.split("\" \"").all(|string| string.trim_matches('"').len() <= 255));
    }

    #[test]
    fn short_texts_are_sent_as_the_user_wrote_them() {
        assert_eq!(txt_content("google-site-verification=abc"), "google-site-verification=abc");
        assert_eq!(txt_content("say \"hi\""), r#""say \"hi\"""#);
    }

    #[test]
    fn a_value_is_one_of_its_type_or_it_is_said_what_such_a_value_is() {
        for (kind, text, value) in [
            (RecordType::A, " 192.0.2.1", Ok("192.0.2.1")),
            (RecordType::A, "2001:db8::1", Err("an IPv4 address, as 203.0.113.7")),
            (RecordType::Aaaa, "2001:DB8:0::1", Ok("2001:db8::1")),
            (RecordType::Aaaa, "www.example.com", Err("an IPv6 address, as 2001:db8::7")),
            (RecordType::Cname, "WWW.example.com.", Ok("www.example.com")),
            (RecordType::Ns, "192.0.2.1", Err("a host name, not an address")),
            (RecordType::Cname, ".", Err("a host name, as target.example.com")),
            (RecordType::Mx, ".", Ok(".")),
            (RecordType::Txt, "\"v=spf1\" \" -all\"", Ok("v=spf1 -all")),
        ] {
            assert_eq!(checked(kind, text), value.map(str::to_owned), "{kind} {text}");
        }
    }

    #[test]
    fn names_and_addresses_have_one_spelling() {
        assert_eq!(host("Mail.Example.COM."), "mail.example.com");
        assert_eq!(host("bücher.example"), "xn--bcher-kva.example");
        assert_eq!(host("."), ".");
        assert_eq!(ip("2001:DB8:0:0::1"), "2001:db8::1");
        assert_eq!(hex("AB cd\n12"), "abcd12");
    }

    #[test]
    fn service_parameters_are_quoted_once() {
        assert_eq!(service_parameters("alpn=h3,h2  ipv4hint=\"192.0.2.1\" no-default-alpn"), {
            "alpn=\"h3,h2\" ipv4hint=\"192.0.2.1\" no-default-alpn"
        });
    }

    #[test]
    fn quoted_words_are_one_word() {
        assert_eq!(words(r#"0 issue "ca.example; policy=ev""#), ["0", "issue", "ca.example; policy=ev"]);
    }

    proptest! {
        #[test]
        fn any_text_comes_back_as_it_was_sent(text in "[ -~é\"\\\\]{0,600}") {
            prop_assert_eq!(txt(&txt_content(&text)), text);
        }

        #[test]
        fn content_has_one_spelling(content in ".{0,80}") {
            let once = txt_content(&txt(&content));
            prop_assert_eq!(txt_content(&txt(&once)), once);
        }
    }
}
