//! The four groups of zone settings that a `CloudflareDomain` may have. A group that is there is wanted as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocks::SecretReference;

fn yes() -> bool {
    true
}

/// How traffic between Cloudflare and the origin is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SslMode {
    /// Not at all.
    #[serde(rename = "off")]
    Off,
    /// Only between visitors and Cloudflare.
    #[serde(rename = "flexible")]
    Flexible,
    /// With any certificate.
    #[default]
    #[serde(rename = "full")]
    Full,
    /// With a valid certificate.
    #[serde(rename = "strict")]
    Strict,
    /// As `strict`.
    #[serde(rename = "full_strict")]
    FullStrict,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// 1.0
    #[serde(rename = "1.0")]
    V1_0,
    /// 1.1
    #[serde(rename = "1.1")]
    V1_1,
    /// 1.2
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    /// 1.3
    #[serde(rename = "1.3")]
    V1_3,
}

/// On or off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Switch {
    /// On.
    #[default]
    #[serde(rename = "on")]
    On,
    /// Off.
    #[serde(rename = "off")]
    Off,
}

/// Encryption between visitors, Cloudflare and the origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SslSettings {
    /// How traffic to the origin is encrypted.
    #[serde(default)]
    pub mode: SslMode,
    /// Oldest TLS version that visitors may use.
    #[serde(rename = "minTLSVersion", default)]
    pub min_tls_version: TlsVersion,
    /// Whether TLS 1.3 is offered.
    #[serde(default)]
    pub tls13: Switch,
    /// Whether plain HTTP is redirected.
    #[serde(default = "yes")]
    pub always_use_https: bool,
    /// Whether links to plain HTTP are rewritten.
    #[serde(default = "yes")]
    pub automatic_https_rewrites: bool,
    /// Whether plain HTTP is encrypted where browsers can.
    #[serde(default = "yes")]
    pub opportunistic_encryption: bool,
    /// Whether Cloudflare proves itself to the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authenticated_origin_pull: Option<AuthenticatedOriginPull>,
}

/// How Cloudflare proves itself to the origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticatedOriginPull {
    /// Whether it does.
    #[serde(default)]
    pub enabled: bool,
    /// Secret with the certificate, as `tls.crt` and `tls.key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_secret_ref: Option<SecretReference>,
}

/// What counts as the same for the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheLevel {
    /// Nothing is kept.
    #[serde(rename = "bypass")]
    Bypass,
    /// Only addresses without a query.
    #[serde(rename = "basic")]
    Basic,
    /// Queries are ignored.
    #[serde(rename = "simplified")]
    Simplified,
    /// Each query apart.
    #[default]
    #[serde(rename = "aggressive")]
    Aggressive,
}

/// Which data centres ask the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheTopology {
    /// The nearest one.
    #[default]
    #[serde(rename = "smart")]
    Smart,
    /// Any of them.
    #[serde(rename = "generic")]
    Generic,
}

/// What Cloudflare keeps of the origin's answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct CacheSettings {
    /// Seconds that browsers may keep answers; 0 leaves it to the origin.
    #[serde(rename = "browserTTL", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 31_536_000))]
    pub browser_ttl: Option<u32>,
    /// Whether the cache is passed by for three hours.
    #[serde(default)]
    pub development_mode: bool,
    /// What counts as the same.
    #[serde(default)]
    pub cache_level: CacheLevel,
    /// Whether answers are kept apart by device.
    #[serde(default)]
    pub cache_by_device_type: bool,
    /// Whether kept pages are shown while the origin is down.
    #[serde(default = "yes")]
    pub always_online: bool,
    /// Whether the order of a query does not matter.
    #[serde(default)]
    pub sort_query_string_for_cache: bool,
    /// Whether data centres ask each other before the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiered_cache: Option<TieredCache>,
    /// Whether answers are stored for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_reserve: Option<CacheReserve>,
}

