//! Zones, instances and clusters → which instances have a zone, which of them it is written to, and which zones stand in each other's way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use portolan_core::{ObjectKey, ZoneName, allow};

use crate::kinds::{Bind9Instance, DNSZone, DNSZoneSpec, ServerRole};
use crate::names;
use crate::validate::zone_name;
use kube::ResourceExt as _;

/// What is known of an instance when zones look for theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCandidate {
    /// The instance.
    pub key: ObjectKey,
    /// What it does for zones.
    pub role: ServerRole,
    /// The cluster or provider that it names.
    pub cluster: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Namespaces whose zones it serves besides its own.
    pub allowed: Vec<String>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whether it is on its way out.
    pub leaving: bool,
}

impl ServerCandidate {
    /// What is known of an instance. `provider_allows` is what its provider says for all of its instances.
    pub fn of(instance: &Bind9Instance, provider_allows: Option<&str>) -> Self {
        let own = instance.annotations().get(names::ALLOW_ZONE_NAMESPACES).map(String::as_str);
        let allowed = own.into_iter().chain(provider_allows).flat_map(|list| list.split(','));
        Self {
            key: instance.key(),
            role: instance.spec.role,
            cluster: instance.cluster_name().map(str::to_owned),
            labels: instance.selectable_labels(),
            allowed: allowed.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
            created: instance.metadata.creation_timestamp.as_ref().map(|time| time.0),
            leaving: instance.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Whether it serves zones of a namespace.
    pub fn serves(&self, namespace: &str) -> bool {
        self.key.namespace.as_deref() == Some(namespace) || allow::names_namespace(&self.allowed, namespace)
    }
}

/// What a zone's `clusterRef` means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterMeant {
    /// The cluster in the zone's namespace.
    Cluster,
    /// The provider, and with it the clusters of all namespaces.
    Provider,
    /// Neither is there; instances of the namespace may name it all the same.
    Nothing,
}

/// The instances of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneServers {
    /// The one that it is written to.
    pub writer: Option<ObjectKey>,
    /// Others with the role of a primary, which follow the writer.
    pub primaries: BTreeSet<ObjectKey>,
    /// Those with the role of a secondary.
    pub secondaries: BTreeSet<ObjectKey>,
    /// Those that are selected and do not serve zones of this namespace.
    pub denied: BTreeSet<ObjectKey>,
}

impl ZoneServers {
    /// All that have the zone.
    pub fn all(&self) -> BTreeSet<ObjectKey> {
        self.writer.iter().chain(&self.primaries).chain(&self.secondaries).cloned().collect()
    }

    /// All that follow the writer.
    pub fn followers(&self) -> impl Iterator<Item = &ObjectKey> {
        self.primaries.iter().chain(&self.secondaries)
    }

    /// How many have the role of a primary.
    pub fn primary_count(&self) -> usize {
        self.primaries.len() + usize::from(self.writer.is_some())
    }

    /// Why nobody has the zone, where nobody does.
    pub fn lack(&self, zone: &DNSZone) -> Option<String> {
        if self.primary_count() > 0 {
            return None;
        }
        let namespace = zone.key().namespace.unwrap_or_default();
        if let Some(denied) = self.denied.first() {
            return Some(format!(
                "Bind9Instance {denied} is selected and serves no zones of namespace {namespace}; annotate it with {}: {namespace}",
                names::ALLOW_ZONE_NAMESPACES
            ));
        }
        if !self.secondaries.is_empty() {
            return Some("No primary servers found - cannot configure secondary zones".to_owned());
        }
        let spec = &zone.spec;
        Some(match (&spec.cluster_ref, &spec.bind9_instances_from) {
            (None, None) => {
                "Neither clusterRef nor bind9InstancesFrom says which servers have the zone; write one of them"
                    .to_owned()
            }
            (Some(cluster), None) => {
                format!("Cluster {cluster} has no primary instances; give it some, or correct clusterRef")
            }
            (_, Some(_)) => "No primary instance is selected; label some as bind9InstancesFrom selects them".to_owned(),
        })
    }
}

/// The instances of a zone: all of its cluster, and those that it selects by their labels. `written_so_far` stays the writer while it can,
/// so that the line of serials stays one.
pub fn servers<'a>(
    zone: &DNSZone,
    meant: &ClusterMeant,
    candidates: impl IntoIterator<Item = &'a ServerCandidate>,
    written_so_far: Option<&ObjectKey>,
) -> ZoneServers {
    let namespace = zone.namespace().unwrap_or_default();
    let mut found = ZoneServers::default();
    let mut primaries: Vec<&ServerCandidate> = Vec::new();
    for one in candidates.into_iter().filter(|one| !one.leaving && is_selected(&zone.spec, &namespace, meant, one)) {
        match one.role {
            _ if !one.serves(&namespace) => drop(found.denied.insert(one.key.clone())),
            ServerRole::Primary => primaries.push(one),
            ServerRole::Secondary => drop(found.secondaries.insert(one.key.clone())),
        }
    }
    let eldest = || {
        primaries.iter().min_by_key(|one| (one.created.unwrap_or(Timestamp::MAX), &one.key)).map(|one| one.key.clone())
    };
    let stays = written_so_far.filter(|key| primaries.iter().any(|one| one.key == **key)).cloned();
    found.writer = stays.or_else(eldest);
    found.primaries =
        primaries.iter().map(|one| one.key.clone()).filter(|key| Some(key) != found.writer.as_ref()).collect();
    found
}

