//! Namespaces that go: everything in them is deleted, then their own finalizer.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{call, edit};
use crate::api::Api;
use crate::call::{DeleteOptions, Propagation};
use crate::object;
use crate::registry::Resource;
use crate::status::ApiError;
use crate::store::{Event, EventKind, Range, Stored};
use crate::strategy::Part;

const MANAGER: &str = "kube-controller-manager";
const FINALIZER: &str = "kubernetes";

/// Follows namespaces and, while one goes, what is in it.
pub(crate) async fn run(api: Arc<Api>, mut events: UnboundedReceiver<Arc<Event>>) {
    let Some(namespaces) = api.registry().find("", "v1", "namespaces").cloned() else {
        return;
    };
    let mut controller = Controller { api, namespaces, going: BTreeSet::new() };
    controller.resume().await;
    while let Some(event) = events.recv().await {
        controller.see(&event).await;
    }
}

struct Controller {
    api: Arc<Api>,
    namespaces: Arc<Resource>,
    going: BTreeSet<String>,
}

impl Controller {
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

    async fn empty(&self, name: &str) -> Result<(), ApiError> {
        let mut remaining: Vec<(Arc<Resource>, Vec<Arc<Stored>>)> = Vec::new();
        for resource in self.api.registry().collections().into_iter().filter(|r| r.namespaced) {
            let left = self.delete_all(&resource, name).await?;
            if !left.is_empty() {
                remaining.push((resource, left));
            }
        }
        let call = call(&self.api, &self.namespaces, "", name);
        if !remaining.is_empty() {
            let conditions = self.conditions(&remaining);
            edit(&call, Part::Status, MANAGER, |live| merge_conditions(live, &conditions)).await?;
            return Ok(());
        }
        let finish = |live: &mut Value| {
            let Some(finalizers) = live["spec"]["finalizers"].as_array_mut() else {
                return false;
            };
            finalizers.retain(|f| f != FINALIZER);
            true
        };
        edit(&call, Part::Finalize, MANAGER, finish).await?;
        Ok(())
    }

    /// Deletes what is there and answers what stays for its finalizers.
    async fn delete_all(&self, resource: &Arc<Resource>, namespace: &str) -> Result<Vec<Arc<Stored>>, ApiError> {
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

    /// What a namespace says while it waits.
    fn conditions(&self, remaining: &[(Arc<Resource>, Vec<Arc<Stored>>)]) -> Vec<Value> {
        let now = self.api.now();
        let condition = |kind: &str, status: &str, reason: &str, message: String| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
        let mut counts: Vec<String> = remaining
            .iter()
            .map(|(r, objects)| format!("{}.{} has {} resource instances", r.plural, r.group, objects.len()))
            .collect();
        counts.sort();
        let mut finalizers: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for (resource, objects) in remaining {
            for stored in objects {
                for finalizer in object::finalizers(&self.api.object(resource, stored)) {
                    *finalizers.entry(finalizer.to_owned()).or_default() += 1;
                }
            }
        }
        let waiting: Vec<String> =
            finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
        let mut conditions = vec![
            condition(
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned(),
            ),
            condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
            condition(
                "NamespaceDeletionContentFailure",
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
            condition(
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", counts.join(", ")),
            ),
        ];
        conditions.push(if waiting.is_empty() {
            condition(
                "NamespaceFinalizersRemaining",
                "False",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            condition(
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {}", waiting.join(", ")),
            )
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
