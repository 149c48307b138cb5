//! Owners of `spec.replicas` ↔ owners of a `Scale`, which is another view of the same number.

use serde_json::{Value, json};

use crate::ssa::managed::{self, Managed, ManagedEntry};
use crate::ssa::path::PathElement;
use crate::ssa::set::FieldSet;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Where the number of replicas stands in the object, and in which version the request sees the object.
#[derive(Clone, Copy, Debug)]
pub struct Replicas<'a> {
    /// The object's version, as `apps/v1`.
    pub api_version: &'a str,
    /// The names that lead to the number, as `["spec", "replicas"]`.
    pub path: &'a [&'a str],
}

impl Replicas<'_> {
    fn elements(&self) -> Vec<PathElement> {
        self.path.iter().map(|name| PathElement::field(name)).collect()
    }
}

/// The object's owners of the number → `managedFields` of its `Scale`, to be kept in it while it is written.
pub fn to_scale(object: &Value, replicas: Replicas<'_>) -> Vec<Value> {
    let path = replicas.elements();
    let owners = Managed::of(object).unwrap_or_default();
    let owners: Vec<ManagedEntry> =
        owners.entries.into_values().filter(|entry| entry.set.contains(&path)).map(in_scale).collect();
    managed::encode(owners.iter().collect())
}

fn in_scale(entry: ManagedEntry) -> ManagedEntry {
    ManagedEntry { api_version: SCALE_VERSION.to_owned(), set: FieldSet::of_fields(&[&["spec", "replicas"]]), ..entry }
}

/// `managedFields` of a written `Scale` → those of its object: who took the number owns it now.
///
/// As on the real server, what comes from the `Scale` has no time, and an updater who keeps the number has two
/// entries from then on.
pub fn to_object(object: &Value, scale: &[Value], replicas: Replicas<'_>) -> Vec<Value> {
    let path = replicas.elements();
    let mut number = FieldSet::default();
    number.insert(&path);
    let owners = Managed::of(object).unwrap_or_default();
    let mut takers = Managed::of(&json!({"metadata": {"managedFields": scale}})).unwrap_or_default();
    let mut entries = Vec::new();
    for (identifier, entry) in &owners.entries {
        let mut entry = entry.clone();
        if entry.set.contains(&path) && takers.entries.remove(identifier).is_none() {
            entry.set = entry.set.difference(&number);
        }
        entries.extend((!entry.set.is_empty()).then_some(entry));
    }
    let in_scale = [PathElement::field("spec"), PathElement::field("replicas")];
    for (identifier, entry) in takers.entries.into_iter().filter(|(_, entry)| entry.set.contains(&in_scale)) {
        let time = owners.entries.get(&identifier).and_then(|known| known.time.clone());
        entries.push(ManagedEntry { api_version: replicas.api_version.to_owned(), set: number.clone(), time, ..entry });
    }
    managed::encode(entries.iter().collect())
}
