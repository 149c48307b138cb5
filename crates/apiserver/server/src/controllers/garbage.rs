//! Owner references: dependents go with their owners, before them, or are let go.
//!
//! Only objects that name owners are remembered, by the uid of each owner; everything else is looked up in the store
//! when it matters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use portolan_workloads::EventType;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::workloads::recorder::Recorder;
use super::{call, edit};
use crate::api::Api;
use crate::call::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::object;
use crate::registry::Resource;
use crate::status::ApiError;
use crate::store::{Event, EventKind, Range, StoreKey, StoredObject};
use crate::strategy::ObjectPart;

const MANAGER: &str = "kube-controller-manager";
const COMPONENT: &str = "garbage-collector-controller";

/// Follows everything.
pub(crate) async fn run(api: Arc<Api>, mut events: UnboundedReceiver<Arc<Event>>) {
    let mut collector = Collector { recorder: Recorder::new(api.clone()), api, dependents: HashMap::new() };
    collector.resume().await;
    while let Some(event) = events.recv().await {
        collector.see(&event).await;
    }
}

struct Collector {
    api: Arc<Api>,
    recorder: Recorder,
    /// The objects that name an owner, by the owner's uid.
    dependents: HashMap<String, BTreeSet<StoreKey>>,
}

/// One of an object's owners.
struct OwnerNode {
    uid: String,
    standing: OwnerState,
}

/// What an owner reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    /// The owner is there.
    Solid,
    /// The owner waits for its dependents to go first.
    Waiting,
    /// The owner is gone, or never was where the reference says.
    Absent,
    /// The kind is not served, or cannot own: nothing is decided by it.
    Unknown,
}

impl Collector {
    /// Remembers every dependent and looks at each once, for what happened while nobody followed.
    async fn resume(&mut self) {
        let mut keys = Vec::new();
        for resource in self.api.registry().collections() {
            let range = Range { collection: &resource.collection, prefix: "", after: "", at: None };
            for stored in self.api.store.list(&range).map(|l| l.objects).unwrap_or_default() {
                if mentions(&stored.body.tail, "ownerReferences") || mentions(&stored.body.tail, "deletionTimestamp") {
                    keys.push((stored.key.clone(), self.remember(&stored)));
                }
            }
        }
        for (key, owners) in keys {
            self.look_at(&key, &owners).await;
        }
    }

    async fn see(&mut self, event: &Event) {
        let key = &event.object.key;
        let owned_by = event.previous.as_ref().map(|previous| self.forget(previous)).unwrap_or_default();
        if event.kind == EventKind::Deleted {
            let gone = self.value(&event.object);
            self.after_removal(&gone).await;
            return;
        }
        let mut new_owners = self.remember(&event.object);
        new_owners.retain(|uid| !owned_by.contains(uid));
        if let Some(previous) = &event.previous {
            self.after_release(previous, &event.object).await;
        }
        let text = &event.object.body.tail;
        if mentions(text, "ownerReferences") || mentions(text, "deletionTimestamp") {
            self.look_at(key, &new_owners).await;
        }
    }

    /// Remembers what a dependent names; answers the uids.
    fn remember(&mut self, stored: &StoredObject) -> Vec<String> {
        let uids = self.owner_uids(stored);
        for uid in &uids {
            self.dependents.entry(uid.clone()).or_default().insert(stored.key.clone());
        }
        uids
    }

    /// Forgets what a dependent named; answers the uids.
    fn forget(&mut self, stored: &StoredObject) -> Vec<String> {
        let uids = self.owner_uids(stored);
        for uid in &uids {
            if let Some(keys) = self.dependents.get_mut(uid) {
                keys.remove(&stored.key);
                if keys.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        uids
    }

    /// Tells that a dependent names an owner that is in another namespace, where it cannot own it.
    async fn tell_misplaced(&mut self, dependent: &Value, reference: &Value) {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let namespace = object::namespace(dependent);
        let message = format!(
            "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace {namespace:?}",
            text("apiVersion"),
            text("kind"),
            text("name"),
            text("uid"),
        );
        let field = |name: &str| object::meta_text(dependent, name);
        let metadata = json!({"name": field("name"), "namespace": namespace, "uid": field("uid")});
        let about = json!({"apiVersion": dependent["apiVersion"], "kind": dependent["kind"], "metadata": metadata});
        let (event_type, reason) = (EventType::Warning, "OwnerRefInvalidNamespace");
        self.recorder.record(COMPONENT, portolan_workloads::Event { about, event_type, reason, message }).await;
    }

    /// The first reference to a new owner that is not where its dependent is, but in another namespace.
    fn misplaced<'a>(&self, dependent: &'a Value, owners: &[OwnerNode], new_owners: &[String]) -> Option<&'a Value> {
        let is_new = |owner: &OwnerNode| owner.standing == OwnerState::Absent && new_owners.contains(&owner.uid);
        let absent = references(dependent).zip(owners).filter(|(_, owner)| is_new(owner));
        absent.map(|(reference, _)| reference).find(|reference| self.is_elsewhere(dependent, reference))
    }