/// Whether and how data centres ask each other before the origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TieredCache {
    /// Whether they do.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Which ones ask the origin.
    #[serde(default)]
    pub topology: CacheTopology,
}

/// Storage of answers for long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheReserve {
    /// Whether it is used.
    #[serde(default)]
    pub enabled: bool,
}

/// How easily visitors are challenged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SecurityLevel {
    /// Never.
    #[serde(rename = "off")]
    Off,
    /// Only the worst.
    #[serde(rename = "essentially_off")]
    EssentiallyOff,
    /// Those that threaten most.
    #[serde(rename = "low")]
    Low,
    /// Those that threaten.
    #[default]
    #[serde(rename = "medium")]
    Medium,
    /// Those that ever threatened.
    #[serde(rename = "high")]
    High,
    /// Everybody.
    #[serde(rename = "under_attack")]
    UnderAttack,
}

fn half_an_hour() -> u32 {
    1_800
}

/// Protection of the origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct SecuritySettings {
    /// How easily visitors are challenged.
    #[serde(default)]
    pub level: SecurityLevel,
    /// Whether odd browsers are refused.
    #[serde(default = "yes")]
    pub browser_check: bool,
    /// Whether e-mail addresses are hidden from robots.
    #[serde(default = "yes")]
    pub email_obfuscation: bool,
    /// Whether marked content is hidden from robots.
    #[serde(default = "yes")]
    pub server_side_exclude: bool,
    /// Whether pictures cannot be linked from elsewhere.
    #[serde(default)]
    pub hotlink_protection: bool,
    /// Seconds for which a passed challenge counts.
    #[serde(default = "half_an_hour")]
    #[schemars(range(min = 300, max = 31_536_000))]
    pub challenge_passage: u32,
    /// The older web application firewall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waf: Option<Waf>,
}

/// The older web application firewall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waf {
    /// Whether it is on.
    #[serde(default)]
    pub enabled: bool,
}

/// How pictures are made smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Polish {
    /// Not at all.
    #[default]
    #[serde(rename = "off")]
    Off,
    /// Without losing anything.
    #[serde(rename = "lossless")]
    Lossless,
    /// With some loss.
    #[serde(rename = "lossy")]
    Lossy,
}

/// What makes pages faster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct PerformanceSettings {
    /// Whether Brotli is used.
    #[serde(default = "yes")]
    pub brotli: bool,
    /// Whether HTTP/2 is offered.
    #[serde(default = "yes")]
    pub http2: bool,
    /// Whether HTTP/3 is offered.
    #[serde(default = "yes")]
    pub http3: bool,
    /// Whether TLS is resumed without a round trip.
    #[serde(rename = "zeroRTT", default = "yes")]
    pub zero_rtt: bool,
    /// What is written shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minify: Option<Minify>,
    /// How pictures are made smaller.
    #[serde(default)]
    pub polish: Polish,
    /// Whether pictures are turned into WebP.
    #[serde(default)]
    pub webp: bool,
    /// Whether pictures are fitted to slow mobile devices.
    #[serde(default)]
    pub mirage: bool,
    /// Whether early hints are sent.
    #[serde(default = "yes")]
    pub early_hints: bool,
    /// Whether scripts are loaded last.
    #[serde(default)]
    pub rocket_loader: bool,
    /// Whether likely next pages are fetched.
    #[serde(default = "yes")]
    pub prefetch_preload: bool,
    /// Whether the origin learns the visitor's country.
    #[serde(default = "yes")]
    pub ip_geolocation: bool,
    /// Whether web sockets pass.
    #[serde(default = "yes")]
    pub websockets: bool,
}

/// What is written shorter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Minify {
    /// HTML.
    #[serde(default)]
    pub html: bool,
    /// CSS.
    #[serde(default)]
    pub css: bool,
    /// JavaScript.
    #[serde(default)]
    pub javascript: bool,
}
