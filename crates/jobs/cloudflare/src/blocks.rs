//! Blocks that several kinds have in their spec: who asks Cloudflare, and references to tunnels, networks and sources.

/// Blocks of fields: those that have to be there, and behind a semicolon those that may.
macro_rules! blocks {
    ($(
        $(#[$of:meta])+
        $name:ident {
            $($(#[$about:meta])+ $field:ident: $type:ty,)*
            $(; $($(#[$about_option:meta])+ $option:ident: $option_type:ty,)+)?
        }
    )+) => {$(
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        $(#[$of])+
        pub struct $name {
            $($(#[$about])+ pub $field: $type,)*
            $($(
                $(#[$about_option])+
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $option: Option<$option_type>,
            )+)?
        }
    )+};
}

mod access_rules;
mod gateway_settings;

use std::fmt;

use kube::core::{ApiResource, GroupVersionKind};
use portolan_core::{ObjectKey, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::{CredentialsFrom, InlineSecret, Needs};
use crate::reference::{NamedBy, RemoteReference};

pub use access_rules::{AccessRule, AccessRules, IdentityProviderReference};
pub use gateway_settings::GatewaySettings;

/// Key of the API token in a Secret, where nothing else is said.
pub const TOKEN_KEY: &str = "CLOUDFLARE_API_TOKEN";
/// Key of the global API key in a Secret, where nothing else is said.
pub const API_KEY_KEY: &str = "CLOUDFLARE_API_KEY";
/// Key of the e-mail address that belongs to a global API key, where nothing else is said.
pub const EMAIL_KEY: &str = "CLOUDFLARE_EMAIL";

/// Who asks Cloudflare, and about which account and zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudflareDetails {
    /// The `CloudflareCredentials` to use; it wins over `secret`. With neither, the default credentials are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<CredentialsReference>,
    /// The domain whose zone is meant, where the object's own name does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub domain: Option<String>,
    /// The zone's id; nothing is looked up then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub zone_id: Option<String>,
    /// Older form: a Secret with the token or key, in the object's namespace (the operator's for cluster-scoped kinds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub secret: Option<String>,
    /// The account's name, where its id is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub account_name: Option<String>,
    /// The account's id; the credentials' own account where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub account_id: Option<String>,
    /// The e-mail address that belongs to a global API key in `secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 320))]
    pub email: Option<String>,
    /// Key of the global API key in `secret`; `CLOUDFLARE_API_KEY` where absent.
    #[serde(rename = "CLOUDFLARE_API_KEY", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub api_key_key: Option<String>,
    /// Key of the API token in `secret`; `CLOUDFLARE_API_TOKEN` where absent.
    #[serde(rename = "CLOUDFLARE_API_TOKEN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub token_key: Option<String>,
    /// Key of an existing tunnel's credentials file in `secret`; no longer needed.
    #[serde(rename = "CLOUDFLARE_TUNNEL_CREDENTIAL_FILE", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub tunnel_file_key: Option<String>,
    /// Key of an existing tunnel's secret in `secret`; no longer needed.
    #[serde(rename = "CLOUDFLARE_TUNNEL_CREDENTIAL_SECRET", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub tunnel_secret_key: Option<String>,
}

impl CloudflareDetails {
    /// Where the credential comes from: the reference, else the Secret, else the default.
    pub fn credentials(&self) -> CredentialsFrom {
        match (&self.credentials_ref, given(self.secret.as_ref())) {
            (Some(reference), _) => CredentialsFrom::Named(reference.name.clone()),
            (None, Some(secret)) => CredentialsFrom::Inline(InlineSecret {
                name: secret,
                token_key: given(self.token_key.as_ref()).unwrap_or_else(|| TOKEN_KEY.to_owned()),
                api_key_key: given(self.api_key_key.as_ref()).unwrap_or_else(|| API_KEY_KEY.to_owned()),
                email: given(self.email.as_ref()),
            }),
            (None, None) => CredentialsFrom::Default,
        }
    }

    /// What every object with this block needs.
    pub(crate) fn needs(&self) -> Needs {
        Needs { account_id: self.account_id(), account_name: self.account_name(), ..Needs::only(self.credentials()) }
    }

    /// The account's id, if the object says it.
    pub fn account_id(&self) -> Option<String> {
        given(self.account_id.as_ref())
    }

    /// The account's name, if the object says it.
    pub fn account_name(&self) -> Option<String> {
        given(self.account_name.as_ref())
    }

    /// Something that differs between accounts, from the object alone; for telling claims apart.
    pub(crate) fn account_hint(&self) -> String {
        match (self.account_id(), self.credentials()) {
            (Some(account), _) => format!(" (account {account})"),
            (None, CredentialsFrom::Named(name)) => format!(" (credentials {name})"),
            (None, CredentialsFrom::Inline(secret)) => format!(" (secret {})", secret.name),
            (None, CredentialsFrom::Default | CredentialsFrom::Itself) => String::new(),
        }
    }
}

/// A text that says something: older operators wrote empty ones for absent ones.
pub(crate) fn given(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// A `CloudflareCredentials` by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CredentialsReference {
    /// Name of the `CloudflareCredentials`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How a credential proves who asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuthType {
    /// By an API token.
    #[default]
    #[serde(rename = "apiToken")]
    ApiToken,
    /// By the global API key and the e-mail address that belongs to it.
    #[serde(rename = "globalAPIKey")]
    GlobalApiKey,
}

/// Where a credential is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Secret; the operator's own where it is absent or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Key of the API token.
    #[serde(default = "token_key")]
    #[schemars(length(max = 253))]
    pub api_token_key: String,
    /// Key of the global API key.
    #[serde(default = "api_key_key")]
    #[schemars(length(max = 253))]
    pub api_key_key: String,
    /// Key of the e-mail address that belongs to the global API key.
    #[serde(default = "email_key")]
    #[schemars(length(max = 253))]
    pub email_key: String,
}

impl SecretReference {
    /// Namespace of the Secret, which is the operator's own where the reference says nothing.
    pub fn namespace_or<'a>(&'a self, operator: &'a str) -> &'a str {
        self.namespace.as_deref().filter(|said| !said.is_empty()).unwrap_or(operator)
    }

    /// Key of the API token.
    pub fn api_token_key(&self) -> &str {
        or(&self.api_token_key, TOKEN_KEY)
    }

    /// Key of the global API key.
    pub fn api_key_key(&self) -> &str {
        or(&self.api_key_key, API_KEY_KEY)
    }

    /// Key of the e-mail address.
    pub fn email_key(&self) -> &str {
        or(&self.email_key, EMAIL_KEY)
    }
}

fn or<'a>(text: &'a str, otherwise: &'static str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn token_key() -> String {
    TOKEN_KEY.to_owned()
}

fn api_key_key() -> String {
    API_KEY_KEY.to_owned()
}

fn email_key() -> String {
    EMAIL_KEY.to_owned()
}

/// Which of the two kinds of tunnel a reference means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TunnelKind {
    /// A Tunnel in a namespace.
    Tunnel,
    /// A `ClusterTunnel`.
    #[default]
    ClusterTunnel,
}

/// A tunnel that traffic goes through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelReference {
    /// Kind of the tunnel.
    #[serde(default)]
    pub kind: TunnelKind,
    /// Name of the tunnel's object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of a Tunnel; the referring object's own where absent, `default` for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

impl TunnelReference {
    /// The kind that is meant.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            TunnelKind::Tunnel => "Tunnel",
            TunnelKind::ClusterTunnel => "ClusterTunnel",
        }
    }

    /// The namespace that is meant, seen from an object in namespace `from` (none: of the cluster).
    pub fn namespace_or<'a>(&'a self, from: Option<&'a str>) -> Option<&'a str> {
        match self.kind {
            TunnelKind::ClusterTunnel => None,
            TunnelKind::Tunnel => {
                Some(self.namespace.as_deref().filter(|said| !said.is_empty()).or(from).unwrap_or("default"))
            }
        }
    }

    /// The tunnel that is meant, seen from an object in namespace `from`.
    pub(crate) fn reference(&self, from: Option<&str>) -> RemoteReference {
        let namespace = self.namespace_or(from).map(str::to_owned);
        let by = NamedBy::Object(ObjectKey { namespace, name: self.name.clone() });
        RemoteReference { kind: self.kind(), by, field: "tunnelRef" }
    }
}

/// A virtual network, in one of three ways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::rules(ONE_NETWORK))]
pub struct VirtualNetworkReference {
    /// Name of a `VirtualNetwork` object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Id of the network at Cloudflare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub cloudflare_id: Option<String>,
    /// Name of the network at Cloudflare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub cloudflare_name: Option<String>,
}

impl VirtualNetworkReference {
    /// The network that is meant: the account's default one where nothing is said.
    pub(crate) fn reference(said: Option<&Self>) -> RemoteReference {
        let named =
            |one: &Self| NamedBy::one_of(one.name.as_ref(), one.cloudflare_id.as_ref(), one.cloudflare_name.as_ref());
        let by = said.and_then(named).unwrap_or(NamedBy::Default);
        RemoteReference { kind: "VirtualNetwork", by, field: "virtualNetworkRef" }
    }
}

const ONE_NETWORK: &[schema::CelRule] = &[(
    "[has(self.name), has(self.cloudflareId), has(self.cloudflareName)].filter(set, set).size() == 1",
    "set exactly one of name, cloudflareId and cloudflareName",
)];

/// A Kubernetes object whose addresses are published: exactly one of the five.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::rules(ONE_SOURCE))]
pub struct SourceReference {
    /// A Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceSource>,
    /// An Ingress: the addresses of its load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<NamedSource>,
    /// An `HTTPRoute`: the addresses of the Gateways that it is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_route: Option<NamedSource>,
    /// A Gateway: its addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<NamedSource>,
    /// A Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeSource>,
}

const ONE_SOURCE: &[schema::CelRule] = &[(
    "[has(self.service), has(self.ingress), has(self.httpRoute), has(self.gateway), has(self.node)]\
     .filter(set, set).size() == 1",
    "set exactly one of service, ingress, httpRoute, gateway and node",
)];

/// A Service and which of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSource {
    /// Name of the Service.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Service; the record's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Which address is taken.
    #[serde(default)]
    pub address_type: ServiceAddress,
}

/// Where a Service's address stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceAddress {
    /// `status.loadBalancer.ingress[].ip`.
    #[default]
    LoadBalancerIP,
    /// `status.loadBalancer.ingress[].hostname`.
    LoadBalancerHostname,
    /// `spec.externalIPs`.
    ExternalIP,
    /// `spec.externalName`.
    ExternalName,
    /// `spec.clusterIPs`.
    ClusterIP,
}

/// An object by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedSource {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; the record's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// A Node and which of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSource {
    /// Name of the Node.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Which address is taken.
    #[serde(default)]
    pub address_type: NodeAddress,
}

/// The type of a Node's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NodeAddress {
    /// Reachable inside the cluster.
    InternalIP,
    /// Reachable from elsewhere.
    #[default]
    ExternalIP,
    /// The name that the machine gives itself.
    Hostname,
}

/// The one object that a [`SourceReference`] means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceChoice<'a> {
    /// A Service.
    Service(&'a ServiceSource),
    /// An Ingress.
    Ingress(&'a NamedSource),
    /// An `HTTPRoute`.
    HttpRoute(&'a NamedSource),
    /// A Gateway.
    Gateway(&'a NamedSource),
    /// A Node.
    Node(&'a NodeSource),
}

impl SourceReference {
    /// The source that is set; `None` unless it is exactly one.
    pub fn choice(&self) -> Option<SourceChoice<'_>> {
        let choices = [
            self.service.as_ref().map(SourceChoice::Service),
            self.ingress.as_ref().map(SourceChoice::Ingress),
            self.http_route.as_ref().map(SourceChoice::HttpRoute),
            self.gateway.as_ref().map(SourceChoice::Gateway),
            self.node.as_ref().map(SourceChoice::Node),
        ];
        let mut set = choices.into_iter().flatten();
        set.next().filter(|_| set.next().is_none())
    }
}

impl SourceChoice<'_> {
    /// The kind of the source.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Service(_) => "Service",
            Self::Ingress(_) => "Ingress",
            Self::HttpRoute(_) => "HTTPRoute",
            Self::Gateway(_) => "Gateway",
            Self::Node(_) => "Node",
        }
    }

    /// The source by name, seen from a record in namespace `from`.
    pub fn named<'a>(self, from: Option<&'a str>) -> NamedObject<'a>
    where
        Self: 'a,
    {
        let (name, namespace): (&'a str, Option<&'a str>) = match self {
            Self::Service(service) => (&service.name, service.namespace.as_deref()),
            Self::Ingress(named) | Self::HttpRoute(named) | Self::Gateway(named) => {
                (&named.name, named.namespace.as_deref())
            }
            Self::Node(node) => return NamedObject { kind: self.kind(), namespace: None, name: &node.name },
        };
        NamedObject { kind: self.kind(), namespace: namespace.filter(|said| !said.is_empty()).or(from), name }
    }
}

