//! `CloudflareZeroTrustTemplate`: settings that several routes share.
//!
//! Every field is optional and none has a default in the schema: only so can a template that sets one thing leave the
//! others to the layers below it.

use kube::{CustomResource, ResourceExt};
use portolan_core::{Condition, ObjectKey, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::origin_tls::OriginTls;
use crate::rules;

/// Settings that several routes share.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "cfzt.cloudflare.com", version = "v1alpha1", kind = "CloudflareZeroTrustTemplate", namespaced)]
#[kube(plural = "cloudflarezerotrusttemplates", singular = "cloudflarezerotrusttemplate")]
#[kube(shortname = "cfzttemplate", shortname = "cfztt", category = "cloudflare", status = "TemplateStatus")]
#[kube(doc = "Settings that several routes share.")]
#[kube(printcolumn = r#"{"name":"Tenant","type":"string","jsonPath":".spec.tenantRef"}"#)]
#[kube(printcolumn = r#"{"name":"Access App","type":"boolean","jsonPath":".spec.accessApplication.enabled"}"#)]
#[kube(printcolumn = r#"{"name":"Service Token","type":"boolean","jsonPath":".spec.serviceToken.enabled"}"#)]
#[kube(printcolumn = r#"{"name":"DNS Only","type":"boolean","jsonPath":".spec.dnsOnly.enabled"}"#)]
#[kube(printcolumn = r#"{"name":"Used By","type":"integer","jsonPath":".status.usedByCount","priority":1}"#)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CloudflareZeroTrustTemplateSpec {
    /// The tenant of routes that name none: its name, or its namespace and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub tenant_ref: Option<String>,
    /// Where requests go, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_service: Option<OriginSettings>,
    /// Who may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_application: Option<AccessSettings>,
    /// A credential for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_token: Option<TokenSettings>,
    /// An address record instead of a tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_only: Option<DnsOnlySettings>,
}

/// Where requests go, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct OriginSettings {
    /// The origin; the route's first backend where nobody says it. `{{ hostname }}` stands for the route's hostname.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), transform = schema::rules(rules::URL))]
    pub url: Option<String>,
    /// Whether requests by plain HTTP are sent to HTTPS at the edge; true where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_redirect: Option<bool>,
    /// The Host header that the origin sees; `{{ hostname }}` stands for the route's hostname.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub http_host_header: Option<String>,
    /// How an `https://` origin is spoken to.
    #[serde(rename = "originTLS", skip_serializing_if = "Option::is_none")]
    pub origin_tls: Option<OriginTls>,
}

/// Who may pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct AccessSettings {
    /// Whether an Access application guards the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How long a login lasts; 24h where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), transform = schema::rules(rules::DURATION))]
    pub session_duration: Option<String>,
    /// Names of reusable policies of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 350)))]
    pub existing_policy_names: Option<Vec<String>>,
    /// Ids of reusable policies of the account; they come before those by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 64)))]
    pub existing_policy_ids: Option<Vec<String>>,
    /// E-mail addresses that may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 320)))]
    pub allow_emails: Option<Vec<String>>,
    /// Access groups that may pass, by name or id; `everyone` is everyone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 350)))]
    pub allow_groups: Option<Vec<String>>,
    /// Whether the login page is skipped where there is one identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_redirect_to_identity: Option<bool>,
    /// Whether sessions are bound to the client by a second cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_binding_cookie: Option<bool>,
    /// Whether scripts cannot read the session cookie; true where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_only_cookie_attribute: Option<bool>,
    /// When other sites' requests carry the session cookie; lax where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["none", "lax", "strict", ""]))]
    pub same_site_cookie_attribute: Option<String>,
    /// Picture of the application in the launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub logo_url: Option<String>,
    /// Whether the page before logins by programs is skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_interstitial: Option<bool>,
    /// Whether the application shows in the launcher; true where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_launcher_visible: Option<bool>,
    /// Whether programs without a valid token get 401 instead of the login page.
    #[serde(rename = "serviceAuth401Redirect", skip_serializing_if = "Option::is_none")]
    pub service_auth_401_redirect: Option<bool>,
    /// What those read who may not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub custom_deny_message: Option<String>,
    /// Where those are sent who may not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub custom_deny_url: Option<String>,
    /// Where programs are sent that may not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub custom_non_identity_deny_url: Option<String>,
}

/// A credential for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TokenSettings {
    /// Whether a service token is made, and a Secret with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How long the token lasts; 8760h where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), transform = schema::rules(rules::LIFETIME))]
    pub duration: Option<String>,
}

/// An address record instead of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct DnsOnlySettings {
    /// Whether the name is an A record of its own, without a tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether requests pass through Cloudflare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxied: Option<bool>,
    /// Seconds that answers may be kept, 1 for automatic; 120 where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::rules(rules::TTL))]
    pub ttl: Option<i64>,
    /// The address; it wins over the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), transform = schema::rules(rules::IPV4))]
    pub static_ip: Option<String>,
    /// The Service of type `LoadBalancer` whose address is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_service_ref: Option<ServiceRef>,
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct ServiceRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; the route's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// What became of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TemplateStatus {
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the template is valid, and in use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The first fifty routes of its own namespace that use it, as `namespace/name`.
    #[serde(rename = "usedByHTTPRoutes", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::no_default)]
    pub used_by_http_routes: Vec<String>,
    /// How many use it, in all namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_by_count: Option<i64>,
}

impl CloudflareZeroTrustTemplate {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace().unwrap_or_default(), self.name_any())
    }
}
