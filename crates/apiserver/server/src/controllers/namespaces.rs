//! Namespaces that go: everything in them is deleted, then their own finalizer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{call, edit};
use crate::api::Api;
use crate::call::{DeleteOptions, Propagation};
use crate::object;
use crate::registry::Resource;
use crate::status::ApiError;
use crate::store::{Event, EventKind, Range, StoredObject};
use crate::strategy::ObjectPart;

const MANAGER: &str = "kube-controller-manager";
const FINALIZER: &str = "kubernetes";

/// Follows namespaces and, while one goes, what is in it.
pub(crate) async fn run(api: Arc<Api>, mut events: UnboundedReceiver<Arc<Event>>) {
    let Some(namespaces) = api.registry().find("", "v1", "namespaces").cloned() else {
        return;
    };
    let mut controller = NamespaceController { api, namespaces, going: BTreeSet::new() };
    controller.resume().await;
    while let Some(event) = events.recv().await {
        controller.see(&event).await;
    }
}

struct NamespaceController {
    api: Arc<Api>,
    namespaces: Arc<Resource>,
    going: BTreeSet<String>,
}

impl NamespaceController {
    /// Goes on with what was going when the server stopped.
    async fn resume(&mut self) {
        let range = Range { collection: &self.namespaces.collection, prefix: "", after: "", at: None };
        let all = self.api.store.list(&range).map(|l| l.objects).unwrap_or_default();
        for stored in all {
            self.reconcile(stored.key.name()).await;
        }
    }

    async fn see(&mut self, event: &Event) {
        let key = &event.object.key;
        if key.collection == self.namespaces.collection {
            if event.kind == EventKind::Deleted {
                self.going.remove(key.name());
            } else {
                self.reconcile(key.name()).await;
            }
        } else if self.going.contains(key.namespace()) {
            let namespace = key.namespace().to_owned();
            self.reconcile(&namespace).await;
        }
    }

    async fn reconcile(&mut self, name: &str) {
        let Some(stored) = self.api.store.get(&self.namespaces.key("", name)) else {
            return;
        };
        let namespace = self.api.object(&self.namespaces, &stored);
        let ours = namespace["spec"]["finalizers"].as_array().is_some_and(|f| f.iter().any(|f| f == FINALIZER));
        if !object::is_deleting(&namespace) || !ours {
            return;
        }
        self.going.insert(name.to_owned());
        if let Err(error) = self.empty(name).await {
            tracing::warn!(name, error = %error.message, "Could not empty a namespace");
        }
    }

    /// Pods go first: what they use stays until they are gone.
    async fn empty(&self, name: &str) -> Result<(), ApiError> {
        let (pods, others): (Vec<_>, Vec<_>) =
            self.api.registry().collections().into_iter().filter(|r| r.namespaced).partition(|r| r.is("", "pods"));
        for resource in &pods {
            if !self.delete_all(resource, name).await?.is_empty() {
                return self.tell(name, &Remaining::default()).await;
            }
        }
        let mut remaining = Remaining::default();
        for resource in &others {
            let left = self.delete_all(resource, name).await?;
            remaining.add(resource, left.iter().map(|stored| self.api.object(resource, stored)));
        }
        self.tell(name, &remaining).await?;
        if remaining.counts.is_empty() { self.finish(name).await } else { Ok(()) }
    }

    /// Says what is left in a namespace.
    async fn tell(&self, name: &str, remaining: &Remaining) -> Result<(), ApiError> {
        let conditions = remaining.conditions(&self.api.now());
        let call = call(&self.api, &self.namespaces, "", name);
        edit(&call, ObjectPart::Status, MANAGER, |live| merge_conditions(live, &conditions)).await.map(|_| ())
    }