fn is_selected(spec: &DNSZoneSpec, namespace: &str, meant: &ClusterMeant, one: &ServerCandidate) -> bool {
    let here = one.key.namespace.as_deref() == Some(namespace);
    let of_cluster =
        spec.cluster_ref.as_deref().is_some_and(|name| !name.is_empty() && one.cluster.as_deref() == Some(name));
    let by_cluster = of_cluster && (here || *meant == ClusterMeant::Provider);
    by_cluster || spec.bind9_instances_from.iter().flatten().any(|source| source.selector.selects(&one.labels))
}

/// A zone as others see it that may have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RivalZone {
    /// The object.
    pub key: ObjectKey,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Its instances.
    pub servers: BTreeSet<ObjectKey>,
    /// Whether it is on its way out.
    pub leaving: bool,
}

/// The zones that keep this one from being served: of the same name, older, and on a server of this one's. Of two that were made in the same
/// second the first by key is the older.
pub fn elders<'a>(zone: &RivalZone, others: impl IntoIterator<Item = &'a RivalZone>) -> Vec<ObjectKey> {
    let age = |one: &RivalZone| (one.created.unwrap_or(Timestamp::MAX), one.key.clone());
    let own = age(zone);
    let meets = |one: &RivalZone| !one.servers.is_disjoint(&zone.servers);
    let mut all: Vec<ObjectKey> = others
        .into_iter()
        .filter(|one| one.key != zone.key && !one.leaving && age(one) < own && meets(one))
        .map(|one| one.key.clone())
        .collect();
    all.sort();
    all
}

/// The name by which zones are the same.
pub fn claimed_name(spec: &DNSZoneSpec) -> Option<ZoneName> {
    zone_name(&spec.zone_name).ok()
}

