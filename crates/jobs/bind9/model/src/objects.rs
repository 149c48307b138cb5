//! What holds for a server, and its files → the objects that it is made of, in the order in which they are made.
//!
//! ```text
//! ServiceAccount ─▶ Secret ─▶ ConfigMap ─▶ Deployment or StatefulSet ─▶ Service, control Service ─▶ PodDisruptionBudget
//! ```

mod pod;
mod secret;
mod service;
mod stamp;
mod workload;

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::conf::ServerFiles;
use crate::keys::StoredKeys;
use crate::kinds::Bind9Instance;
use crate::names;
use crate::settings::ServerSettings;

pub use secret::secret_name;
pub use stamp::{stamped, stands};
pub use workload::{Workload, workload_of};

/// Everything that the objects of a server follow from.
#[derive(Clone, Debug)]
pub struct ObjectSet<'a> {
    /// The instance.
    pub instance: &'a Bind9Instance,
    /// What holds for it.
    pub settings: &'a ServerSettings,
    /// Its files.
    pub files: &'a ServerFiles,
    /// Its keys, as they are stored.
    pub keys: &'a StoredKeys,
    /// The selector of the workload that is there: it can never change, and older operators put all labels into it.
    pub selector: Option<BTreeMap<String, String>>,
    /// Whether pods are ready only once somebody says that they have all zones.
    pub gate: ReadyWhen,
}

/// What makes a pod ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadyWhen {
    /// That it answers.
    #[default]
    Answers,
    /// That it answers, and has all zones that it is to have.
    ZonesLoaded,
}

/// The objects of a server, in order.
pub fn objects(set: &ObjectSet<'_>) -> Vec<Value> {
    let mut all = vec![service_account(set), secret::secret(set), config_map(set), workload::workload(set)];
    all.extend([service::service(set), service::control(set)]);
    all.push(disruption_budget(set));
    all
}

/// Labels of all objects of a server, and of its pods.
pub fn labels(instance: &Bind9Instance) -> BTreeMap<String, String> {
    let name = instance.name_any();
    let own = instance.labels();
    let managed_by = own.get(names::MANAGED_BY).map_or("Bind9Instance", String::as_str);
    let mut all = BTreeMap::from([
        ("app".to_owned(), "bind9".to_owned()),
        ("instance".to_owned(), name.clone()),
        ("app.kubernetes.io/name".to_owned(), "bind9".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), name),
        ("app.kubernetes.io/component".to_owned(), "dns-server".to_owned()),
        (names::PART_OF.to_owned(), "bindy".to_owned()),
        ("app.kubernetes.io/managed-by".to_owned(), managed_by.to_owned()),
    ]);
    for label in [names::ROLE, names::CLUSTER] {
        all.extend(own.get(label).map(|value| (label.to_owned(), value.clone())));
    }
    all
}

/// The labels by which pods of a server are found. They never change, since selectors cannot.
pub fn selector(instance: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), "bind9".to_owned()), ("instance".to_owned(), instance.to_owned())])
}

/// What is common to the metadata of a server's objects: its owner takes them along.
fn metadata(set: &ObjectSet<'_>, name: &str) -> Value {
    let instance = set.instance;
    let owner = json!({
        "apiVersion": names::API_VERSION, "kind": "Bind9Instance", "name": instance.name_any(),
        "uid": instance.uid().unwrap_or_default(), "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "name": name, "namespace": instance.namespace(), "labels": labels(instance), "ownerReferences": [owner],
    })
}

/// One for all servers of a namespace: it belongs to none of them, and may do nothing.
fn service_account(set: &ObjectSet<'_>) -> Value {
    let labels = json!({"app.kubernetes.io/name": "bind9", "app.kubernetes.io/component": "dns-server", (names::PART_OF): "bindy"});
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": names::SERVICE_ACCOUNT, "namespace": set.instance.namespace(), "labels": labels},
    })
}

fn config_map(set: &ObjectSet<'_>) -> Value {
    let name = names::config_map(&set.instance.name_any());
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(set, &name), "data": set.files.plain})
}

/// Of a server's pods one at a time may be taken down; of a cluster's, its own budget says so too.
fn disruption_budget(set: &ObjectSet<'_>) -> Value {
    let name = set.instance.name_any();
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(set, &name),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(&name)}},
    })
}

#[cfg(test)]
mod tests;
