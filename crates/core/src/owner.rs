//! Whose installation an object belongs to.

use std::{fmt, fmt::Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::InvalidName;

/// Eight hexadecimal digits that tell one installation's objects from another's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OwnerId(String);

impl OwnerId {
    /// Derives the id from any text, as the UID of a cluster's `kube-system` namespace or the value of `--owner-id`.
    pub fn derive(text: &str) -> Self {
        Self(digest_hex([text], 8))
    }

    /// Reads an id of eight hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let id = text.to_ascii_lowercase();
        if id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(Self(id))
        } else {
            Err(InvalidName::new("owner id", text, "write eight hexadecimal digits, as 1a2b3c4d"))
        }
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for OwnerId {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<OwnerId> for String {
    fn from(owner: OwnerId) -> Self {
        owner.0
    }
}

/// The first `digits` hexadecimal digits of the SHA-256 of the texts, each but the last followed by a line feed.
pub fn digest_hex<'a>(texts: impl IntoIterator<Item = &'a str>, digits: usize) -> String {
    let mut hasher = Sha256::new();
    for (index, text) in texts.into_iter().enumerate() {
        if index > 0 {
            hasher.update(b"\n");
        }
        hasher.update(text.as_bytes());
    }
    let mut hex = hasher.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        hex
    });
    hex.truncate(digits);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_beginning_of_the_sha256() {
        assert_eq!(OwnerId::derive("abc").as_str(), "ba7816bf");
    }

    #[test]
    fn texts_split_elsewhere_have_another_digest() {
        assert_ne!(digest_hex(["ab", "c"], 16), digest_hex(["a", "bc"], 16));
    }

    #[test]
    fn digits_are_read_in_either_case() {
        assert_eq!(OwnerId::parse("1A2B3C4D").unwrap().to_string(), "1a2b3c4d");
    }

    #[test]
    fn anything_but_eight_digits_is_refused() {
        for text in ["", "1a2b3c4", "1a2b3c4d5", "1a2b3c4g"] {
            assert!(OwnerId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_stored_id_is_checked_when_read() {
        assert!(serde_json::from_str::<OwnerId>(r#""nonsense""#).is_err());
        assert_eq!(serde_json::from_str::<OwnerId>(r#""1a2b3c4d""#).unwrap().as_str(), "1a2b3c4d");
    }
}