    /// Takes the server's own finalizer off a namespace.
    async fn finish(&self, name: &str) -> Result<(), ApiError> {
        let drop_ours = |live: &mut Value| {
            let Some(spec) = live["spec"].as_object_mut() else { return false };
            let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut) else { return false };
            finalizers.retain(|finalizer| finalizer != FINALIZER);
            if finalizers.is_empty() {
                spec.remove("finalizers");
            }
            true
        };
        edit(&call(&self.api, &self.namespaces, "", name), ObjectPart::Finalize, MANAGER, drop_ours).await.map(|_| ())
    }

    /// Deletes what is there and answers what stays for its finalizers.
    async fn delete_all(&self, resource: &Arc<Resource>, namespace: &str) -> Result<Vec<Arc<StoredObject>>, ApiError> {
        let prefix = format!("{namespace}/");
        let list = || {
            let range = Range { collection: &resource.collection, prefix: &prefix, after: "", at: None };
            self.api.store.list(&range).map(|l| l.objects).unwrap_or_default()
        };
        let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
        for stored in list() {
            let call = call(&self.api, resource, namespace, stored.key.name());
            match call.delete_object(stored.key.name(), &options).await {
                Err(error) if error.reason != "NotFound" => return Err(error),
                _ => {}
            }
        }
        Ok(list())
    }
}

/// What is left in a namespace.
#[derive(Default)]
struct Remaining {
    /// As `configmaps. has 1 resource instances`.
    counts: BTreeSet<String>,
    finalizers: BTreeMap<String, usize>,
}

impl Remaining {
    fn add(&mut self, resource: &Resource, objects: impl ExactSizeIterator<Item = Value>) {
        if objects.len() > 0 {
            let count = format!("{}.{} has {} resource instances", resource.plural, resource.group, objects.len());
            self.counts.insert(count);
        }
        for object in objects {
            for finalizer in object::finalizers(&object) {
                *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }

    /// What a namespace says while it goes.
    fn conditions(&self, now: &str) -> Vec<Value> {
        let condition = |kind: &str, status: &str, reason: &str, message: String| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
        let fine = |kind: &str, reason: &str, message: &str| condition(kind, "False", reason, message.to_owned());
        let mut conditions = vec![
            fine("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
            fine(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
        ];
        conditions.push(if self.counts.is_empty() {
            fine("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed")
        } else {
            let counts: Vec<&str> = self.counts.iter().map(String::as_str).collect();
            let message = format!("Some resources are remaining: {}", counts.join(", "));
            condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", message)
        });
        conditions.push(if self.finalizers.is_empty() {
            fine("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
        } else {
            let waiting: Vec<String> =
                self.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
            let message = format!("Some content in the namespace has finalizers remaining: {}", waiting.join(", "));
            condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message)
        });
        conditions
    }
}

/// Puts conditions into a namespace's status; answers whether anything but a time changed.
fn merge_conditions(live: &mut Value, conditions: &[Value]) -> bool {
    let old = live["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let merged: Vec<Value> = conditions
        .iter()
        .map(|next| {
            let before = old.iter().find(|c| c["type"] == next["type"] && c["status"] == next["status"]);
            let mut next = next.clone();
            if let Some(before) = before {
                next["lastTransitionTime"] = before["lastTransitionTime"].clone();
            }
            next
        })
        .collect();
    let differs = merged != old;
    live["status"]["conditions"] = json!(merged);
    differs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(remaining: &Remaining) -> Vec<String> {
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
        let conditions = remaining.conditions("2026-01-01T00:00:00Z");
        conditions[3..].iter().map(|one| format!("{}: {}", text(one, "status"), text(one, "message"))).collect()
    }

    #[test]
    fn a_namespace_says_what_is_left_and_what_holds_it() {
        let mut remaining = Remaining::default();
        remaining.counts.insert("configmaps. has 2 resource instances".to_owned());
        remaining.finalizers.insert("example.com/hold".to_owned(), 2);

        assert_eq!(
            told(&remaining),
            [
                "True: Some resources are remaining: configmaps. has 2 resource instances",
                "True: Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
            ]
        );
    }

    #[test]
    fn an_empty_namespace_says_so() {
        let told = told(&Remaining::default());

        assert_eq!(
            told,
            ["False: All content successfully removed", "False: All content-preserving finalizers finished"]
        );
    }

    #[test]
    fn a_condition_that_stays_as_it_was_keeps_its_time() {
        let mut live = json!({"status": {}});
        assert!(merge_conditions(&mut live, &Remaining::default().conditions("2026-01-01T00:00:00Z")));

        let again = merge_conditions(&mut live, &Remaining::default().conditions("2026-01-02T00:00:00Z"));

        assert!(!again);
        assert_eq!(live["status"]["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
    }
}
