//! The table of settings: their names, where templates and tenants say them, and what is built in.

use serde_json::{Value, json};

use crate::annotations::ValueSyntax;

/// How long a login lasts, where nobody says it.
pub const DEFAULT_SESSION: &str = "24h";
/// How long a service token lasts, where nobody says it.
pub const DEFAULT_TOKEN_LIFETIME: &str = "8760h";
/// Seconds that answers about an A record may be kept, where nobody says it.
pub const DEFAULT_TTL: u32 = 120;

/// One thing that can be said on several layers.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its annotation without the prefix; also its name in messages.
    pub name: &'static str,
    /// What its values look like.
    pub shape: ValueSyntax,
    /// Other names of the annotation, which count less.
    pub aliases: &'static [&'static str],
    /// Where it stands in a template's spec, as a JSON pointer; empty where it cannot.
    pub template: &'static str,
    /// Where it stands in a tenant's spec; empty where it cannot.
    pub tenant: &'static str,
    /// What counts where nobody says it.
    pub built_in: BuiltIn,
    /// What it is for.
    pub doc: &'static str,
}

/// What counts where nobody says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Nothing.
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(&'static str),
    /// A number.
    Number(i64),
    /// A list without items.
    Empty,
}

impl BuiltIn {
    /// As JSON.
    pub fn value(self) -> Value {
        match self {
            Self::Nothing => Value::Null,
            Self::Flag(flag) => json!(flag),
            Self::Text(text) => json!(text),
            Self::Number(number) => json!(number),
            Self::Empty => json!([]),
        }
    }
}

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $constant:ident = $name:literal $aliases:tt, $shape:expr, $template:literal, $tenant:literal, $built_in:expr;)+) => {
        $($(#[doc = $doc])+
        pub const $constant: Setting = Setting {
            name: $name,
            shape: $shape,
            aliases: &$aliases,
            template: $template,
            tenant: $tenant,
            built_in: $built_in,
            doc: concat!($($doc),+).trim_ascii_start(),
        };)+

        /// All settings.
        pub const SETTINGS: &[Setting] = &[$($constant),+];
    };
}

use BuiltIn::{Empty, Flag, Nothing, Number, Text};

/// When other sites' requests may carry the session cookie.
const SAME_SITE: &[&str] = &["none", "lax", "strict"];

