//! A pod → the `ConfigMap`s, Secrets, claims and tokens that it names; and those objects, for who reads them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, PersistentVolumeClaim, Pod, Secret, Volume};

use super::containers::containers;

/// What a pod names in its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodReferences {
    /// `ConfigMap`s by name.
    pub config_maps: BTreeSet<String>,
    /// Secrets by name.
    pub secrets: BTreeSet<String>,
    /// Claims by name.
    pub claims: BTreeSet<String>,
    /// Tokens of its service account.
    pub tokens: BTreeSet<TokenWish>,
}

/// A token of the pod's service account that a projected volume asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenWish {
    /// Whom it is for; the API server where it says nothing.
    pub audience: Option<String>,
    /// How long it lives.
    pub seconds: i64,
}

impl TokenWish {
    /// When a token is replaced, counted from when it was made: after four fifths of its life, and after a day at the latest
    /// (`token/token_manager.go`, `requiresRefresh`).
    pub fn renewed_after(&self) -> SignedDuration {
        SignedDuration::from_secs(self.seconds / 5 * 4).min(SignedDuration::from_hours(24))
    }
}

/// The objects that pods of a namespace name, as far as they are there.
#[derive(Clone, Debug, Default)]
pub struct PodSources {
    /// `ConfigMap`s by name.
    pub config_maps: BTreeMap<String, ConfigMap>,
    /// Secrets by name.
    pub secrets: BTreeMap<String, Secret>,
    /// Claims by name.
    pub claims: BTreeMap<String, PersistentVolumeClaim>,
    /// Variables that tell where services are.
    pub services: BTreeMap<String, String>,
    /// Tokens that were made for the pod.
    pub tokens: BTreeMap<TokenWish, String>,
    /// The node's own address.
    pub host_address: String,
    /// The pod's address, where it has one.
    pub pod_address: Option<String>,
}

/// What the pod names.
pub fn references(pod: &Pod) -> PodReferences {
    let mut found = PodReferences::default();
    for container in containers(pod) {
        found.of_environment(container.spec);
    }
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        found.of_volume(volume);
    }
    found
}

/// How a projection of a token says what it wants; an hour where it says nothing.
pub fn token_wish(audience: Option<&str>, seconds: Option<i64>) -> TokenWish {
    TokenWish {
        audience: audience.filter(|text| !text.is_empty()).map(str::to_owned),
        seconds: seconds.unwrap_or(3600),
    }
}

impl PodReferences {
    fn of_environment(&mut self, container: &Container) {
        for source in container.env_from.iter().flatten() {
            self.config_maps.extend(source.config_map_ref.iter().map(|one| one.name.clone()));
            self.secrets.extend(source.secret_ref.iter().map(|one| one.name.clone()));
        }
        for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            self.of_value(source);
        }
    }

    fn of_value(&mut self, source: &EnvVarSource) {
        self.config_maps.extend(source.config_map_key_ref.iter().map(|one| one.name.clone()));
        self.secrets.extend(source.secret_key_ref.iter().map(|one| one.name.clone()));
    }

    fn of_volume(&mut self, volume: &Volume) {
        self.config_maps.extend(volume.config_map.iter().map(|one| one.name.clone()));
        self.secrets.extend(volume.secret.iter().filter_map(|one| one.secret_name.clone()));
        self.claims.extend(volume.persistent_volume_claim.iter().map(|one| one.claim_name.clone()));
        for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
            self.config_maps.extend(source.config_map.iter().map(|one| one.name.clone()));
            self.secrets.extend(source.secret.iter().map(|one| one.name.clone()));
            let tokens = source.service_account_token.iter();
            self.tokens.extend(tokens.map(|one| token_wish(one.audience.as_deref(), one.expiration_seconds)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::json;

    #[test]
    fn a_token_is_replaced_before_it_expires_and_every_day() {
        let after = |seconds| token_wish(None, Some(seconds)).renewed_after().as_secs();

        assert_eq!([600, 3600, 30 * 3600].map(after), [480, 2880, 24 * 3600]);
        assert_eq!(after(365 * 86_400), 24 * 3600);
    }

    fn names(found: &BTreeSet<String>) -> Vec<&str> {
        found.iter().map(String::as_str).collect()
    }

    #[test]
    fn everything_that_variables_and_volumes_name_is_found_once() {
        let pod = pod(json!({
            "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "s1"}}]}],
            "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "m1"}}], "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m1", "key": "k"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
            ]}],
            "volumes": [
                {"name": "a", "configMap": {"name": "m2"}}, {"name": "b", "secret": {"secretName": "s3"}},
                {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "e", "projected": {"sources": [
                    {"configMap": {"name": "m3"}}, {"secret": {"name": "s1"}},
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]}},
            ],
        }));

        let found = references(&pod);

        assert_eq!(names(&found.config_maps), ["m1", "m2", "m3"]);
        assert_eq!(names(&found.secrets), ["s1", "s2", "s3"]);
        assert_eq!(names(&found.claims), ["data"]);
        assert_eq!(found.tokens.into_iter().collect::<Vec<_>>(), [TokenWish { audience: None, seconds: 3607 }]);
    }
}
