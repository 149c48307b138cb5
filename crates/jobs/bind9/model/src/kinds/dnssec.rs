//! How zones are signed, and whether answers of others are checked.

use portolan_core::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kinds::patterns;

/// DNSSEC: checking what others signed, and signing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct DNSSECConfig {
    /// Whether signatures of others are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<bool>,
    /// How own zones are signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing: Option<DNSSECSigningConfig>,
}

/// How own zones are signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct DNSSECSigningConfig {
    /// Whether they are signed; not where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Name of the policy; `default` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = patterns::POLICY_PATTERN))]
    pub policy: Option<String>,
    /// What keys sign with, as `ECDSAP256SHA256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = patterns::WORD_PATTERN))]
    pub algorithm: Option<String>,
    /// How long the key-signing key lives, as `365d` or `P1Y`; for good where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = patterns::WORD_PATTERN))]
    pub ksk_lifetime: Option<String>,
    /// How long the zone-signing key lives, as `90d`; for good where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = patterns::WORD_PATTERN))]
    pub zsk_lifetime: Option<String>,
    /// Whether names that do not exist are denied by NSEC3 instead of NSEC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nsec3: Option<bool>,
    /// Salt of NSEC3 in hexadecimal digits, of which only the length counts: `named` makes salts by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 510))]
    pub nsec3_salt: Option<String>,
    /// How often names are hashed again for NSEC3; 0 where absent, as RFC 9276 wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nsec3_iterations: Option<u32>,
    /// Where keys come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys_from: Option<DNSSECKeySource>,
    /// Whether keys are made where there are none; they are where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_generate: Option<bool>,
    /// Whether keys are copied into a Secret, from which a server that lost its disk has them again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_to_secret: Option<bool>,
}

/// Where signing keys come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct DNSSECKeySource {
    /// A Secret with key files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<DNSSECSecretRef>,
    /// A disk that keeps them, as the spec of a `PersistentVolumeClaim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::AnyObject>")]
    pub persistent_volume: Option<Value>,
}

/// A Secret with key files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct DNSSECSecretRef {
    /// Its name, which begins with `bindy-`.
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::NAME_PATTERN))]
    pub name: String,
    /// Its namespace, which has to be the instance's own: pods mount no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}