settings! {
    /// The tunnel, instead of the tenant's.
    TUNNEL_ID = "tunnelId" [], ValueSyntax::Uuid, "", "/tunnelId", Nothing;
    /// The address of a name without a tunnel.
    TARGET_IP = "dnsIp" [], ValueSyntax::Text, "/dnsOnly/staticIp", "", Nothing;
    /// Where requests go; the route's first backend where nobody says it. `{{ hostname }}` stands for the hostname.
    ORIGIN_URL = "origin.url" ["originService"], ValueSyntax::Url, "/originService/url", "/defaults/originService", Nothing;
    /// Whether the origin's certificate is taken unchecked.
    NO_TLS_VERIFY = "origin.noTLSVerify" ["no-tls-verify"], ValueSyntax::Flag, "/originService/originTLS/noTLSVerify", "/defaults/originTLS/noTLSVerify", Flag(false);
    /// The name that the origin's certificate must carry. `{{ hostname }}` stands for the hostname.
    ORIGIN_SERVER_NAME = "origin.originServerName" ["origin-server-name"], ValueSyntax::Text, "/originService/originTLS/originServerName", "/defaults/originTLS/originServerName", Nothing;
    /// Path of the authorities' certificates, inside cloudflared.
    CA_POOL = "origin.caPool" ["ca-pool"], ValueSyntax::Text, "/originService/originTLS/caPool", "/defaults/originTLS/caPool", Nothing;
    /// Seconds that a TLS handshake with the origin may take.
    TLS_TIMEOUT = "origin.tlsTimeout" ["tls-timeout"], ValueSyntax::Seconds, "/originService/originTLS/tlsTimeout", "/defaults/originTLS/tlsTimeout", Number(10);
    /// Whether the origin is spoken to by HTTP/2.
    HTTP2_ORIGIN = "origin.http2Origin" ["http2-origin"], ValueSyntax::Flag, "/originService/originTLS/http2Origin", "/defaults/originTLS/http2Origin", Flag(false);
    /// Whether the name asked for by TLS is the one of the Host header.
    MATCH_SNI = "origin.matchSNIToHost" ["match-sni-to-host"], ValueSyntax::Flag, "/originService/originTLS/matchSNIToHost", "/defaults/originTLS/matchSNIToHost", Flag(false);
    /// The Host header that the origin sees. `{{ hostname }}` stands for the hostname.
    HTTP_HOST_HEADER = "origin.httpHostHeader" [], ValueSyntax::Text, "/originService/httpHostHeader", "/defaults/httpHostHeader", Nothing;
    /// Whether requests by plain HTTP are sent to HTTPS at the edge.
    HTTP_REDIRECT = "origin.httpRedirect" [], ValueSyntax::Flag, "/originService/httpRedirect", "/defaults/httpRedirect", Flag(true);
    /// Whether an Access application guards the name.
    ACCESS = "access.enabled" ["accessApp"], ValueSyntax::Flag, "/accessApplication/enabled", "", Flag(false);
    /// How long a login lasts.
    SESSION_DURATION = "access.sessionDuration" ["sessionDuration"], ValueSyntax::Duration, "/accessApplication/sessionDuration", "/defaults/sessionDuration", Text(DEFAULT_SESSION);
    /// Names of reusable policies of the account.
    POLICY_NAMES = "access.existingPolicyNames" [], ValueSyntax::List, "/accessApplication/existingPolicyNames", "", Empty;
    /// Ids of reusable policies of the account; they come before those by name.
    POLICY_IDS = "access.existingPolicyIds" [], ValueSyntax::List, "/accessApplication/existingPolicyIds", "", Empty;
    /// E-mail addresses that may pass.
    ALLOW_EMAILS = "access.allowEmails" ["allowEmails"], ValueSyntax::List, "/accessApplication/allowEmails", "", Empty;
    /// Access groups that may pass, by name or id; `everyone` is everyone.
    ALLOW_GROUPS = "access.allowGroups" ["allowGroups"], ValueSyntax::List, "/accessApplication/allowGroups", "", Empty;
    /// Whether the login page is skipped where there is one identity provider.
    AUTO_REDIRECT = "access.autoRedirectToIdentity" [], ValueSyntax::Flag, "/accessApplication/autoRedirectToIdentity", "", Flag(false);
    /// Whether sessions are bound to the client by a second cookie.
    BINDING_COOKIE = "access.enableBindingCookie" [], ValueSyntax::Flag, "/accessApplication/enableBindingCookie", "", Flag(false);
    /// Whether scripts cannot read the session cookie.
    HTTP_ONLY_COOKIE = "access.httpOnlyCookieAttribute" [], ValueSyntax::Flag, "/accessApplication/httpOnlyCookieAttribute", "", Flag(true);
    /// When other sites' requests carry the session cookie: none, lax or strict.
    SAME_SITE_COOKIE = "access.sameSiteCookieAttribute" [], ValueSyntax::Choice(SAME_SITE), "/accessApplication/sameSiteCookieAttribute", "", Text("lax");
    /// Picture of the application in the launcher.
    LOGO_URL = "access.logoUrl" [], ValueSyntax::Text, "/accessApplication/logoUrl", "", Nothing;
    /// Whether the page before logins by programs is skipped.
    SKIP_INTERSTITIAL = "access.skipInterstitial" [], ValueSyntax::Flag, "/accessApplication/skipInterstitial", "", Flag(false);
    /// Whether the application shows in the launcher.
    APP_LAUNCHER = "access.appLauncherVisible" [], ValueSyntax::Flag, "/accessApplication/appLauncherVisible", "", Flag(true);
    /// Whether programs without a valid token get 401 instead of the login page.
    SERVICE_AUTH_401 = "access.serviceAuth401Redirect" [], ValueSyntax::Flag, "/accessApplication/serviceAuth401Redirect", "", Flag(false);
    /// What those read who may not pass.
    DENY_MESSAGE = "access.customDenyMessage" [], ValueSyntax::Text, "/accessApplication/customDenyMessage", "", Nothing;
    /// Where those are sent who may not pass.
    DENY_URL = "access.customDenyUrl" [], ValueSyntax::Text, "/accessApplication/customDenyUrl", "", Nothing;
    /// Where programs are sent that may not pass.
    NON_IDENTITY_DENY_URL = "access.customNonIdentityDenyUrl" [], ValueSyntax::Text, "/accessApplication/customNonIdentityDenyUrl", "", Nothing;
    /// Whether a service token is made, and a Secret with it.
    TOKEN = "serviceToken.enabled" ["serviceToken"], ValueSyntax::Flag, "/serviceToken/enabled", "", Flag(false);
    /// How long the service token lasts.
    TOKEN_DURATION = "serviceToken.duration" [], ValueSyntax::Lifetime, "/serviceToken/duration", "", Text(DEFAULT_TOKEN_LIFETIME);
    /// Whether the name is an A record of its own, without a tunnel.
    DNS_ONLY = "dnsOnly.enabled" [], ValueSyntax::Flag, "/dnsOnly/enabled", "", Flag(false);
    /// Whether requests to the A record pass through Cloudflare.
    PROXIED = "dnsOnly.proxied" [], ValueSyntax::Flag, "/dnsOnly/proxied", "", Flag(false);
    /// Seconds that answers about the A record may be kept, 1 for automatic.
    TTL = "dnsOnly.ttl" [], ValueSyntax::Ttl, "/dnsOnly/ttl", "", Number(DEFAULT_TTL as i64);
    /// The Service whose address the A record has, where none is given.
    TARGET_SERVICE = "dnsOnly.ingressServiceRef" [], ValueSyntax::Service, "/dnsOnly/ingressServiceRef", "", Nothing;
}

/// Those that say who may pass.
pub const PASSES: &[Setting] = &[ALLOW_EMAILS, ALLOW_GROUPS, POLICY_NAMES, POLICY_IDS];
