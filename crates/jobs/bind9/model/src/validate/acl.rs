//! An entry of an address list as a user wrote it → the element that `named` reads, in one spelling; or what to write.
//!
//! Nothing but these forms gets into a configuration, so no entry can end its list and begin something else.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// Octets in an entry.
const LONGEST: usize = 256;
/// ACLs that `named` has by itself.
const BUILT_IN: [&str; 4] = ["any", "none", "localhost", "localnets"];

/// An element of an address list, or its opposite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AclEntry {
    /// Whether it means everybody else.
    pub negated: bool,
    /// Whom it means.
    pub matches: AclMatch,
}

/// Whom an element means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclMatch {
    /// One of the lists that `named` has by itself.
    BuiltIn(&'static str),
    /// An address.
    Address(IpAddr),
    /// A network and its length.
    Network(IpAddr, u8),
    /// Who signs with a key.
    Key(String),
    /// Another list.
    Acl(String),
}

impl AclEntry {
    /// Reads an entry.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("has {} octets, and at most {LONGEST} may be", text.len()));
        }
        let trimmed = text.trim();
        let (negated, rest) = trimmed.strip_prefix('!').map_or((false, trimmed), |rest| (true, rest.trim_start()));
        AclMatch::parse(rest).map(|matches| Self { negated, matches }).ok_or_else(|| unreadable(text))
    }

    /// The other list that it means, where it means one.
    pub fn acl(&self) -> Option<&str> {
        match &self.matches {
            AclMatch::Acl(name) => Some(name),
            AclMatch::BuiltIn(_) | AclMatch::Address(_) | AclMatch::Network(..) | AclMatch::Key(_) => None,
        }
    }

    /// Whether every list that it means is one of these.
    pub fn is_known(&self, acls: &BTreeSet<String>) -> bool {
        self.acl().is_none_or(|name| acls.contains(name))
    }
}

impl AclMatch {
    fn parse(text: &str) -> Option<Self> {
        if let Some(known) = BUILT_IN.into_iter().find(|one| one.eq_ignore_ascii_case(text)) {
            return Some(Self::BuiltIn(known));
        }
        if let Some(name) = text.strip_prefix("key ").or_else(|| text.strip_prefix("key\t")) {
            return unquoted(name.trim()).filter(|name| is_key_name(name)).map(|name| Self::Key(name.to_owned()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Address(address));
        }
        network(text).or_else(|| unquoted(text).filter(|name| is_acl_name(name)).map(|name| Self::Acl(name.to_owned())))
    }
}

impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("!")?;
        }
        match &self.matches {
            AclMatch::BuiltIn(name) => f.write_str(name),
            AclMatch::Address(address) => address.fmt(f),
            AclMatch::Network(address, length) => write!(f, "{address}/{length}"),
            AclMatch::Key(name) => write!(f, "key \"{name}\""),
            AclMatch::Acl(name) => write!(f, "\"{name}\""),
        }
    }
}

/// A network. `named` refuses bits behind the prefix, and reads `10/8` as `10.0.0.0/8`.
fn network(text: &str) -> Option<AclMatch> {
    let (address, length) = text.split_once('/')?;
    let length: u8 = length.parse().ok().filter(|_| !length.starts_with('+'))?;
    let address = address.parse().ok().or_else(|| partial(address))?;
    let (bits, widest) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let behind = bits.checked_shl(u32::from(length)).unwrap_or_default();
    (length <= widest && behind == 0).then_some(AclMatch::Network(address, length))
}

/// The first octets of an IPv4 network.
fn partial(text: &str) -> Option<IpAddr> {
    let mut octets = [0; 4];
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    for (octet, part) in octets.iter_mut().zip(parts) {
        *octet = part.parse().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()))?;
    }
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

fn unquoted(text: &str) -> Option<&str> {
    match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').filter(|name| !name.is_empty()),
        None => Some(text).filter(|name| !name.is_empty()),
    }
}

/// Names of keys are names in the DNS.
pub(crate) fn is_key_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let label = |label: &str| !label.is_empty() && label.len() <= 63;
    name.len() <= 253 && name.chars().all(is_part) && name.trim_end_matches('.').split('.').all(label)
}

/// Names of lists begin with a letter, so that they are no addresses, and are no words that mean something else.
pub(crate) fn is_acl_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let taken = BUILT_IN.contains(&name.to_ascii_lowercase().as_str()) || matches!(name, "key" | "geoip" | "port");
    begins && !taken && name.len() <= 64 && name.chars().all(is_part)
}

fn unreadable(text: &str) -> String {
    let shown = portolan_core::text::shorten(text, 80);
    format!(
        "{shown:?} is no entry of an address list; write an address, a network as 10.0.0.0/8 without bits behind the prefix, any, none, localhost, localnets, key NAME, or the name of one of spec.acls, with ! before it for the opposite"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        AclEntry::parse(text).map_or_else(|why| format!("refused: {why}"), |entry| entry.to_string())
    }

    #[test]
    fn entries_are_written_in_one_spelling() {
        for (text, written) in [
            ("any", "any"),
            ("None", "none"),
            ("!localnets", "!localnets"),
            ("! 10.0.0.7", "!10.0.0.7"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10/8", "10.0.0.0/8"),
            ("192.168/16", "192.168.0.0/16"),
            ("2001:DB8::/32", "2001:db8::/32"),
            ("::1", "::1"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("key transfer-key", "key \"transfer-key\""),
            ("key \"transfer.example.\"", "key \"transfer.example.\""),
            ("office", "\"office\""),
            ("\"office\"", "\"office\""),
        ] {
            assert_eq!(read(text), written);
        }
    }

    #[test]
    fn scenario_64_nothing_that_ends_its_list_is_an_entry() {
        for text in [
            "any; }; zone \"x\" {",
            "any;",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "2001:db8::/129",
            "256.0.0.1",
            "1.2.3",
            "",
            "!",
            "!!any",
            "key ",
            "key a b",
            "key \"a",
            "\"a\";\"b\"",
            "a\nb",
            "# any",
            "// any",
            "/* */ any",
            "geoip country DE",
            "10.0.0.0/+8",
            "{ any; }",
        ] {
            assert!(read(text).starts_with("refused: "), "{text:?} was read as {}", read(text));
        }
        assert!(read(&"x".repeat(300)).contains("at most 256"));
    }

    #[test]
    fn lists_that_nobody_defined_are_found() {
        let acls = BTreeSet::from(["office".to_owned()]);
        let known = |text: &str| AclEntry::parse(text).is_ok_and(|entry| entry.is_known(&acls));

        assert!(known("office") && known("any") && known("10.0.0.0/8") && !known("home"));
    }

    proptest! {
        #[test]
        fn whatever_is_read_reads_the_same_when_it_was_written(text in "[!\"a-zA-Z0-9 ./:;{}_-]{0,24}") {
            if let Ok(entry) = AclEntry::parse(&text) {
                let written = entry.to_string();
                prop_assert_eq!(AclEntry::parse(&written), Ok(entry));
                prop_assert!(!written.contains([';', '{', '}', '\n', '#']), "{}", written);
            }
        }
    }
}