    /// Whether an owner that is not where its dependent is lives in another namespace.
    fn is_elsewhere(&self, dependent: &Value, reference: &Value) -> bool {
        let Some((resource, _)) = self.owner_key(dependent, reference) else { return false };
        let uid = reference["uid"].as_str().unwrap_or_default();
        let is_it = |stored: &Arc<StoredObject>| {
            mentions(&stored.body.tail, uid) && object::meta_text(&self.value(stored), "uid") == uid
        };
        let range = Range { collection: &resource.collection, prefix: "", after: "", at: None };
        resource.namespaced && self.api.store.list(&range).is_ok_and(|listing| listing.objects.iter().any(is_it))
    }

    fn owner_uids(&self, stored: &StoredObject) -> Vec<String> {
        if !mentions(&stored.body.tail, "ownerReferences") {
            return Vec::new();
        }
        references(&self.value(stored)).filter_map(|r| r["uid"].as_str()).map(str::to_owned).collect()
    }

    /// An owner went: its dependents have lost it, and an owner of its own may have waited for it.
    async fn after_removal(&mut self, gone: &Value) {
        for key in self.dependents_of(object::meta_text(gone, "uid")) {
            self.look_at(&key, &[]).await;
        }
        for reference in references(gone) {
            self.wake(gone, reference).await;
        }
    }

    /// A dependent let go of an owner, or no longer holds it back: an owner that waited may go.
    async fn after_release(&self, before: &StoredObject, now: &StoredObject) {
        if !mentions(&before.body.tail, "blockOwnerDeletion") {
            return;
        }
        let (before, now) = (self.value(before), self.value(now));
        let blocks = |object: &Value, uid: &Value| references(object).any(|r| r["uid"] == *uid && is_blocking(r));
        for reference in references(&before).filter(|r| is_blocking(r) && !blocks(&now, &r["uid"])) {
            self.wake(&before, reference).await;
        }
    }

    /// Looks at an owner that waits for its dependents to go first.
    async fn wake(&self, dependent: &Value, reference: &Value) {
        if let Some((resource, key)) = self.owner_key(dependent, reference) {
            let waits = self.api.store.get(&key).is_some_and(|s| mentions(&s.body.tail, FOREGROUND));
            if waits {
                self.report(self.go_foreground(&resource, &key).await, &key);
            }
        }
    }

    fn dependents_of(&self, uid: &str) -> Vec<StoreKey> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Does what an object's deletion and its owners ask for. `new_owners` are the uids that it did not name before.
    async fn look_at(&mut self, key: &StoreKey, new_owners: &[String]) {
        let Some(resource) = self.api.registry().by_collection(&key.collection).cloned() else {
            return;
        };
        let Some(stored) = self.api.store.get(key) else { return };
        let object = self.api.object(&resource, &stored);
        if object::is_deleting(&object) {
            let has = |name: &str| object::finalizers(&object).any(|f| f == name);
            if has(ORPHAN) {
                self.report(self.orphan_dependents(&resource, &object).await, key);
            } else if has(FOREGROUND) {
                self.report(self.go_foreground(&resource, key).await, key);
            }
            return;
        }
        if references(&object).next().is_some() {
            let owners = self.owners(&object);
            if let Some(reference) = self.misplaced(&object, &owners, new_owners) {
                self.tell_misplaced(&object, reference).await;
            }
            self.report(self.judge(&resource, &object, &owners).await, key);
        }
    }