impl SourceReference {
    /// The source that is set, by name, seen from a record in namespace `from`; `None` unless it is exactly one.
    pub fn named<'a>(&'a self, from: Option<&'a str>) -> Option<NamedObject<'a>> {
        self.choice().map(|choice| choice.named(from))
    }
}

/// A Kubernetes object that something refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedObject<'a> {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace, for namespaced kinds.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
}

impl NamedObject<'_> {
    /// Where the API server has such objects.
    pub fn resource(&self) -> ApiResource {
        let (group, plural) = match self.kind {
            "Ingress" => ("networking.k8s.io", "ingresses"),
            "HTTPRoute" => ("gateway.networking.k8s.io", "httproutes"),
            "Gateway" => ("gateway.networking.k8s.io", "gateways"),
            "Node" => ("", "nodes"),
            _ => ("", "services"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", self.kind), plural)
    }
}

impl fmt::Display for NamedObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn details(value: serde_json::Value) -> CloudflareDetails {
        from_value(value).unwrap()
    }

    #[test]
    fn a_reference_to_credentials_wins_over_a_secret() {
        let both = details(json!({ "credentialsRef": { "name": "prod" }, "secret": "old" }));

        assert_eq!(both.credentials(), CredentialsFrom::Named("prod".to_owned()));
    }

    #[test]
    fn a_secret_is_read_by_the_keys_that_the_object_names() {
        let inline = details(json!({ "secret": "old", "CLOUDFLARE_API_TOKEN": "TOKEN", "email": "a@example.com" }));

        assert_eq!(
            inline.credentials(),
            CredentialsFrom::Inline(InlineSecret {
                name: "old".to_owned(),
                token_key: "TOKEN".to_owned(),
                api_key_key: "CLOUDFLARE_API_KEY".to_owned(),
                email: Some("a@example.com".to_owned()),
            })
        );
    }

    #[test]
    fn without_reference_and_secret_the_default_is_meant() {
        assert_eq!(details(json!({ "secret": "", "domain": "example.com" })).credentials(), CredentialsFrom::Default);
    }

    #[test]
    fn a_tunnel_without_namespace_is_looked_for_beside_the_object_or_in_default() {
        let tunnel: TunnelReference = from_value(json!({ "kind": "Tunnel", "name": "t" })).unwrap();
        let of_cluster: TunnelReference = from_value(json!({ "name": "t", "namespace": "x" })).unwrap();

        assert_eq!(tunnel.reference(Some("shop")).to_string(), "Tunnel shop/t");
        assert_eq!(tunnel.reference(None).to_string(), "Tunnel default/t");
        assert_eq!(of_cluster.reference(Some("shop")).to_string(), "ClusterTunnel t");
    }

    #[test]
    fn exactly_one_source_is_a_choice() {
        let one: SourceReference = from_value(json!({ "httpRoute": { "name": "r" } })).unwrap();
        let two: SourceReference =
            from_value(json!({ "node": { "name": "n" }, "gateway": { "name": "g", "namespace": "x" } })).unwrap();

        assert_eq!(one.named(Some("shop")).unwrap().to_string(), "HTTPRoute shop/r");
        assert_eq!(two.choice(), None);
        assert_eq!(SourceReference::default().choice(), None);
    }
}
