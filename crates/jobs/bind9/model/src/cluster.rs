//! A cluster, and the instances that are there → those that are to be there, and how the cluster stands.
//! A provider, and where it is used → the clusters that are to be there.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use portolan_core::condition::READY;
use portolan_core::{ConditionStatus, NewCondition, ObjectKey};
use serde_json::{Map, Value, json};

use crate::kinds::{Bind9Cluster, ClusterBind9Provider, CommonClusterSpec, RoleConfig, ServerRole};
use crate::names;
use crate::reasons;

/// Most instances of a role.
const MOST: i32 = 100;

/// The instances that a cluster is to have, in order.
pub fn instances(cluster: &Bind9Cluster) -> Vec<Value> {
    let common = &cluster.spec.common;
    ServerRole::ALL
        .into_iter()
        .flat_map(|role| (0..count(common, role)).map(move |index| instance(cluster, role, index)))
        .collect()
}

/// How many instances of a role a cluster is to have.
pub fn count(common: &CommonClusterSpec, role: ServerRole) -> i32 {
    of_role(common, role).and_then(|config| config.replicas).unwrap_or_default().clamp(0, MOST)
}

fn of_role(common: &CommonClusterSpec, role: ServerRole) -> Option<&RoleConfig> {
    match role {
        ServerRole::Primary => common.primary.as_ref(),
        ServerRole::Secondary => common.secondary.as_ref(),
    }
}

fn instance(cluster: &Bind9Cluster, role: ServerRole, index: i32) -> Value {
    let (name, common) = (cluster.name_any(), &cluster.spec.common);
    let owner = json!({
        "apiVersion": names::API_VERSION, "kind": "Bind9Cluster", "name": name,
        "uid": cluster.uid().unwrap_or_default(), "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": names::API_VERSION, "kind": "Bind9Instance",
        "metadata": {
            "name": names::instance(&name, role.as_str(), index), "namespace": cluster.namespace(),
            "labels": labels(&name, common, role), "annotations": {(names::INSTANCE_INDEX): index.to_string()},
            "ownerReferences": [owner],
        },
        "spec": copied(&name, common, role),
    })
}

/// Labels of a cluster's instances; what the user says of a role goes before, but for those by which they are found again.
fn labels(cluster: &str, common: &CommonClusterSpec, role: ServerRole) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([(names::PART_OF.to_owned(), "bindy".to_owned())]);
    all.extend(of_role(common, role).and_then(|config| config.labels.clone()).into_iter().flatten());
    all.extend([
        (names::MANAGED_BY.to_owned(), "Bind9Cluster".to_owned()),
        (names::CLUSTER.to_owned(), cluster.to_owned()),
        (names::ROLE.to_owned(), role.as_str().to_owned()),
    ]);
    all
}

/// What instances say of themselves; the rest they have from their cluster, field by field. These fields are copied since older tools read
/// them there.
fn copied(cluster: &str, common: &CommonClusterSpec, role: ServerRole) -> Value {
    let sidecar = common.global.as_ref().and_then(|global| global.bindcar_config.as_ref());
    let fields = [
        ("version", json!(common.version)),
        ("image", json!(common.image)),
        ("configMapRefs", json!(common.config_map_refs)),
        ("volumes", json!(common.volumes)),
        ("volumeMounts", json!(common.volume_mounts)),
        ("bindcarConfig", json!(sidecar)),
    ];
    let mut spec = Map::from_iter(
        [("clusterRef", json!(cluster)), ("role", json!(role)), ("replicas", json!(1))]
            .map(|(name, value)| (name.to_owned(), value)),
    );
    spec.extend(fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)));
    Value::Object(spec)
}

/// The instances that a cluster made and is to have no longer, the highest number of each role first. Those that a user made stay.
pub fn surplus<'a>(
    cluster: &Bind9Cluster,
    there: impl IntoIterator<Item = (&'a str, &'a BTreeMap<String, String>)>,
) -> Vec<String> {
    let name = cluster.name_any();
    let wanted: BTreeSet<String> =
        instances(cluster).iter().filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)).collect();
    let is_ours = |labels: &BTreeMap<String, String>| {
        labels.get(names::MANAGED_BY).is_some_and(|by| by == "Bind9Cluster")
            && labels.get(names::CLUSTER) == Some(&name)
    };
    let all = there.into_iter().filter(|(one, labels)| is_ours(labels) && !wanted.contains(*one));
    let mut all: Vec<String> = all.map(|(one, _)| one.to_owned()).collect();
    all.sort_by_key(|one| std::cmp::Reverse(number(one)));
    all
}

fn number(instance: &str) -> (i32, String) {
    let (role, index) = instance.rsplit_once('-').unwrap_or((instance, ""));
    (index.parse().unwrap_or(i32::MAX), role.to_owned())
}

/// An instance that belongs to a cluster or provider, and whether it is ready.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Child {
    /// The instance.
    pub key: ObjectKey,
    /// Whether it is ready.
    pub ready: bool,
}

