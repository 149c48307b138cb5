//! `CloudflareZeroTrustTenant`: which account, tunnel and token routes are published with.

use kube::{CustomResource, ResourceExt};
use portolan_core::{Condition, ObjectKey, allow, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::origin;
use crate::origin_tls::OriginTls;
use crate::reference::SecretRef;
use crate::rules;

/// Key of the API token in a Secret, where nothing else is said.
pub const TOKEN_KEY: &str = "token";

/// Which account, tunnel and token routes are published with.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "cfzt.cloudflare.com", version = "v1alpha1", kind = "CloudflareZeroTrustTenant", namespaced)]
#[kube(plural = "cloudflarezerotrusttenants", singular = "cloudflarezerotrusttenant")]
#[kube(shortname = "cfzt", shortname = "cfzttenant", category = "cloudflare", status = "TenantStatus")]
#[kube(doc = "Which Cloudflare account, tunnel and token routes are published with.")]
#[kube(printcolumn = r#"{"name":"Account","type":"string","jsonPath":".spec.accountId"}"#)]
#[kube(printcolumn = r#"{"name":"Tunnel","type":"string","jsonPath":".spec.tunnelId"}"#)]
#[kube(printcolumn = r#"{"name":"HTTPRoutes","type":"integer","jsonPath":".status.summary.managedHTTPRoutes"}"#)]
#[kube(printcolumn = r#"{"name":"Last Sync","type":"date","jsonPath":".status.lastSyncTime"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct CloudflareZeroTrustTenantSpec {
    /// The Cloudflare account.
    #[schemars(length(max = 64), transform = schema::rules(rules::ID))]
    pub account_id: String,
    /// The tunnel that routes are published through, unless they name another.
    #[schemars(length(max = 64), transform = schema::rules(rules::UUID))]
    pub tunnel_id: String,
    /// The only zone that names may be in; used as it is where the token may not read zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), transform = schema::rules(rules::ID))]
    pub zone_id: Option<String>,
    /// The Secret with the API token, in the tenant's namespace.
    pub credential_ref: CredentialRef,
    /// How much is logged about this tenant's work; the operator's own level where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<TenantLogLevel>,
    /// What routes get that neither they nor their templates say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<TenantDefaults>,
    /// Namespaces whose routes may use the tenant, besides its own; `*` for all. Absent: all for a tenant in the operator's
    /// namespace, none for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 63), regex(pattern = allow::NAMESPACE_PATTERN)))]
    pub allowed_namespaces: Option<Vec<String>>,
    /// Names that may be published: `app.example.com` is that name alone, `*.example.com` every name below it. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 253), regex(pattern = allow::HOSTNAME_PATTERN)))]
    pub allowed_hostnames: Option<Vec<String>>,
    /// Tunnels that routes may name besides `tunnelId`. Absent: any for routes of the tenant's namespace, none for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 64), regex(pattern = rules::UUID_PATTERN)))]
    pub allowed_tunnels: Option<Vec<String>>,
    /// Origins that routes may lead to, as `http://*.shop.svc` or `https://10.0.0.7:8443`, besides those that the tenant and
    /// templates beside it name; `{{ namespace }}` stands for the route's namespace. Absent: see the security page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 2048), regex(pattern = origin::PATTERN)))]
    pub allowed_origins: Option<Vec<String>>,
    /// Whether routes may take over what exists under their name. Absent: those of the tenant's namespace may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_adoption: Option<bool>,
    /// Whether names without Access are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_access: Option<bool>,
}

/// A Secret in the tenant's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct CredentialRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253), regex(pattern = rules::NAME_PATTERN))]
    pub name: String,
    /// Key of the API token in it; `token` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub key: Option<String>,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TenantLogLevel {
    /// Every API call, the merged settings, timings.
    Debug,
    /// What was reconciled and what changed.
    Info,
    /// What may need attention.
    Warning,
    /// What failed.
    Error,
}

impl TenantLogLevel {
    /// As manifests and `LOG_LEVEL` write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// What routes get that neither they nor their templates say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TenantDefaults {
    /// How long a login lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), transform = schema::rules(rules::DURATION))]
    pub session_duration: Option<String>,
    /// Where requests go; the route's own backend where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), transform = schema::rules(rules::URL))]
    pub origin_service: Option<String>,
    /// The Host header that the origin sees; `{{ hostname }}` stands for the route's hostname.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub http_host_header: Option<String>,
    /// Whether requests by plain HTTP are sent to HTTPS at the edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_redirect: Option<bool>,
    /// How an `https://` origin is spoken to.
    #[serde(rename = "originTLS", skip_serializing_if = "Option::is_none")]
    pub origin_tls: Option<OriginTls>,
}

/// What became of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TenantStatus {
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When a route of the tenant was last brought in line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_sync_time: Option<String>,
    /// What is known of the tenant's health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// How much the tenant's routes have at Cloudflare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<TenantSummary>,
}

/// How much the tenant's routes have at Cloudflare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TenantSummary {
    /// Routes that are published.
    #[serde(rename = "managedHTTPRoutes")]
    #[schemars(transform = schema::no_default)]
    pub managed_http_routes: i64,
    /// Rules in tunnels.
    #[schemars(transform = schema::no_default)]
    pub hostname_routes: i64,
    /// Access applications.
    #[schemars(transform = schema::no_default)]
    pub access_applications: i64,
    /// Access policies.
    #[schemars(transform = schema::no_default)]
    pub access_policies: i64,
    /// Service tokens.
    #[schemars(transform = schema::no_default)]
    pub service_tokens: i64,
}

impl CloudflareZeroTrustTenant {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace().unwrap_or_default(), self.name_any())
    }

    /// Where the API token is.
    pub fn credential(&self) -> SecretRef {
        let reference = &self.spec.credential_ref;
        SecretRef {
            name: reference.name.clone(),
            namespace: self.namespace().unwrap_or_default(),
            key: Some(reference.key.clone().filter(|key| !key.is_empty()).unwrap_or_else(|| TOKEN_KEY.to_owned())),
        }
    }

    /// Whether routes of a namespace may use the tenant: of its own, and of those that it lists. Without a list a tenant in
    /// the operator's namespace serves all.
    pub fn allows(&self, namespace: &str, operator_namespace: &str) -> bool {
        let is_in = |place: &str| self.namespace().is_some_and(|own| own == place);
        is_in(namespace)
            || match &self.spec.allowed_namespaces {
                Some(all) => allow::names_namespace(all, namespace),
                None => is_in(operator_namespace),
            }
    }
}
