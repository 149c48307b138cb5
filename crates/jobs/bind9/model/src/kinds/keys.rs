//! How a user asks for the keys that servers are controlled and updated with.

use std::collections::BTreeMap;

use portolan_core::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::patterns;

/// What a key's signatures are made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are those of RFC 8945")]
pub enum RndcAlgorithm {
    HmacSha1,
    HmacSha224,
    #[default]
    HmacSha256,
    HmacSha384,
    HmacSha512,
}

impl RndcAlgorithm {
    /// Every algorithm that a manifest may name.
    pub const ALL: [Self; 5] = [Self::HmacSha1, Self::HmacSha224, Self::HmacSha256, Self::HmacSha384, Self::HmacSha512];

    /// As `named` writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HmacSha1 => "hmac-sha1",
            Self::HmacSha224 => "hmac-sha224",
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacSha384 => "hmac-sha384",
            Self::HmacSha512 => "hmac-sha512",
        }
    }

    /// Reads an algorithm as configurations and Secrets name it; with a dot at the end it is the name that signed messages carry.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('.').to_ascii_lowercase();
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }

    /// Whether it may sign: SHA-1 is too weak, though manifests may name it.
    pub fn is_strong(self) -> bool {
        self != Self::HmacSha1
    }
}

/// A Secret with a key that the user made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct RndcSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::NAME_PATTERN))]
    pub name: String,
    /// What the key signs with; what the Secret says where it says it, else `hmac-sha256`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<RndcAlgorithm>,
    /// Which entry of the Secret holds the key's name; `key-name` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub key_name_key: Option<String>,
    /// Which entry of the Secret holds the key itself; `secret` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: Option<String>,
}

/// The entry of a Secret that holds a key's name, where nothing else is said.
pub const KEY_NAME_ENTRY: &str = "key-name";
/// The entry of a Secret that holds a key itself, where nothing else is said.
pub const SECRET_ENTRY: &str = "secret";

impl RndcSecretRef {
    /// Which entry holds the key's name.
    pub fn name_entry(&self) -> &str {
        self.key_name_key.as_deref().unwrap_or(KEY_NAME_ENTRY)
    }

    /// Which entry holds the key itself.
    pub fn secret_entry(&self) -> &str {
        self.secret_key.as_deref().unwrap_or(SECRET_ENTRY)
    }
}

/// How the keys of a server are made and renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct RndcKeyConfig {
    /// Whether keys are renewed by themselves; not where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_rotate: Option<bool>,
    /// How old a key becomes: a number with `h`, `d` or `w`, from 1h to 8760h; 720h where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5), regex(pattern = patterns::ROTATION_PATTERN))]
    pub rotate_after: Option<String>,
    /// A Secret of the user's, whose key is used as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<RndcSecretRef>,
    /// How the Secret looks that is made for the keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretSpec>,
    /// What generated keys sign with; `hmac-sha256` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<RndcAlgorithm>,
}

/// How a Secret looks that is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct SecretSpec {
    /// Its name, labels and annotations.
    pub metadata: SecretMetadata,
    /// Its type; `Opaque` where absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub secret_type: Option<String>,
    /// A key that the user writes into the manifest, under `key-name` and `secret`: it is used as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_data: Option<BTreeMap<String, String>>,
    /// The same in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, String>>,
}

/// Name, labels and annotations of a Secret that is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct SecretMetadata {
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::NAME_PATTERN))]
    pub name: String,
    /// Labels that it gets besides ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations that it gets besides ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_read_as_configurations_and_messages_name_them() {
        assert_eq!(RndcAlgorithm::parse("hmac-sha512"), Some(RndcAlgorithm::HmacSha512));
        assert_eq!(RndcAlgorithm::parse("HMAC-SHA256."), Some(RndcAlgorithm::HmacSha256));
        assert_eq!((RndcAlgorithm::parse("hmac-md5"), RndcAlgorithm::parse("")), (None, None));
    }

    #[test]
    fn manifests_name_algorithms_as_named_does() {
        for one in RndcAlgorithm::ALL {
            assert_eq!(serde_json::to_value(one).unwrap(), one.as_str());
        }
    }
}