/// What a zone that came second is told.
pub fn duplicate_message(zone: &str, elders: &[ObjectKey]) -> String {
    let names: Vec<String> = elders.iter().map(ToString::to_string).collect();
    format!("A zone with this name '{zone}' has already been declared in these BIND9 Instances: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing;

    fn candidate(
        key: &str,
        role: ServerRole,
        cluster: &str,
        tier: &str,
        allowed: &str,
        second: i64,
    ) -> ServerCandidate {
        let (namespace, name) = key.split_once('/').unwrap();
        ServerCandidate {
            key: ObjectKey::namespaced(namespace, name),
            role,
            cluster: Some(cluster.to_owned()).filter(|cluster| !cluster.is_empty()),
            labels: BTreeMap::from([("tier".to_owned(), tier.to_owned())]),
            allowed: allowed.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect(),
            created: Timestamp::from_second(second).ok(),
            leaving: false,
        }
    }

    fn all() -> Vec<ServerCandidate> {
        use ServerRole::{Primary, Secondary};
        vec![
            candidate("dns/p1", Primary, "main", "a", "", 2),
            candidate("dns/p0", Primary, "main", "a", "", 1),
            candidate("dns/s0", Secondary, "main", "b", "", 3),
            candidate("dns/alone", Primary, "", "c", "", 4),
            candidate("other/p", Primary, "main", "a", "team", 0),
            candidate("open/p", Primary, "far", "d", "*", 0),
        ]
    }

    fn found(spec: Value, meant: ClusterMeant) -> ZoneServers {
        servers(&testing::zone("dns", "z", spec), &meant, &all(), None)
    }

    fn names(keys: impl IntoIterator<Item = ObjectKey>) -> Vec<String> {
        keys.into_iter().map(|key| key.to_string()).collect()
    }

    fn from(tier: &str) -> Value {
        json!([{"selector": {"matchLabels": {"tier": tier}}}])
    }

    #[test]
    fn scenario_18_a_cluster_alone_means_all_of_its_instances_and_both_mean_the_union() {
        let by_cluster = found(json!({"clusterRef": "main"}), ClusterMeant::Cluster);
        assert_eq!(names(by_cluster.all()), ["dns/p0", "dns/p1", "dns/s0"]);
        assert_eq!(by_cluster.writer.unwrap().name, "p0", "the eldest is written to");

        let both = found(json!({"clusterRef": "main", "bind9InstancesFrom": from("c")}), ClusterMeant::Cluster);
        assert_eq!(names(both.all()), ["dns/alone", "dns/p0", "dns/p1", "dns/s0"]);
    }

    #[test]
    fn scenario_19_an_instance_elsewhere_has_to_let_the_namespace_in_and_the_message_says_how() {
        let denied = found(json!({"clusterRef": "main"}), ClusterMeant::Provider);
        assert_eq!(names(denied.denied.clone()), ["other/p"]);

        let nobody = servers(
            &testing::zone("team2", "z", json!({"bind9InstancesFrom": from("a")})),
            &ClusterMeant::Nothing,
            &all(),
            None,
        );
        let said = nobody.lack(&testing::zone("team2", "z", json!({}))).unwrap();
        assert!(said.contains("bindy.firestoned.io/allow-zone-namespaces: team2"), "{said}");

        let team = servers(
            &testing::zone("team", "z", json!({"bind9InstancesFrom": from("a")})),
            &ClusterMeant::Nothing,
            &all(),
            None,
        );
        assert_eq!(names(team.all()), ["other/p"]);
        assert_eq!(
            names(found(json!({"bind9InstancesFrom": from("d")}), ClusterMeant::Nothing).all()),
            ["open/p"],
            "* lets all in"
        );
    }

    #[test]
    fn a_zone_without_a_server_is_told_why() {
        for (spec, sentence) in [
            (json!({}), "Neither clusterRef nor bind9InstancesFrom"),
            (json!({"clusterRef": "none"}), "Cluster none has no primary instances"),
            (json!({"bind9InstancesFrom": from("x")}), "No primary instance is selected"),
            (json!({"bind9InstancesFrom": from("b")}), "No primary servers found - cannot configure secondary zones"),
        ] {
            let said = found(spec.clone(), ClusterMeant::Nothing).lack(&testing::zone("dns", "z", spec)).unwrap();
            assert!(said.contains(sentence), "{said}");
        }
    }

    #[test]
    fn the_writer_stays_while_it_can_and_no_instance_that_is_leaving_is_chosen() {
        let zone = testing::zone("dns", "z", json!({"clusterRef": "main"}));
        let so_far = ObjectKey::namespaced("dns", "p1");
        let mut candidates = all();

        let kept = servers(&zone, &ClusterMeant::Cluster, &candidates, Some(&so_far));
        assert_eq!(kept.writer.as_ref(), Some(&so_far));
        assert_eq!(names(kept.primaries), ["dns/p0"]);

        candidates[0].leaving = true;
        let moved = servers(&zone, &ClusterMeant::Cluster, &candidates, Some(&so_far));
        assert_eq!(names(moved.all()), ["dns/p0", "dns/s0"]);
    }

    fn rival(name: &str, second: i64, servers: &[&str]) -> RivalZone {
        RivalZone {
            key: testing::key(name),
            created: Timestamp::from_second(second).ok(),
            servers: servers.iter().map(|name| testing::key(name)).collect(),
            leaving: false,
        }
    }

    #[test]
    fn scenario_24_of_two_zones_of_one_second_exactly_one_wins_and_its_end_lets_the_other_in() {
        let (a, b) = (rival("a", 1, &["p"]), rival("b", 1, &["p", "q"]));

        assert_eq!((elders(&a, [&b]), elders(&b, [&a])), (Vec::new(), vec![testing::key("a")]));
        assert_eq!(elders(&b, [&RivalZone { leaving: true, ..a }]), Vec::new());
        assert_eq!(
            duplicate_message("example.com", &[testing::key("a")]),
            "A zone with this name 'example.com' has already been declared in these BIND9 Instances: dns/a"
        );
    }

    #[test]
    fn scenario_26_the_same_name_on_servers_of_its_own_is_no_duplicate() {
        assert_eq!(elders(&rival("b", 2, &["q"]), [&rival("a", 1, &["p"])]), Vec::new());
    }

    proptest! {
        #[test]
        fn of_zones_that_share_a_server_exactly_one_has_no_elder(seconds in proptest::collection::vec(0i64..3, 1..8)) {
            let zones: Vec<RivalZone> = seconds.iter().enumerate().map(|(index, second)| rival(&format!("z{index}"), *second, &["p"])).collect();

            let winners = zones.iter().filter(|zone| elders(zone, &zones).is_empty()).count();

            prop_assert_eq!(winners, 1);
        }

        #[test]
        fn the_order_of_instances_changes_nothing(order in Just(all()).prop_shuffle()) {
            let zone = testing::zone("dns", "z", json!({"clusterRef": "main"}));

            prop_assert_eq!(servers(&zone, &ClusterMeant::Cluster, &order, None), servers(&zone, &ClusterMeant::Cluster, &all(), None));
        }
    }
}
