//! What a task asks for, operation by operation.

use portolan_core::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::origin_tls::OriginTls;
use crate::rules;
use crate::template::AccessSettings;

/// What shall stand at Cloudflare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct Operations {
    /// The rule in the tunnel's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel_route: Option<TunnelOperation>,
    /// The CNAME record that leads to the tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cname_dns: Option<CnameOperation>,
    /// The Access application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_app: Option<AccessSettings>,
    /// The service token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_token: Option<TokenOperation>,
    /// The A record of a name without a tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_record: Option<DnsRecordOperation>,
    /// The redirect from HTTP to HTTPS; only where somebody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_redirect: Option<RedirectOperation>,
}

/// The rule in the tunnel's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TunnelOperation {
    /// Whether it shall stand; true where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Where requests go.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub origin_service: Option<String>,
    /// Whether requests by plain HTTP are to be sent to HTTPS; true where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_redirect: Option<bool>,
    /// The Host header that the origin sees, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub http_host_header: Option<String>,
    /// How an `https://` origin is spoken to.
    #[serde(rename = "originTLS", skip_serializing_if = "Option::is_none")]
    pub origin_tls: Option<OriginTls>,
    /// The same in the older form, beside the others; what stands in `originTLS` wins.
    #[serde(flatten)]
    pub flat_tls: OriginTls,
}

/// The CNAME record that leads to the tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CnameOperation {
    /// Whether it shall stand; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// The service token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TokenOperation {
    /// Whether it shall stand; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How long it lasts; 8760h where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub duration: Option<String>,
    /// Namespace of the Secret that the token is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub secret_namespace: Option<String>,
    /// The request for a new client secret that is to be fulfilled now; whatever the user wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub rotate: Option<String>,
    /// How long the old client secret goes on working then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rotate_overlap: Option<String>,
    /// Whether the Secret with the token's credentials is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_present: Option<bool>,
}

/// The A record of a name without a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct DnsRecordOperation {
    /// Whether it shall stand; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ip_address: Option<String>,
    /// The address in the older form; `ipAddress` wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ip: Option<String>,
    /// Whether requests pass through Cloudflare; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxied: Option<bool>,
    /// Seconds that answers may be kept; 120 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::rules(rules::TTL))]
    pub ttl: Option<i64>,
}

/// The redirect from HTTP to HTTPS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct RedirectOperation {
    /// Whether it shall stand; false where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}
