//! What the cache keeps of an object of any kind: what it claims, what it depends on, what it recorded.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::kind::{CredentialsFrom, Kind, Needs};
use crate::reference::{RemoteReference, SpecReference};
use crate::used::UsedCredentials;

/// What the cache keeps of an object. There is one for each object, so names that are only compared are kept as digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Projection {
    /// Digest of what no other object may want too.
    pub(crate) claim: Option<u64>,
    /// Digests of what the object depends on, as the functions below name it.
    pub(crate) depends: Box<[u64]>,
    /// Digest of the credential that made what its status records.
    pub(crate) made_with: Option<u64>,
    /// The Secret beside it that this credential is, where it is one.
    pub(crate) secret: Option<Box<str>>,
    /// The name whose domain says which zone it is in.
    pub(crate) host: Option<Box<str>>,
    /// The ids that its status records: of what it made, or of the zone or account that it stands for.
    pub(crate) ids: Box<[Box<str>]>,
    /// What that is called at Cloudflare, where those show it who refer to it.
    pub(crate) name: Option<Box<str>>,
    /// Whether it says that it is the default of its kind.
    pub(crate) default: bool,
    /// Whether its addresses are those of a route's Gateways, which only the route names.
    pub(crate) through_route: bool,
}

impl Projection {
    pub(crate) fn of<K: Kind>(object: &K) -> Self {
        portolan_core::waypoint!();
        let namespace = object.meta().namespace.as_deref();
        let needs = object.needs();
        let recorded = object.recorded();
        let mut depends = depends(&needs, namespace);
        // What deletes it later is needed, too, whatever the spec names by now.
        let used = recorded.credentials.as_ref().and_then(UsedCredentials::from);
        let used = used.filter(|_| !recorded.ids.is_empty());
        let made_with = used.as_ref().and_then(|from| on_credentials(from, namespace));
        let secret = used.and_then(|from| match from {
            CredentialsFrom::Inline(inline) => Some(inline.name.into_boxed_str()),
            CredentialsFrom::Named(_) | CredentialsFrom::Default | CredentialsFrom::Itself => None,
        });
        depends.extend(made_with.clone());
        depends.sort_unstable();
        depends.dedup();
        let zone = needs.zone().filter(|zone| zone.id.is_none());
        Self {
            made_with: made_with.as_deref().map(digest),
            secret,
            claim: object.claim().as_deref().map(digest),
            depends: depends.iter().map(|name| digest(name)).collect(),
            host: zone.map(|zone| plain(zone.domain.as_deref().unwrap_or(&zone.name)).into_boxed_str()),
            ids: recorded.ids.into_iter().map(String::into_boxed_str).collect(),
            name: recorded.name.map(String::into_boxed_str),
            default: object.is_default(),
            through_route: needs.source().is_some_and(|source| source.http_route.is_some()),
        }
    }

    /// What the object stands for, as those write it who refer to it: the first id, and its name.
    pub(crate) fn target(&self) -> (Option<&str>, Option<&str>) {
        (self.ids.first().map(AsRef::as_ref), self.name.as_deref())
    }

    /// Whether the object stands for the zone or account with this id.
    pub(crate) fn stands_for(&self, id: &str) -> bool {
        self.ids.iter().any(|one| &**one == id)
    }
}

/// What a name ends in, label by label: itself, and all that it lies in.
pub(crate) fn endings(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |rest| rest.split_once('.').map(|(_, rest)| rest))
}

/// A name as domains are compared.
pub(crate) fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_lowercase()
}

