//! Objects → the accounts, zones, tunnels, tokens and keys that they take for granted at Cloudflare. Pure.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::tenants;
use crate::health_view::GROUP;

/// Where Secrets are looked for that name no namespace.
const OPERATOR_NAMESPACE: &str = "cloudflare-operator-system";

/// What must exist at Cloudflare for the objects to make sense.
#[derive(Debug, Default)]
pub(crate) struct WantedAtCloudflare {
    /// Id → name, which is empty where no object says it.
    pub(crate) accounts: BTreeMap<String, String>,
    /// Zones by name.
    pub(crate) zones: BTreeMap<String, WantedZone>,
    /// Tunnels that objects say exist.
    pub(crate) tunnels: BTreeSet<WantedTunnel>,
    pub(crate) tokens: Vec<SecretString>,
    /// E-mail addresses with their global keys.
    pub(crate) keys: Vec<(String, SecretString)>,
}

/// A zone that objects name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedZone {
    /// Its id, where an object says it.
    pub(crate) id: Option<String>,
    /// The account it belongs to.
    pub(crate) account: String,
}

/// A tunnel that an object says exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WantedTunnel {
    pub(crate) account: String,
    /// Its id, where the object says it.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
}

/// The account of objects that name none and have no credentials.
pub(crate) const EXAMPLE_ACCOUNT: &str = "0123456789abcdef0123456789abcdef";

impl WantedAtCloudflare {
    /// Reads it out of objects: credentials, domains, records and the Secrets they name.
    pub(crate) fn by(objects: &[Value]) -> Self {
        let mut wanted = Self::default();
        let accounts = Accounts::of(objects);
        for object in objects.iter().filter(|object| is_ours(object)) {
            wanted.add_account(object, &accounts);
            wanted.add_zone(object, &accounts);
            wanted.add_tunnel(object, &accounts);
        }
        tenants::add(&mut wanted, objects);
        let secrets: BTreeSet<SecretUse> = objects.iter().filter_map(secret_use).collect();
        for secret in &secrets {
            wanted.add_credential(secret, objects);
        }
        wanted
    }

    fn add_account(&mut self, object: &Value, accounts: &Accounts) {
        let details =
            if kind(object) == "CloudflareCredentials" { &object["spec"] } else { &object["spec"]["cloudflare"] };
        let (id, name) = (text(details, "accountId"), text(details, "accountName"));
        if !id.is_empty() {
            let known = self.accounts.entry(id.to_owned()).or_default();
            if known.is_empty() {
                name.clone_into(known);
            }
        } else if kind(object) == "CloudflareDomain" {
            self.accounts.entry(accounts.of_domain(object)).or_default();
        }
    }

    fn add_zone(&mut self, object: &Value, accounts: &Accounts) {
        let spec = &object["spec"];
        let (name, id, account) = match kind(object) {
            "CloudflareCredentials" => (text(spec, "defaultDomain"), "", text(spec, "accountId").to_owned()),
            "CloudflareDomain" => (text(spec, "domain"), text(spec, "zoneId"), accounts.of_domain(object)),
            _ => {
                let details = &spec["cloudflare"];
                (text(details, "domain"), text(details, "zoneId"), accounts.of_details(details))
            }
        };
        let name = name.trim_end_matches('.').to_lowercase();
        if name.is_empty() {
            return;
        }
        let id = (!id.is_empty()).then(|| id.to_owned());
        let zone = self.zones.entry(name).or_insert(WantedZone { id: None, account });
        zone.id = zone.id.take().or(id);
        self.accounts.entry(zone.account.clone()).or_default();
    }

    fn add_tunnel(&mut self, object: &Value, accounts: &Accounts) {
        let existing = &object["spec"]["existingTunnel"];
        let (id, name) = (text(existing, "id"), text(existing, "name"));
        if id.is_empty() && name.is_empty() {
            return;
        }
        let account = accounts.of_details(&object["spec"]["cloudflare"]);
        self.accounts.entry(account.clone()).or_default();
        let name = if name.is_empty() { self::name(object) } else { name };
        let id = (!id.is_empty()).then(|| id.to_owned());
        self.tunnels.insert(WantedTunnel { account, id, name: name.to_owned() });
    }