/// How a cluster or provider stands by what belongs to it.
pub fn readiness(children: &[Child]) -> NewCondition {
    let (all, ready) = (children.len(), children.iter().filter(|child| child.ready).count());
    match (all, ready) {
        (0, _) => NewCondition::not_ready(
            reasons::NO_CHILDREN,
            "There are no instances: set primary.replicas and secondary.replicas",
        ),
        (all, ready) if ready == all => {
            NewCondition::ready(reasons::ALL_READY, format!("All {all} instances are ready"))
        }
        (all, 0) => NewCondition::not_ready(reasons::NOT_READY, format!("0/{all} instances are ready")),
        (all, ready) => NewCondition::not_ready(reasons::PARTIALLY_READY, format!("{ready}/{all} instances are ready")),
    }
}

/// A condition for each instance: `Bind9Instance-0` and on, in the order of their names. Types of conditions are words that live as long as
/// the program, so there is a table of them.
pub fn child_conditions(children: &[Child]) -> Vec<NewCondition> {
    let mut sorted: Vec<&Child> = children.iter().collect();
    sorted.sort();
    let condition = |(kind, child): (&'static str, &Child)| {
        let (status, reason, word) = if child.ready {
            (ConditionStatus::True, reasons::CHILD_READY, "is")
        } else {
            (ConditionStatus::False, reasons::NOT_READY, "is not")
        };
        NewCondition::of(kind, status, reason, format!("Instance {} {word} ready", child.key.name))
    };
    CHILD_TYPES.iter().copied().zip(sorted).map(condition).collect()
}

/// Types of conditions of instances, as many as are told one by one.
pub const CHILD_TYPES: [&str; 16] = [
    "Bind9Instance-0",
    "Bind9Instance-1",
    "Bind9Instance-2",
    "Bind9Instance-3",
    "Bind9Instance-4",
    "Bind9Instance-5",
    "Bind9Instance-6",
    "Bind9Instance-7",
    "Bind9Instance-8",
    "Bind9Instance-9",
    "Bind9Instance-10",
    "Bind9Instance-11",
    "Bind9Instance-12",
    "Bind9Instance-13",
    "Bind9Instance-14",
    "Bind9Instance-15",
];

/// What a cluster's or provider's status shows besides its conditions.
pub fn counts(children: &[Child], name: impl Fn(&ObjectKey) -> String) -> Value {
    let mut names: Vec<String> = children.iter().map(|child| name(&child.key)).collect();
    names.sort();
    json!({
        "instanceCount": children.len(), "readyInstances": children.iter().filter(|child| child.ready).count(), "instances": names,
    })
}

/// The clusters that a provider is to have: one of its name in each namespace whose instances name it, or in its own where none does.
pub fn clusters(provider: &ClusterBind9Provider, used_in: &BTreeSet<String>, operator_namespace: &str) -> Vec<Value> {
    let own = provider.spec.namespace.clone().unwrap_or_else(|| operator_namespace.to_owned());
    let namespaces = if used_in.is_empty() { BTreeSet::from([own]) } else { used_in.clone() };
    namespaces.iter().map(|namespace| cluster(provider, namespace)).collect()
}

fn cluster(provider: &ClusterBind9Provider, namespace: &str) -> Value {
    let name = provider.name_any();
    let owner = json!({
        "apiVersion": names::API_VERSION, "kind": "ClusterBind9Provider", "name": name,
        "uid": provider.uid().unwrap_or_default(), "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": names::API_VERSION, "kind": "Bind9Cluster",
        "metadata": {
            "name": name, "namespace": namespace, "ownerReferences": [owner],
            "labels": {(names::MANAGED_BY): "ClusterBind9Provider", (names::CLUSTER): name},
        },
        "spec": provider.spec.common,
    })
}

