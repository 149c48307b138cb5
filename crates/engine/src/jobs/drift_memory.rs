//! What stood in each scope when objects were last looked at, as digests: a look for drift compares with it.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_core::ObjectKey;

/// Digests of what stood for objects, by the scope that it stands in: a zone, a collection of an account. Looking at a scope
/// costs nothing for objects of others.
#[derive(Default)]
pub struct DriftMemory {
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    /// Objects that are as wanted, and what stood for them.
    settled: BTreeMap<Arc<str>, BTreeMap<Arc<ObjectKey>, u64>>,
    /// The scope that each of them is settled in, by the digest of its key.
    scope_of: HashMap<u64, Arc<str>>,
    /// Objects that cannot have what they want, and what they last saw in each scope.
    waiting: BTreeMap<ObjectKey, BTreeMap<Arc<str>, u64>>,
}

impl DriftMemory {
    /// An object is as wanted: this stands for it in a scope.
    pub fn settle(&self, key: impl Into<Arc<ObjectKey>>, scope: &str, stands: u64) {
        let (key, mut remembered) = (key.into(), self.remembered());
        if remembered.scope_of.get(&name(&key)).is_some_and(|known| **known != *scope) {
            remembered.unsettle(&key);
        }
        let known = remembered.settled.get_key_value(scope).map(|(known, _)| Arc::clone(known));
        let scope = known.unwrap_or_else(|| scope.into());
        remembered.scope_of.insert(name(&key), Arc::clone(&scope));
        remembered.settled.entry(scope).or_default().insert(key, stands);
    }

    /// An object is gone, or is as wanted no longer.
    pub fn forget(&self, key: &ObjectKey) {
        let mut remembered = self.remembered();
        remembered.unsettle(key);
        remembered.waiting.remove(key);
    }

    /// The scopes that objects are settled in.
    pub fn scopes(&self) -> Vec<Arc<str>> {
        self.remembered().settled.keys().cloned().collect()
    }

    /// The objects of a scope about which this holds, by what stood for them.
    pub fn settled_where(&self, scope: &str, holds: impl Fn(&ObjectKey, u64) -> bool) -> Vec<ObjectKey> {
        let remembered = self.remembered();
        let settled = remembered.settled.get(scope).into_iter().flatten();
        settled.filter(|(key, stands)| holds(key, **stands)).map(|(key, _)| key.as_ref().clone()).collect()
    }

    /// Something is in an object's way: it is worth another look when what it sees has changed.
    pub fn wait(&self, key: ObjectKey) {
        self.remembered().waiting.entry(key).or_default();
    }

    /// Nothing is in an object's way any more.
    pub fn wait_no_longer(&self, key: &ObjectKey) {
        self.remembered().waiting.remove(key);
    }

    /// Whether something is in an object's way.
    pub fn waits(&self, key: &ObjectKey) -> bool {
        self.remembered().waiting.contains_key(key)
    }

    /// Objects that something is in the way of.
    pub fn waiting(&self) -> Vec<ObjectKey> {
        self.remembered().waiting.keys().cloned().collect()
    }

    /// What an object that waits sees in a scope now; answers what it saw there last.
    pub fn sees(&self, key: &ObjectKey, scope: &str, now: u64) -> Option<u64> {
        self.remembered().waiting.entry(key.clone()).or_default().insert(scope.into(), now)
    }

    /// Lets those go that wait for nothing any more.
    pub fn retain_waiting(&self, waits: impl Fn(&ObjectKey) -> bool) {
        self.remembered().waiting.retain(|key, _| waits(key));
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remembered {
    fn unsettle(&mut self, key: &ObjectKey) {
        let Some(scope) = self.scope_of.remove(&name(key)) else { return };
        let Some(settled) = self.settled.get_mut(&scope) else { return };
        settled.remove(key);
        if settled.is_empty() {
            self.settled.remove(&scope);
        }
    }
}

fn name(key: &ObjectKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("web", name)
    }

    fn scopes(memory: &DriftMemory) -> Vec<String> {
        memory.scopes().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_object_is_settled_in_one_scope_until_it_is_forgotten() {
        let memory = DriftMemory::default();
        memory.settle(key("a"), "z1", 7);
        memory.settle(key("b"), "z1", 8);
        assert_eq!(memory.settled_where("z1", |_, stands| stands != 7), [key("b")]);

        memory.settle(key("b"), "z2", 8);
        assert_eq!(scopes(&memory), ["z1", "z2"]);
        memory.forget(&key("a"));

        assert_eq!(scopes(&memory), ["z2"]);
        assert_eq!(memory.settled_where("z1", |_, _| true), []);
    }

    #[test]
    fn an_object_that_waits_sees_what_is_other_than_when_it_last_looked() {
        let memory = DriftMemory::default();
        memory.wait(key("a"));

        assert_eq!(memory.sees(&key("a"), "z1", 1), None, "it has not looked before");
        assert_eq!(memory.sees(&key("a"), "z1", 2), Some(1));
        assert_eq!(memory.sees(&key("a"), "z2", 2), None, "nor there");
        memory.wait(key("a"));
        assert_eq!(memory.sees(&key("a"), "z1", 2), Some(2), "what it saw is kept while it waits");
        memory.wait_no_longer(&key("a"));

        assert!(!memory.waits(&key("a")) && memory.waiting().is_empty());
    }

    #[test]
    fn finding_21_looking_at_all_scopes_looks_at_each_object_once() {
        let looked_at = |scopes: usize| {
            let memory = DriftMemory::default();
            for number in 0..scopes * 10 {
                memory.settle(key(&format!("record-{number}")), &format!("zone-{}", number % scopes), 0);
            }
            let looks = Cell::new(0);
            for scope in memory.scopes() {
                memory.settled_where(&scope, |_, _| {
                    looks.set(looks.get() + 1);
                    false
                });
            }
            looks.get()
        };

        assert_eq!((looked_at(10), looked_at(100)), (100, 1_000));
    }
}