/// Stands for a name where it is only compared.
pub(crate) fn digest(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

fn depends(needs: &Needs, namespace: Option<&str>) -> Vec<String> {
    let referred = needs.refers.iter().filter_map(|one| on_reference(one, namespace));
    on_credentials(&needs.credentials, namespace).into_iter().chain(referred).collect()
}

/// Zones are found by the ending of a name, and what only Cloudflare knows tells nobody when it changes.
fn on_reference(reference: &SpecReference, namespace: Option<&str>) -> Option<String> {
    match reference {
        SpecReference::Zone(_) => None,
        SpecReference::Source(source) => {
            let named = source.named(namespace)?;
            Some(object(named.kind, named.namespace, named.name))
        }
        SpecReference::Remote(remote @ RemoteReference { kind, .. }) => {
            let key = remote.object()?;
            Some(object(kind, key.namespace.as_deref(), &key.name))
        }
    }
}

fn on_credentials(from: &CredentialsFrom, namespace: Option<&str>) -> Option<String> {
    match from {
        CredentialsFrom::Named(name) => Some(credentials(name)),
        CredentialsFrom::Inline(inline) => Some(secret(namespace.unwrap_or_default(), &inline.name)),
        CredentialsFrom::Default => Some(credentials("")),
        CredentialsFrom::Itself => None,
    }
}

/// Depends on a `CloudflareCredentials`; the empty name is the default.
pub(crate) fn credentials(name: &str) -> String {
    format!("CloudflareCredentials/{name}")
}

/// Depends on a Secret.
pub(crate) fn secret(namespace: &str, name: &str) -> String {
    format!("Secret/{namespace}/{name}")
}

/// Depends on an object.
pub(crate) fn object(kind: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::kinds::{DnsRecord, NetworkRoute};

    fn record(spec: Value) -> Projection {
        let mut spec = spec;
        spec["name"] = json!("www.Example.com");
        let object = json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "DNSRecord",
            "metadata": { "name": "www", "namespace": "web" }, "spec": spec,
        });
        Projection::of(&from_value::<DnsRecord>(object).expect("it is complete"))
    }

    impl Projection {
        fn lies_in(&self, domain: &str) -> bool {
            let domain = plain(domain);
            self.host.iter().flat_map(|host| endings(host)).any(|ending| ending == domain)
        }

        fn depends_on(&self, dependency: &str) -> bool {
            self.depends.contains(&digest(dependency))
        }
    }

    #[test]
    fn a_record_depends_on_its_domain_at_label_boundaries() {
        let projection = record(json!({ "type": "A", "content": "192.0.2.1", "cloudflare": {} }));

        assert!(projection.lies_in("example.com"));
        assert!(projection.lies_in("Example.com."));
        assert!(!projection.lies_in("ample.com"));
        assert!(!projection.lies_in("other.org"));
    }

    #[test]
    fn a_record_with_a_zone_id_depends_on_no_domain() {
        let projection = record(json!({ "type": "A", "content": "192.0.2.1", "cloudflare": { "zoneId": "z1" } }));

        assert!(!projection.lies_in("example.com"));
    }

    #[test]
    fn a_record_depends_on_the_secret_and_the_source_that_it_names() {
        let source = json!({ "service": { "name": "front" } });
        let projection = record(json!({ "sourceRef": source, "cloudflare": { "secret": "cf" } }));

        assert!(projection.depends_on(&secret("web", "cf")));
        assert!(projection.depends_on(&object("Service", Some("web"), "front")));
        assert!(!projection.through_route);
        assert!(!projection.depends_on(&credentials("")));
    }

    #[test]
    fn a_route_depends_on_its_tunnel_its_network_and_the_default_credentials() {
        let object = json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "NetworkRoute",
            "metadata": { "name": "lan" },
            "spec": {
                "network": "10.0.0.0/8", "cloudflare": {}, "tunnelRef": { "kind": "ClusterTunnel", "name": "edge" },
                "virtualNetworkRef": { "name": "corp" },
            },
        });
        let projection = Projection::of(&from_value::<NetworkRoute>(object).expect("it is complete"));

        for dependency in ["ClusterTunnel/edge", "VirtualNetwork/corp", "CloudflareCredentials/"] {
            assert!(projection.depends_on(dependency), "{dependency}");
        }
    }
}
