//! The drift memory of a kind: what stood at Cloudflare when its objects were last found as wanted, which a drift pass compares with.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_cloudflare_api::{Client, Entry, Item, Snapshot};
use portolan_core::ObjectKey;
use portolan_engine::{DriftMemory, Store};

use crate::kind::Kind;
use crate::projection::{self, Projection};

/// Digests of what stood for each object that is as wanted, and whom to ask about the scopes.
#[derive(Default)]
pub(crate) struct KindDriftMemory {
    memory: DriftMemory,
    /// Who was asked last about a scope.
    asked: Mutex<BTreeMap<Arc<str>, Client>>,
}

impl KindDriftMemory {
    /// An object is as wanted: these stand for it, alone or with something of others beside them.
    pub(crate) fn set<B: Item>(
        &self,
        key: Arc<ObjectKey>,
        (scope, client): (&str, &Client),
        present: &[Entry<B>],
        alone: bool,
    ) {
        portolan_core::waypoint!();
        self.asked(scope, client);
        if alone {
            self.memory.wait_no_longer(&key);
        }
        self.memory.settle(key, scope, present.iter().fold(0, |all, entry| all ^ digest(entry)));
    }

    /// A scope is looked at for some object: drift passes know whom to ask about it.
    pub(crate) fn asked(&self, scope: &str, client: &Client) {
        let mut clients = self.clients();
        match clients.get_mut(scope) {
            Some(known) => *known = client.clone(),
            None => drop(clients.insert(scope.into(), client.clone())),
        }
    }

    /// Something is in an object's way: passes look again when what stands there has changed.
    pub(crate) fn conflicted(&self, key: ObjectKey) {
        self.memory.wait(key);
    }

    /// Whether something was in an object's way when it was last tried.
    pub(crate) fn is_conflicted(&self, key: &ObjectKey) -> bool {
        self.memory.waits(key)
    }

    /// An object is gone, or no longer as wanted.
    pub(crate) fn remove(&self, key: &ObjectKey) {
        self.memory.forget(key);
    }

    /// The objects of a scope that no longer stand as they did, by a fresh snapshot of it; and those that stood back for
    /// something, if what stands in the scope has changed. The store says which ids are whose.
    pub(crate) fn drifted<K: Kind>(
        &self,
        scope: &Arc<str>,
        snapshot: &Snapshot<K::Body>,
        store: &Store<Projection>,
    ) -> Vec<ObjectKey> {
        let differs = |projection: &Projection, stood: u64| {
            let there = projection.ids.iter().try_fold(0, |all, id| Some(all ^ digest(snapshot.get(id)?)));
            there != Some(stood)
        };
        let foreign: BTreeSet<u64> = snapshot
            .iter()
            .filter(|entry| entry.item.owner_key().is_none())
            .flat_map(|entry| K::claims_in_the_way(&entry.item, scope))
            .map(|claim| projection::digest(&claim))
            .collect();
        let waiting: BTreeSet<ObjectKey> = self.memory.waiting().into_iter().collect();
        let crowded = |key: &ObjectKey, projection: &Projection| {
            projection.claim.is_some_and(|claim| foreign.contains(&claim)) && !waiting.contains(key)
        };
        let mut drifted = self.memory.settled_where(scope, |key, stood| {
            let projection = store.get(key).and_then(|one| one.projection.as_ref());
            projection.is_some_and(|projection| differs(projection, stood) || crowded(key, projection))
        });
        if !waiting.is_empty() {
            let all = snapshot.iter().fold(0, |all, entry| all ^ digest(entry));
            let news = |key: &ObjectKey| self.memory.waits(key) && self.memory.sees(key, scope, all) != Some(all);
            drifted.extend(waiting.into_iter().filter(news));
        }
        drifted
    }

    /// The scopes that objects stand in, or would stand in if nothing were in their way, and who asks about them.
    pub(crate) fn scopes(&self) -> Vec<(Arc<str>, Client)> {
        let used: BTreeSet<Arc<str>> = self.memory.scopes().into_iter().collect();
        let waiting = !self.memory.waiting().is_empty();
        let mut clients = self.clients();
        clients.retain(|scope, _| waiting || used.contains(scope));
        clients.iter().map(|(scope, client)| (Arc::clone(scope), client.clone())).collect()
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Client>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest<B: Item>(entry: &Entry<B>) -> u64 {
    let mut body = entry.item.clone();
    body.normalise();
    let mut hasher = DefaultHasher::new();
    entry.id.hash(&mut hasher);
    serde_json::to_vec(&body).expect("bodies are plain JSON").hash(&mut hasher);
    hasher.finish()
}
