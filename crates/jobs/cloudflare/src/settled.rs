//! What stood at Cloudflare when objects were last found as wanted: what a drift pass compares with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_cloudflare_api::{Client, Entry, Item, Snapshot};
use portolan_core::ObjectKey;
use portolan_engine::Store;

use crate::kind::Kind;
use crate::projection::{self, Projection};

/// Digests of what stood there, by the digest of the object's key: some tens of bytes for each object that is as wanted.
#[derive(Default)]
pub(crate) struct DriftMemory {
    state: Mutex<DriftState>,
}

#[derive(Default)]
struct DriftState {
    objects: HashMap<u64, SettledObject>,
    /// Objects that stand back because something is in their way, and what stood in each scope when they last looked.
    conflicted: BTreeMap<ObjectKey, BTreeMap<Arc<str>, u64>>,
    /// Who was asked last about a scope.
    scopes: BTreeMap<Arc<str>, Client>,
}

struct SettledObject {
    scope: Arc<str>,
    /// Of all its remote objects, in whatever order.
    remote: u64,
}

impl DriftMemory {
    /// An object is as wanted: these stand for it, alone or with something of others beside them.
    pub(crate) fn set<B: Item>(
        &self,
        key: &ObjectKey,
        (scope, client): (&str, &Client),
        present: &[Entry<B>],
        alone: bool,
    ) {
        portolan_core::waypoint!();
        let remote = present.iter().fold(0, |all, entry| all ^ digest(entry));
        let mut state = self.state();
        let scope = state.scope(scope, client);
        if alone {
            state.conflicted.remove(key);
        }
        state.objects.insert(name(key), SettledObject { scope, remote });
    }

    /// A scope is looked at for some object: drift passes know whom to ask about it.
    pub(crate) fn asked(&self, scope: &str, client: &Client) {
        self.state().scope(scope, client);
    }

    /// Something is in an object's way: passes look again when what stands there has changed.
    pub(crate) fn conflicted(&self, key: ObjectKey) {
        self.state().conflicted.entry(key).or_default();
    }

    /// Whether something was in an object's way when it was last tried.
    pub(crate) fn is_conflicted(&self, key: &ObjectKey) -> bool {
        self.state().conflicted.contains_key(key)
    }

    /// An object is gone, or no longer as wanted.
    pub(crate) fn remove(&self, key: &ObjectKey) {
        let mut state = self.state();
        state.objects.remove(&name(key));
        state.conflicted.remove(key);
    }

    /// The objects of a scope that no longer stand as they did, by a fresh snapshot of it; and those that stood back for
    /// something, if what stands in the scope has changed. The store says which ids are whose.
    pub(crate) fn drifted<K: Kind>(
        &self,
        scope: &Arc<str>,
        snapshot: &Snapshot<K::Body>,
        store: &Store<Projection>,
    ) -> Vec<ObjectKey> {
        let mut state = self.state();
        let differs = |key: &ObjectKey, projection: &Projection| {
            let Some(standing) = state.objects.get(&name(key)).filter(|standing| standing.scope == *scope) else {
                return false;
            };
            let there = projection.ids.iter().try_fold(0, |all, id| Some(all ^ digest(snapshot.get(id)?)));
            there != Some(standing.remote)
        };
        let foreign: BTreeSet<u64> = snapshot
            .iter()
            .filter(|entry| entry.item.owner_key().is_none())
            .flat_map(|entry| K::claims_in_the_way(&entry.item, scope))
            .map(|claim| projection::digest(&claim))
            .collect();
        let crowded = |key: &ObjectKey, projection: &Projection| {
            projection.claim.is_some_and(|claim| foreign.contains(&claim))
                && state.objects.get(&name(key)).is_some_and(|standing| standing.scope == *scope)
                && !state.conflicted.contains_key(key)
        };
        let changed = |key: &ObjectKey, projection: &Projection| differs(key, projection) || crowded(key, projection);
        let drifted = store.projections().filter(|(key, projection)| changed(key, projection));
        let mut drifted: Vec<ObjectKey> = drifted.map(|(key, _)| key.clone()).collect();
        if !state.conflicted.is_empty() {
            let all = snapshot.iter().fold(0, |all, entry| all ^ digest(entry));
            for (key, seen) in &mut state.conflicted {
                if seen.insert(Arc::clone(scope), all) != Some(all) {
                    drifted.push(key.clone());
                }
            }
        }
        drifted
    }

    /// The scopes that objects stand in, or would stand in if nothing were in their way, and who asks about them.
    pub(crate) fn scopes(&self) -> Vec<(Arc<str>, Client)> {
        let mut state = self.state();
        let used: BTreeSet<Arc<str>> = state.objects.values().map(|standing| Arc::clone(&standing.scope)).collect();
        let waiting = !state.conflicted.is_empty();
        state.scopes.retain(|scope, _| waiting || used.contains(scope));
        state.scopes.iter().map(|(scope, client)| (Arc::clone(scope), client.clone())).collect()
    }

    fn state(&self) -> MutexGuard<'_, DriftState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DriftState {
    /// One copy of a scope's id for all its objects.
    fn scope(&mut self, scope: &str, client: &Client) -> Arc<str> {
        let scope = self.scopes.get_key_value(scope).map_or_else(|| scope.into(), |(known, _)| Arc::clone(known));
        self.scopes.insert(Arc::clone(&scope), client.clone());
        scope
    }
}

fn name(key: &ObjectKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn digest<B: Item>(entry: &Entry<B>) -> u64 {
    let mut body = entry.item.clone();
    body.normalise();
    let mut hasher = DefaultHasher::new();
    entry.id.hash(&mut hasher);
    serde_json::to_vec(&body).expect("bodies are plain JSON").hash(&mut hasher);
    hasher.finish()
}
