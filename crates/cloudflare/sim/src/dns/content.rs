//! Contents of records that have one: checked, and written in the one way the service writes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::name::is_domain;
use crate::reply::Refusal;

pub(super) fn ipv4(given: &str) -> Result<String, Refusal> {
    let address: Result<Ipv4Addr, _> = given.parse();
    address
        .map(|address| address.to_string())
        .map_err(|_| Refusal::bad(9005, "Content for A record must be a valid IPv4 address."))
}

pub(super) fn ipv6(given: &str) -> Result<String, Refusal> {
    let address: Result<Ipv6Addr, _> = given.parse();
    address
        .map(|address| address.to_string())
        .map_err(|_| Refusal::bad(9006, "Content for AAAA record must be a valid IPv6 address."))
}

pub(super) fn cname(given: &str) -> Result<String, Refusal> {
    host(given).ok_or_else(|| Refusal::bad(9007, "Content for CNAME record is invalid."))
}

pub(super) fn mx(given: &str) -> Result<String, Refusal> {
    match given {
        "." => Ok(given.to_owned()),
        _ => host(given).ok_or_else(|| Refusal::bad(9009, "Content for MX record must be a valid hostname.")),
    }
}

pub(super) fn ns(given: &str) -> Result<String, Refusal> {
    host(given).ok_or_else(|| Refusal::bad(9036, "Content for NS record must be a valid hostname."))
}

pub(super) fn ptr(given: &str) -> Result<String, Refusal> {
    host(given).ok_or_else(|| Refusal::bad(9037, "Content for PTR record must be a valid hostname."))
}

pub(super) fn openpgpkey(given: &str) -> Result<String, Refusal> {
    match STANDARD.decode(given) {
        Ok(key) if !key.is_empty() => Ok(given.to_owned()),
        _ => Err(Refusal::bad(9038, "Content for OPENPGPKEY record must be a Base64 encoded key.")),
    }
}

/// A host name in lower case without its last dot, if it is one and no address.
pub(super) fn host(given: &str) -> Option<String> {
    let name = given.strip_suffix('.').unwrap_or(given).to_ascii_lowercase();
    (is_domain(&name) && name.parse::<IpAddr>().is_err()).then_some(name)
}

/// Quoted character strings of at most 255 bytes each.
pub(super) fn txt(given: &str) -> Result<String, Refusal> {
    let wrong = |message: &str| Refusal::bad(9029, format!("Content for TXT record is invalid: {message}"));
    if given.is_empty() {
        return Err(wrong("it must not be empty."));
    }
    let strings = if given.starts_with('"') {
        character_strings(given).ok_or_else(|| wrong("quotes do not match."))?
    } else {
        vec![given.as_bytes().to_vec()]
    };
    if strings.iter().map(Vec::len).sum::<usize>() > 2048 {
        return Err(wrong("it must not be longer than 2048 characters."));
    }
    let pieces = strings
        .iter()
        .flat_map(|string| if string.is_empty() { vec![&string[..]] } else { string.chunks(255).collect() });
    Ok(pieces.map(quoted).collect::<Vec<_>>().join(" "))
}

/// `"a" "b\"c"` → `a`, `b"c`.
fn character_strings(given: &str) -> Option<Vec<Vec<u8>>> {
    let (mut strings, mut current) = (Vec::new(), None::<Vec<u8>>);
    let mut bytes = given.bytes();
    while let Some(byte) = bytes.next() {
        match (&mut current, byte) {
            (None, b'"') => current = Some(Vec::new()),
            (None, b' ' | b'\t') => {}
            (None, _) => return None,
            (Some(_), b'"') => strings.extend(current.take()),
            (Some(string), b'\\') => string.push(bytes.next()?),
            (Some(string), byte) => string.push(byte),
        }
    }
    current.is_none().then_some(strings)
}

fn quoted(string: &[u8]) -> String {
    let text = String::from_utf8_lossy(string).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// Whether a proxied record may point here: names may, and addresses that the Internet can reach.
pub(super) fn may_be_proxied(content: &str) -> bool {
    match content.parse() {
        Ok(IpAddr::V4(address)) => {
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_broadcast()
                || address.octets() == [1, 1, 1, 1]
                || address.octets() == [1, 0, 0, 1])
        }
        Ok(IpAddr::V6(address)) => {
            !(address.is_loopback() || address.is_unspecified() || address.is_multicast() || address.is_unique_local())
        }
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_written_in_one_way() {
        assert_eq!(ipv6("2001:DB8:0:0::1").unwrap(), "2001:db8::1");
        assert_eq!(cname("Target.Example.NET.").unwrap(), "target.example.net");
        assert!(ipv4("010.0.0.1").is_err() && ipv4("1.2.3").is_err() && ipv6("1.2.3.4").is_err());
        assert!(cname("192.0.2.1").is_err() && cname("https://x").is_err() && cname("").is_err());
    }

    #[test]
    fn texts_are_quoted_and_split() {
        assert_eq!(txt("v=spf1 -all").unwrap(), "\"v=spf1 -all\"");
        assert_eq!(txt("\"a\"  \"b\"").unwrap(), "\"a\" \"b\"");
        assert_eq!(txt("say \"hi\"").unwrap(), "\"say \\\"hi\\\"\"");
        assert_eq!(txt("\"say \\\"hi\\\"\"").unwrap(), "\"say \\\"hi\\\"\"");
        assert_eq!(txt(&"x".repeat(256)).unwrap(), format!("\"{}\" \"x\"", "x".repeat(255)));
        assert!(txt("").is_err() && txt("\"open").is_err() && txt(&"x".repeat(2049)).is_err());
    }

    #[test]
    fn only_reachable_targets_may_be_proxied() {
        for content in ["192.0.2.1", "203.0.113.9", "100::", "2001:db8::1", "t.cfargotunnel.com"] {
            assert!(may_be_proxied(content), "{content}");
        }
        for content in ["10.0.0.1", "127.0.0.1", "1.1.1.1", "::1", "fd00::1"] {
            assert!(!may_be_proxied(content), "{content}");
        }
    }
}