    fn report(&self, result: Result<(), ApiError>, key: &StoreKey) {
        if let Err(error) = result {
            tracing::warn!(collection = %key.collection, path = %key.path, error = %error.message, "Garbage collection failed");
        }
    }

    /// Deletes a dependent whose owners are gone, or takes the lost ones off it.
    async fn judge(&self, resource: &Arc<Resource>, dependent: &Value, owners: &[OwnerNode]) -> Result<(), ApiError> {
        let with = |standing: OwnerState| owners.iter().filter(move |o| o.standing == standing);
        if with(OwnerState::Unknown).next().is_some() {
            return Ok(());
        }
        let lost: Vec<String> =
            with(OwnerState::Absent).chain(with(OwnerState::Waiting)).map(|o| o.uid.clone()).collect();
        if lost.is_empty() {
            return Ok(());
        }
        if with(OwnerState::Solid).next().is_some() {
            return self.release(resource, dependent, &lost).await;
        }
        let uid = object::meta_text(dependent, "uid");
        let has_dependents = self.dependents.contains_key(uid);
        let propagation = if with(OwnerState::Waiting).next().is_some() && has_dependents {
            if self.dependents_of(uid).iter().any(|key| self.is_waiting(key)) {
                // Nobody may wait for this one in a circle.
                self.unblock(resource, dependent).await?;
            }
            Propagation::Foreground
        } else {
            own_policy(dependent)
        };
        let options =
            DeleteOptions { uid: Some(uid.to_owned()), propagation: Some(propagation), ..DeleteOptions::default() };
        let call = call(&self.api, resource, object::namespace(dependent), object::name(dependent));
        match call.delete_object(object::name(dependent), &options).await {
            Err(error) if error.reason != "NotFound" && error.reason != "Conflict" => Err(error),
            _ => Ok(()),
        }
    }

    fn owners(&self, dependent: &Value) -> Vec<OwnerNode> {
        references(dependent)
            .map(|reference| OwnerNode {
                uid: reference["uid"].as_str().unwrap_or_default().to_owned(),
                standing: self.standing(dependent, reference),
            })
            .collect()
    }

    fn standing(&self, dependent: &Value, reference: &Value) -> OwnerState {
        let registry = self.api.registry();
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let Some(resource) = registry.by_kind(text("apiVersion"), text("kind")) else {
            return OwnerState::Unknown;
        };
        let namespace = object::namespace(dependent);
        if resource.namespaced && namespace.is_empty() {
            return OwnerState::Unknown;
        }
        // An owner in another namespace is looked for in the dependent's own, and is not there.
        let Some(stored) = self.api.store.get(&resource.key(namespace, text("name"))) else {
            return OwnerState::Absent;
        };
        let owner = self.api.object(resource, &stored);
        if object::meta_text(&owner, "uid") != text("uid") {
            return OwnerState::Absent;
        }
        let foreground = object::finalizers(&owner).any(|f| f == FOREGROUND);
        if object::is_deleting(&owner) && foreground { OwnerState::Waiting } else { OwnerState::Solid }
    }

    fn owner_key(&self, dependent: &Value, reference: &Value) -> Option<(Arc<Resource>, StoreKey)> {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let resource = self.api.registry().by_kind(text("apiVersion"), text("kind"))?.clone();
        let key = resource.key(object::namespace(dependent), text("name"));
        Some((resource, key))
    }

    /// Takes owners off a dependent.
    async fn release(&self, resource: &Arc<Resource>, dependent: &Value, lost: &[String]) -> Result<(), ApiError> {
        let call = call(&self.api, resource, object::namespace(dependent), object::name(dependent));
        let drop_lost = |live: &mut Value| {
            let Some(list) = live["metadata"]["ownerReferences"].as_array_mut() else {
                return false;
            };
            let before = list.len();
            list.retain(|r| !lost.iter().any(|uid| r["uid"] == json!(uid)));
            let (changed, empty) = (list.len() != before, list.is_empty());
            if empty {
                object::set_meta(live, "ownerReferences", None);
            }
            changed
        };
        edit(&call, ObjectPart::Main, MANAGER, drop_lost).await.map(|_| ())
    }

