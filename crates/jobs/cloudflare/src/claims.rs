//! Who wants what: of two objects of a kind that want the same, the older one has it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::ObjectMeta;
use portolan_core::ObjectKey;
use portolan_engine::Handle;

use crate::projection::Projection;

/// Objects by the digest of what they claim. Small, since there is an entry for each object: whether an entry still
/// holds is looked up in the controller's store.
#[derive(Default)]
pub(crate) struct Claims {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_claim: HashMap<u64, Vec<ObjectKey>>,
    entries: usize,
}

impl Claims {
    /// Notes what an object claims now.
    pub(crate) fn note(&self, key: &ObjectKey, claim: Option<&str>) {
        let Some(claim) = claim else { return };
        let mut state = self.state();
        let keys = state.by_claim.entry(digest(claim)).or_default();
        if !keys.contains(key) {
            keys.push(key.clone());
            keys.shrink_to_fit();
            state.entries += 1;
        }
    }

    /// Forgets entries that no longer hold, once they are many.
    pub(crate) fn tidy(&self, handle: &Handle<Projection>) {
        let mut state = self.state();
        handle.read(|store| {
            if state.entries <= 2 * store.len() + 64 {
                return;
            }
            let holds = |claim: u64, key: &ObjectKey| {
                let projection = store.get(key).and_then(|one| one.projection.as_ref());
                projection.and_then(|one| one.claim.as_deref()).is_some_and(|now| digest(now) == claim)
            };
            state.by_claim.retain(|claim, keys| {
                keys.retain(|key| holds(*claim, key));
                !keys.is_empty()
            });
            state.entries = state.by_claim.values().map(Vec::len).sum();
        });
    }

    /// The oldest object that claims the same and is older than the given one. Objects that are being deleted claim
    /// nothing any more.
    pub(crate) fn older_than(&self, claim: &str, meta: &ObjectMeta, handle: &Handle<Projection>) -> Option<ObjectKey> {
        let own = ObjectKey { namespace: meta.namespace.clone(), name: meta.name.clone().unwrap_or_default() };
        let own_age = (age(meta.creation_timestamp.as_ref().map(|time| time.0)), own);
        let state = self.state();
        let rivals = state.by_claim.get(&digest(claim))?.iter().filter(|key| **key != own_age.1);
        let older = rivals.filter_map(|key| {
            let created = handle.read(|store| {
                let one = store.get(key).filter(|one| !one.deleting)?;
                let claims = one.projection.as_ref()?.claim.as_deref() == Some(claim);
                claims.then_some(one.created)
            })?;
            Some((age(created), key.clone()))
        });
        older.filter(|other| *other < own_age).min().map(|(_, key)| key)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age(created: Option<jiff::Timestamp>) -> jiff::Timestamp {
    created.unwrap_or(jiff::Timestamp::MAX)
}

fn digest(claim: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    claim.hash(&mut hasher);
    hasher.finish()
}
