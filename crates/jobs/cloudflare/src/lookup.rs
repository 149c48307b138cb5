//! What an object names → the credentials and domains that it may mean, found without a look at all others.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_core::{Hostname, ObjectKey};
use portolan_engine::Referrers;

use crate::job::JobContext;
use crate::kind::CredentialsFrom;
use crate::kinds::{CloudflareCredentials, CloudflareDomain};
use crate::projection::endings;
use crate::reconciler::key_of;

/// By what credentials and domains are looked for. Kept true by the changes of their caches.
#[derive(Default)]
pub(crate) struct LookupIndex {
    credentials: Referrers<CredentialsTopic>,
    domains: Referrers<DomainTopic>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum CredentialsTopic {
    /// They are read from this Secret.
    Secret(ObjectKey),
    /// They say that they are the default.
    Default,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum DomainTopic {
    /// It is called so.
    Name(String),
    /// It has this zone.
    Zone(String),
    /// It says that it is the default.
    Default,
}

impl LookupIndex {
    /// Credentials came, changed or went.
    pub(crate) fn credentials_seen(
        &self,
        before: Option<&CloudflareCredentials>,
        after: Option<&CloudflareCredentials>,
        operator_namespace: &str,
    ) {
        let Some(key) = after.or(before).map(key_of) else { return };
        let topics = |one: &CloudflareCredentials| {
            let reference = &one.spec.secret_ref;
            let secret = ObjectKey::namespaced(reference.namespace_or(operator_namespace), &reference.name);
            let default = one.spec.is_default.then_some(CredentialsTopic::Default);
            [Some(CredentialsTopic::Secret(secret)), default].into_iter().flatten()
        };
        self.credentials.note(key, before.into_iter().flat_map(topics), after.into_iter().flat_map(topics));
    }

    /// A domain came, changed or went.
    pub(crate) fn domain_seen(&self, before: Option<&CloudflareDomain>, after: Option<&CloudflareDomain>) {
        let Some(key) = after.or(before).map(key_of) else { return };
        let topics = |one: &CloudflareDomain| {
            let name = one.zone_name().ok().map(|zone| DomainTopic::Name(zone.as_str().to_owned()));
            let zone = one.zone_id().map(|id| DomainTopic::Zone(id.to_owned()));
            let default = one.spec.is_default.then_some(DomainTopic::Default);
            [name, zone, default].into_iter().flatten()
        };
        self.domains.note(key, before.into_iter().flat_map(topics), after.into_iter().flat_map(topics));
    }

    /// The credentials that are read from a Secret.
    pub(crate) fn credentials_of(&self, secret: &ObjectKey) -> Vec<ObjectKey> {
        self.credentials.of(&CredentialsTopic::Secret(secret.clone()))
    }

    /// The domains that a name may lie in, by key.
    fn around(&self, name: &Hostname) -> BTreeSet<ObjectKey> {
        let names = endings(name.as_str()).map(|ending| DomainTopic::Name(ending.to_owned()));
        names.chain([DomainTopic::Default]).flat_map(|topic| self.domains.of(&topic)).collect()
    }
}

impl JobContext {
    /// The credentials among which those are that `from` means.
    pub(crate) fn credentials_meant(&self, from: &CredentialsFrom) -> Vec<Arc<CloudflareCredentials>> {
        let keys = match from {
            CredentialsFrom::Named(name) => vec![ObjectKey::cluster(name)],
            CredentialsFrom::Default => self.lookup.credentials.of(&CredentialsTopic::Default),
            CredentialsFrom::Inline(_) | CredentialsFrom::Itself => Vec::new(),
        };
        keys.iter().filter_map(|key| self.credentials.get(key)).collect()
    }

    /// The domains among which the one is that a name lies in, and those that say that they are the default.
    pub(crate) fn domains_around(&self, name: &Hostname) -> Vec<Arc<CloudflareDomain>> {
        self.lookup.around(name).iter().filter_map(|key| self.domains.get(key)).collect()
    }

    /// The domains of a zone.
    pub(crate) fn domains_of_zone(&self, id: &str) -> Vec<Arc<CloudflareDomain>> {
        let keys = self.lookup.domains.of(&DomainTopic::Zone(id.to_owned()));
        keys.iter().filter_map(|key| self.domains.get(key)).filter(|one| one.zone_id() == Some(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn domain(name: &str, zone: Option<&str>, is_default: bool) -> CloudflareDomain {
        let object = json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareDomain",
            "metadata": { "name": name.replace('.', "-") }, "spec": { "domain": name, "isDefault": is_default },
            "status": zone.map_or(Value::Null, |zone| json!({ "zoneId": zone })),
        });
        from_value(object).expect("it is complete")
    }

    fn around(index: &LookupIndex, name: &str) -> Vec<String> {
        let name = Hostname::parse(name).expect("it is a name");
        index.around(&name).into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn a_name_is_looked_for_among_the_domains_that_it_may_lie_in_and_the_defaults() {
        let index = LookupIndex::default();
        for one in [
            domain("example.com", None, false),
            domain("Eu.Example.com", None, false),
            domain("ample.com", None, false),
            domain("other.org", None, true),
        ] {
            index.domain_seen(None, Some(&one));
        }

        assert_eq!(around(&index, "www.eu.example.com"), ["Eu-Example-com", "example-com", "other-org"]);
        assert_eq!(around(&index, "*.example.com"), ["example-com", "other-org"]);
        index.domain_seen(Some(&domain("example.com", None, false)), None);
        assert_eq!(around(&index, "www.example.com"), ["other-org"]);
    }

    #[test]
    fn finding_21_the_domains_that_a_pass_looks_at_do_not_grow_with_the_others() {
        let looked_at = |size: usize| {
            let index = LookupIndex::default();
            for number in 0..size {
                index.domain_seen(None, Some(&domain(&format!("zone-{number}.example"), Some("z"), false)));
            }
            (0..size).map(|number| around(&index, &format!("www.zone-{number}.example")).len()).sum::<usize>()
        };

        assert_eq!((looked_at(100), looked_at(1_000)), (100, 1_000));
    }
}