    fn add_credential(&mut self, used: &SecretUse, objects: &[Value]) {
        let is_meant = |object: &&Value| {
            kind(object) == "Secret" && name(object) == used.name && namespace(object) == used.namespace
        };
        let Some(secret) = objects.iter().find(is_meant) else { return };
        if let Some(token) = secret_value(secret, &used.token_key) {
            self.tokens.push(token);
        } else if let (Some(key), Some(email)) = (secret_value(secret, &used.api_key_key), used.email(secret)) {
            self.keys.push((email, key));
        }
    }
}

/// Which account the credentials stand for.
struct Accounts {
    by_name: BTreeMap<String, String>,
    default: String,
}

impl Accounts {
    fn of(objects: &[Value]) -> Self {
        let credentials = || objects.iter().filter(|object| is_ours(object) && kind(object) == "CloudflareCredentials");
        let account = |object: &Value| text(&object["spec"], "accountId").to_owned();
        let default = credentials().find(|object| object["spec"]["isDefault"] == true).or_else(|| credentials().next());
        Self {
            by_name: credentials().map(|object| (name(object).to_owned(), account(object))).collect(),
            default: default.map_or_else(|| EXAMPLE_ACCOUNT.to_owned(), account),
        }
    }

    fn of_domain(&self, domain: &Value) -> String {
        self.named(text(&domain["spec"]["credentialsRef"], "name"))
    }

    fn of_details(&self, details: &Value) -> String {
        match text(details, "accountId") {
            "" => self.named(text(&details["credentialsRef"], "name")),
            id => id.to_owned(),
        }
    }

    fn named(&self, name: &str) -> String {
        self.by_name.get(name).unwrap_or(&self.default).clone()
    }
}

/// A Secret, and the keys under which it holds a credential.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SecretUse {
    namespace: String,
    name: String,
    token_key: String,
    api_key_key: String,
    email_key: String,
    said_email: String,
}

impl SecretUse {
    /// A Secret that holds a token and nothing else.
    pub(super) fn token(namespace: &str, name: &str, key: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            token_key: key.to_owned(),
            api_key_key: String::new(),
            email_key: String::new(),
            said_email: String::new(),
        }
    }

    fn email(&self, secret: &Value) -> Option<String> {
        if !self.said_email.is_empty() {
            return Some(self.said_email.clone());
        }
        let found = secret_value(secret, &self.email_key).or_else(|| secret_value(secret, "CLOUDFLARE_API_EMAIL"))?;
        Some(found.expose_secret().to_owned())
    }
}

fn secret_use(object: &Value) -> Option<SecretUse> {
    if !is_ours(object) {
        return tenants::secret_use(object);
    }
    let or = |value: &str, default: &str| if value.is_empty() { default.to_owned() } else { value.to_owned() };
    if kind(object) == "CloudflareCredentials" {
        let reference = &object["spec"]["secretRef"];
        return Some(SecretUse {
            namespace: or(text(reference, "namespace"), OPERATOR_NAMESPACE),
            name: text(reference, "name").to_owned(),
            token_key: or(text(reference, "apiTokenKey"), "CLOUDFLARE_API_TOKEN"),
            api_key_key: or(text(reference, "apiKeyKey"), "CLOUDFLARE_API_KEY"),
            email_key: or(text(reference, "emailKey"), "CLOUDFLARE_EMAIL"),
            said_email: String::new(),
        });
    }
    let details = &object["spec"]["cloudflare"];
    let name = text(details, "secret");
    (!name.is_empty()).then(|| SecretUse {
        namespace: or(namespace_said(object), OPERATOR_NAMESPACE),
        name: name.to_owned(),
        token_key: or(text(details, "CLOUDFLARE_API_TOKEN"), "CLOUDFLARE_API_TOKEN"),
        api_key_key: or(text(details, "CLOUDFLARE_API_KEY"), "CLOUDFLARE_API_KEY"),
        email_key: "CLOUDFLARE_EMAIL".to_owned(),
        said_email: text(details, "email").to_owned(),
    })
}

/// Namespace and name of every Secret that objects name for a credential.
pub(crate) fn secrets_named<'a>(objects: impl IntoIterator<Item = &'a Value>) -> BTreeSet<(String, String)> {
    let used = objects.into_iter().filter_map(secret_use);
    used.map(|used| (used.namespace, used.name)).collect()
}

