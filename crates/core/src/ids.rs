//! Ids that Cloudflare gives: letters, digits, `-` and `_`, so that they are safe in a path.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::InvalidName;

/// Longer than any id the API gives.
const LONGEST: usize = 64;

macro_rules! ids {
    ($($(#[doc = $doc:literal])+ $name:ident $what:literal;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Reads an id of 1 to 64 letters, digits, `-` and `_`.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                check($what, text).map(Self)
            }

            /// The id as the API writes it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

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

        impl std::str::FromStr for $name {
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
            fn from(id: $name) -> Self {
                id.0
            }
        }
    )+};
}

ids! {
    /// The id of an account.
    AccountId "account id";
    /// The id of a zone.
    ZoneId "zone id";
    /// The id of something else at Cloudflare that is referred to.
    RemoteId "id";
}

fn check(what: &'static str, text: &str) -> Result<String, InvalidName> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if text.is_empty() {
        Err(InvalidName::new(what, text, "it is empty"))
    } else if text.len() > LONGEST {
        Err(InvalidName::new(what, text, format!("it is longer than {LONGEST} characters")))
    } else if !text.bytes().all(allowed) {
        Err(InvalidName::new(what, text, "only letters, digits, - and _ are allowed"))
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_every_form_the_api_uses_are_read() {
        for id in ["023e105f4ecef8ad9ca31a8372d0c353", "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415", "A_b-9"] {
            assert_eq!(ZoneId::parse(id).unwrap().as_str(), id);
        }
    }

    #[test]
    fn what_could_leave_its_place_in_a_path_is_refused() {
        for id in ["", "a/b", "..", "a?b", "a b", "ü", &"a".repeat(65)] {
            assert!(RemoteId::parse(id).is_err(), "{id}");
        }
    }

    #[test]
    fn the_refusal_says_which_id_and_why() {
        assert_eq!(
            AccountId::parse("a/b").unwrap_err().to_string(),
            "account id \"a/b\" is not valid: only letters, digits, - and _ are allowed"
        );
    }

    #[test]
    fn a_stored_id_is_checked_when_read() {
        assert!(serde_json::from_str::<ZoneId>(r#""a/b""#).is_err());
        assert_eq!(serde_json::to_string(&RemoteId::parse("r1").unwrap()).unwrap(), r#""r1""#);
    }
}
