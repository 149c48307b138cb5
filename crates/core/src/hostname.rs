//! Names parsed once: lower case, punycode, no trailing dot. Inside the program there are no unchecked names.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::text;

/// Octets in a name (RFC 1035 §2.3.4, in text without the trailing dot).
const LONGEST_NAME: usize = 253;
/// Octets in a label.
const LONGEST_LABEL: usize = 63;

/// A text that is no valid name, id or network; its message says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?} is not valid: {why}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    why: String,
}

impl InvalidName {
    /// `what` names the sort of text, as `hostname`; `why` says what is wrong or what to write.
    pub fn new(what: &'static str, text: &str, why: impl Into<String>) -> Self {
        Self { what, text: text::shorten(text, 280).into_owned(), why: why.into() }
    }
}

/// A domain name, or `*.` and a domain name. Labels with underscores are allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hostname(String);

impl Hostname {
    /// Reads a name in any case, in Unicode or punycode, with or without a trailing dot.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let (star, name) = text.strip_prefix("*.").map_or(("", text), |rest| ("*.", rest));
        let name = normalised("hostname", text, name)?;
        let name = format!("{star}{name}");
        if name.len() > LONGEST_NAME {
            return Err(too_long("hostname", text));
        }
        Ok(Self(name))
    }

    /// The name in its one spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the first label is `*`.
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with("*.")
    }

    /// Whether it is the zone's own name or a name below it.
    pub fn is_in(&self, zone: &ZoneName) -> bool {
        is_at_or_below(&self.0, &zone.0)
    }

    /// The labels from left to right, `*` included.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }
}

/// The name of a zone: a [`Hostname`] that is no wildcard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ZoneName(String);

impl ZoneName {
    /// Reads a name in any case, in Unicode or punycode, with or without a trailing dot.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        normalised("zone name", text, text).map(Self)
    }

    /// The name in its one spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the other zone or lies below it.
    pub fn is_in(&self, other: &ZoneName) -> bool {
        is_at_or_below(&self.0, &other.0)
    }

    /// The labels from left to right.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// The zone's own name as a hostname.
    pub fn apex(&self) -> Hostname {
        Hostname(self.0.clone())
    }
}

macro_rules! a_text {
    ($($name:ident)+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )+};
}

a_text! { Hostname ZoneName }

fn is_at_or_below(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The name in lower-case punycode; `text` is what the user wrote, for the message.
fn normalised(what: &'static str, text: &str, name: &str) -> Result<String, InvalidName> {
    let name = to_ascii(name).ok_or_else(|| InvalidName::new(what, text, "it is not a valid international name"))?;
    let name = name.strip_suffix('.').unwrap_or(&name);
    if name.is_empty() {
        return Err(InvalidName::new(what, text, "it is empty; write a full name, as www.example.com"));
    }
    if name.len() > LONGEST_NAME {
        return Err(too_long(what, text));
    }
    name.split('.').try_for_each(|label| check_label(label).map_err(|why| InvalidName::new(what, text, why)))?;
    Ok(name.to_owned())
}

/// Plain names are only lower-cased: the conversion refuses some that exist, as those with hyphens in unusual places.
fn to_ascii(name: &str) -> Option<String> {
    let plain = name.is_ascii() && !name.to_ascii_lowercase().contains("xn--");
    if plain { Some(name.to_ascii_lowercase()) } else { idna::domain_to_ascii(name).ok() }
}

fn check_label(label: &str) -> Result<(), Cow<'static, str>> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    if label.is_empty() {
        Err("there is nothing between two dots, or before the first".into())
    } else if label == "@" {
        Err("write the zone's name itself instead of @".into())
    } else if label.contains('*') {
        Err("* may only be the whole first label of a hostname, as in *.example.com".into())
    } else if label.len() > LONGEST_LABEL {
        Err(format!("the part {label} is longer than {LONGEST_LABEL} characters").into())
    } else if !label.bytes().all(allowed) {
        Err(format!("the part {label:?} holds something else than letters, digits, - and _").into())
    } else if label.starts_with('-') || label.ends_with('-') {
        Err(format!("the part {label} begins or ends with a hyphen").into())
    } else {
        Ok(())
    }
}

fn too_long(what: &'static str, text: &str) -> InvalidName {
    InvalidName::new(what, text, format!("it is longer than {LONGEST_NAME} characters"))
}

#[cfg(test)]
mod tests;