    /// Whether an object waits for its own dependents.
    fn is_waiting(&self, key: &StoreKey) -> bool {
        self.find(key).is_some_and(|(kind, stored)| {
            let object = self.api.object(&kind, &stored);
            object::is_deleting(&object) && object::finalizers(&object).any(|f| f == FOREGROUND)
        })
    }

    /// Owners no longer wait for this one.
    async fn unblock(&self, resource: &Arc<Resource>, dependent: &Value) -> Result<(), ApiError> {
        let call = call(&self.api, resource, object::namespace(dependent), object::name(dependent));
        let clear = |live: &mut Value| {
            let list = live["metadata"]["ownerReferences"].as_array_mut();
            let mut changed = false;
            for reference in list.into_iter().flatten().filter(|r| is_blocking(r)) {
                reference["blockOwnerDeletion"] = json!(false);
                changed = true;
            }
            changed
        };
        edit(&call, ObjectPart::Main, MANAGER, clear).await.map(|_| ())
    }

    /// Lets every dependent go, then the owner's finalizer.
    async fn orphan_dependents(&self, resource: &Arc<Resource>, owner: &Value) -> Result<(), ApiError> {
        let uid = object::meta_text(owner, "uid").to_owned();
        for key in self.dependents_of(&uid) {
            let Some((kind, stored)) = self.find(&key) else {
                continue;
            };
            let dependent = self.api.object(&kind, &stored);
            self.release(&kind, &dependent, std::slice::from_ref(&uid)).await?;
        }
        self.drop_finalizer(resource, owner, ORPHAN).await
    }

    /// Deletes dependents; when none blocks any longer, the owner's finalizer goes.
    async fn go_foreground(&self, resource: &Arc<Resource>, key: &StoreKey) -> Result<(), ApiError> {
        let Some(stored) = self.api.store.get(key) else {
            return Ok(());
        };
        let owner = self.api.object(resource, &stored);
        let uid = object::meta_text(&owner, "uid").to_owned();
        let mut blocked = false;
        for key in self.dependents_of(&uid) {
            let Some((kind, stored)) = self.find(&key) else {
                continue;
            };
            let dependent = self.api.object(&kind, &stored);
            if !object::is_deleting(&dependent) {
                self.judge(&kind, &dependent, &self.owners(&dependent)).await?;
            }
            let Some((kind, stored)) = self.find(&key) else {
                continue;
            };
            let dependent = self.api.object(&kind, &stored);
            let blocks = |r: &Value| r["uid"] == json!(uid) && is_blocking(r);
            blocked |= references(&dependent).any(blocks);
        }
        if blocked { Ok(()) } else { self.drop_finalizer(resource, &owner, FOREGROUND).await }
    }

    async fn drop_finalizer(&self, resource: &Arc<Resource>, owner: &Value, name: &str) -> Result<(), ApiError> {
        let call = call(&self.api, resource, object::namespace(owner), object::name(owner));
        let drop = |live: &mut Value| {
            let rest: Vec<String> = object::finalizers(live).filter(|f| *f != name).map(str::to_owned).collect();
            object::set_finalizers(live, rest);
            true
        };
        edit(&call, ObjectPart::Main, MANAGER, drop).await.map(|_| ())
    }

    fn find(&self, key: &StoreKey) -> Option<(Arc<Resource>, Arc<StoredObject>)> {
        let resource = self.api.registry().by_collection(&key.collection)?.clone();
        Some((resource, self.api.store.get(key)?))
    }

    fn value(&self, stored: &StoredObject) -> Value {
        let type_meta = crate::encode::TypeMeta { kind: String::new(), api_version: String::new() };
        crate::encode::object_of(stored, &type_meta)
    }
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

/// Whether an owner that waits for its dependents waits for this one.
fn is_blocking(reference: &Value) -> bool {
    reference["blockOwnerDeletion"] == json!(true)
}

/// What becomes of the dependents of a dependent that goes.
fn own_policy(dependent: &Value) -> Propagation {
    let has = |name: &str| object::finalizers(dependent).any(|f| f == name);
    if has(ORPHAN) {
        Propagation::Orphan
    } else if has(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}

/// Whether a text may hold a field; false positives only cost a look.
fn mentions(text: &Bytes, field: &str) -> bool {
    text.windows(field.len()).any(|window| window == field.as_bytes())
}