/// Whether the type of a condition is one of READY's, of an instance's, or of nobody's.
pub fn is_child_type(kind: &str) -> bool {
    kind != READY && kind.starts_with("Bind9Instance-")
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    fn cluster_of(spec: Value) -> Bind9Cluster {
        from_value(json!({"metadata": {"name": "c", "namespace": "dns", "uid": "u"}, "spec": spec})).unwrap()
    }

    fn names_of(objects: &[Value]) -> Vec<&str> {
        objects.iter().filter_map(|one| one["metadata"]["name"].as_str()).collect()
    }

    #[test]
    fn scenario_13_instances_have_their_numbers_labels_owner_and_annotation() {
        let made = instances(&cluster_of(
            json!({"version": "9.18", "primary": {"replicas": 2, "labels": {"tier": "dns"}}, "secondary": {"replicas": 1}}),
        ));

        assert_eq!(names_of(&made), ["c-primary-0", "c-primary-1", "c-secondary-0"]);
        let one = &made[1];
        assert_eq!(one["metadata"]["annotations"][names::INSTANCE_INDEX], "1");
        assert_eq!(one["metadata"]["ownerReferences"][0]["kind"], "Bind9Cluster");
        assert_eq!(
            one["metadata"]["labels"],
            json!({"app.kubernetes.io/part-of": "bindy", "bindy.firestoned.io/cluster": "c", "bindy.firestoned.io/managed-by": "Bind9Cluster",
                   "bindy.firestoned.io/role": "primary", "tier": "dns"})
        );
        assert_eq!(one["spec"], json!({"clusterRef": "c", "role": "primary", "replicas": 1, "version": "9.18"}));
    }

    #[test]
    fn scenario_14_and_15_surplus_instances_go_the_highest_first_and_those_that_a_user_made_stay() {
        let before = cluster_of(json!({"primary": {"replicas": 12}, "secondary": {"replicas": 1}}));
        let made = instances(&before);
        let labelled: Vec<(String, BTreeMap<String, String>)> = made
            .iter()
            .map(|one| {
                (
                    one["metadata"]["name"].as_str().unwrap().to_owned(),
                    from_value(one["metadata"]["labels"].clone()).unwrap(),
                )
            })
            .collect();
        let by_hand = ("hand".to_owned(), BTreeMap::from([(names::CLUSTER.to_owned(), "c".to_owned())]));
        let there = || labelled.iter().chain([&by_hand]).map(|(name, labels)| (name.as_str(), labels));

        assert_eq!(
            surplus(&cluster_of(json!({"primary": {"replicas": 10}, "secondary": {"replicas": 1}})), there()),
            ["c-primary-11", "c-primary-10"]
        );
        let none = surplus(&cluster_of(json!({})), there());
        assert_eq!((none.len(), none[0].as_str()), (13, "c-primary-11"));
        assert!(!none.contains(&"hand".to_owned()));
        assert_eq!(surplus(&before, there()), Vec::<String>::new());
    }

    #[test]
    fn scenario_16_labels_of_a_role_are_on_its_instances_and_never_hide_them() {
        let labels = json!({"a": "b", "bindy.firestoned.io/cluster": "other", "app.kubernetes.io/part-of": "mine"});
        let made = instances(&cluster_of(json!({"primary": {"replicas": 1, "labels": labels}})));

        let labels = &made[0]["metadata"]["labels"];
        assert_eq!(
            (&labels["a"], &labels[names::CLUSTER], &labels[names::PART_OF]),
            (&json!("b"), &json!("c"), &json!("mine"))
        );
    }

    fn child(name: &str, ready: bool) -> Child {
        Child { key: ObjectKey::namespaced("dns", name), ready }
    }

    #[test]
    fn how_a_cluster_stands_is_said_in_the_known_words() {
        let said = |children: &[Child]| {
            let condition = readiness(children);
            format!("{}/{} {}", condition.status.as_str(), condition.reason, condition.message)
        };

        assert!(said(&[]).starts_with("False/NoChildren"));
        assert_eq!(said(&[child("a", true), child("b", true)]), "True/AllReady All 2 instances are ready");
        assert_eq!(said(&[child("a", true), child("b", false)]), "False/PartiallyReady 1/2 instances are ready");
        assert_eq!(said(&[child("a", false)]), "False/NotReady 0/1 instances are ready");
    }

    #[test]
    fn each_instance_has_a_condition_in_the_order_of_names() {
        let conditions = child_conditions(&[child("b", false), child("a", true)]);
        let said: Vec<String> = conditions
            .iter()
            .map(|one| format!("{}={}/{} {}", one.r#type, one.status.as_str(), one.reason, one.message))
            .collect();

        assert_eq!(
            said,
            [
                "Bind9Instance-0=True/Ready Instance a is ready",
                "Bind9Instance-1=False/NotReady Instance b is not ready"
            ]
        );
        let many: Vec<Child> = (0..100).map(|number| child(&format!("i{number}"), true)).collect();
        assert_eq!(child_conditions(&many).len(), CHILD_TYPES.len());
    }

    #[test]
    fn scenario_17_a_provider_has_a_cluster_where_it_is_used_or_in_the_operators_namespace() {
        let provider = |spec: Value| -> ClusterBind9Provider {
            from_value(json!({"metadata": {"name": "p", "uid": "u"}, "spec": spec})).unwrap()
        };
        let places = |provider: &ClusterBind9Provider, used: &[&str]| -> Vec<String> {
            let used = used.iter().map(|name| (*name).to_owned()).collect();
            clusters(provider, &used, "bindy-system")
                .iter()
                .map(|one| one["metadata"]["namespace"].as_str().unwrap().to_owned())
                .collect()
        };

        assert_eq!(places(&provider(json!({})), &[]), ["bindy-system"]);
        assert_eq!(places(&provider(json!({"namespace": "dns"})), &[]), ["dns"]);
        assert_eq!(places(&provider(json!({"namespace": "dns"})), &["b", "a"]), ["a", "b"]);
        let made = clusters(&provider(json!({"version": "9.18", "namespace": "dns"})), &BTreeSet::new(), "x");
        assert_eq!(made[0]["spec"], json!({"version": "9.18"}));
    }
}