/// A Secret's value, from a manifest (`stringData`) or as it is stored (`data`).
fn secret_value(secret: &Value, key: &str) -> Option<SecretString> {
    let plain = secret["stringData"][key].as_str().map(str::to_owned);
    let decoded = || {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let value = plain.or_else(decoded)?;
    let value = value.trim();
    (!value.is_empty()).then(|| SecretString::from(value))
}

fn is_ours(object: &Value) -> bool {
    text(object, "apiVersion").split('/').next() == Some(GROUP)
}

pub(super) fn kind(object: &Value) -> &str {
    text(object, "kind")
}

pub(super) fn name(object: &Value) -> &str {
    text(&object["metadata"], "name")
}

fn namespace_said(object: &Value) -> &str {
    text(&object["metadata"], "namespace")
}

/// Manifests of namespaced objects may leave their namespace out.
pub(super) fn namespace(object: &Value) -> &str {
    match namespace_said(object) {
        "" => "default",
        namespace => namespace,
    }
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(yaml: &str) -> WantedAtCloudflare {
        let objects: Vec<Value> =
            crate::manifest::parse("test", yaml).unwrap().into_iter().map(|manifest| manifest.object).collect();
        WantedAtCloudflare::by(&objects)
    }

    const CREDENTIALS: &str = "apiVersion: networking.cloudflare-operator.io/v1alpha2\nkind: CloudflareCredentials\n\
        metadata: {name: main}\nspec: {accountId: acc, accountName: Ours, isDefault: true, secretRef: {name: token}}\n---\n\
        apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: cloudflare-operator-system}\n\
        stringData: {CLOUDFLARE_API_TOKEN: t1}\n---\n";

    #[test]
    fn credentials_bring_their_account_and_their_token() {
        let wanted = wanted(CREDENTIALS);

        assert_eq!(wanted.accounts, BTreeMap::from([("acc".to_owned(), "Ours".to_owned())]));
        assert_eq!(wanted.tokens[0].expose_secret(), "t1");
    }

    #[test]
    fn a_domain_is_a_zone_of_its_credentials_account() {
        let domain = "apiVersion: networking.cloudflare-operator.io/v1alpha2\nkind: CloudflareDomain\n\
            metadata: {name: a}\nspec: {domain: Example.com., zoneId: z1}\n";

        let wanted = wanted(&format!("{CREDENTIALS}{domain}"));

        assert_eq!(wanted.zones["example.com"], WantedZone { id: Some("z1".into()), account: "acc".into() });
    }

    #[test]
    fn a_tunnel_that_exists_is_named_by_its_id_or_its_name() {
        let tunnel = "apiVersion: networking.cloudflare-operator.io/v1alpha2\nkind: ClusterTunnel\n\
            metadata: {name: home}\nspec: {existingTunnel: {id: t1}, cloudflare: {}}\n";

        let wanted = wanted(&format!("{CREDENTIALS}{tunnel}"));

        let home = WantedTunnel { account: "acc".into(), id: Some("t1".into()), name: "home".into() };
        assert_eq!(wanted.tunnels, BTreeSet::from([home]));
    }

    #[test]
    fn a_secret_beside_an_object_is_read_in_its_namespace_with_its_own_keys() {
        let text = "apiVersion: networking.cloudflare-operator.io/v1alpha2\nkind: DNSRecord\n\
            metadata: {name: a, namespace: apps}\n\
            spec: {name: a.example.com, cloudflare: {secret: s, accountId: other, domain: example.com, CLOUDFLARE_API_KEY: k, email: me@example.com}}\n---\n\
            apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: apps}\ndata: {k: a2V5}\n";

        let wanted = wanted(text);

        assert_eq!((wanted.keys[0].0.as_str(), wanted.keys[0].1.expose_secret()), ("me@example.com", "key"));
        assert_eq!(wanted.zones["example.com"].account, "other");
    }

    #[test]
    fn other_objects_want_nothing() {
        let wanted = wanted("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");

        assert!(wanted.accounts.is_empty() && wanted.zones.is_empty() && wanted.tokens.is_empty());
    }
}
