//! How an origin is spoken to by TLS: the same block in templates, tenants and tasks.

use portolan_core::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an `https://` origin is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct OriginTls {
    /// Whether the origin's certificate is taken unchecked.
    #[serde(rename = "noTLSVerify", skip_serializing_if = "Option::is_none")]
    pub no_tls_verify: Option<bool>,
    /// The name that the origin's certificate must carry; `{{ hostname }}` stands for the route's hostname.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub origin_server_name: Option<String>,
    /// Path of the authorities' certificates, inside cloudflared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ca_pool: Option<String>,
    /// Seconds that a TLS handshake may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 300))]
    pub tls_timeout: Option<i64>,
    /// Whether the origin is spoken to by HTTP/2, as gRPC needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_origin: Option<bool>,
    /// Whether the name asked for by TLS is the one of the Host header.
    #[serde(rename = "matchSNIToHost", skip_serializing_if = "Option::is_none")]
    pub match_sni_to_host: Option<bool>,
}
