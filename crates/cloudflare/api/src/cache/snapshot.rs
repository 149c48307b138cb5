//! The objects of a collection as last listed and written, found by id, place key and owner. Pure.
//!
//! The three indexes hold hashes and slots, not keys: tens of bytes an object. A hit is compared with the object itself.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use portolan_core::{Entry, Item};
use tokio::time::Instant;

use crate::cache::snapshot_store::SnapshotEdit;
use crate::item::ListedItem;

/// A collection's objects.
#[derive(Clone, Debug)]
pub struct Snapshot<T> {
    slots: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
    ids: KeyIndex,
    keys: KeyIndex,
    owners: KeyIndex,
    listed_at: Option<Instant>,
    unreadable: usize,
}

impl<T> Default for Snapshot<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: KeyIndex::default(),
            keys: KeyIndex::default(),
            owners: KeyIndex::default(),
            listed_at: None,
            unreadable: 0,
        }
    }
}

impl<T: Item> Snapshot<T> {
    /// What a listing that began at `listed_at` found. An object that cannot be read is counted and left out.
    pub(crate) fn listed(objects: Vec<ListedItem<T>>, listed_at: Instant) -> Self {
        portolan_core::waypoint!();
        let mut snapshot = Self { listed_at: Some(listed_at), ..Self::default() };
        snapshot.slots.reserve_exact(objects.len());
        for ListedItem(entry) in objects {
            match entry {
                Some(entry) => snapshot.store(entry),
                None => snapshot.unreadable += 1,
            }
        }
        snapshot
    }

    /// The object with this id.
    pub fn get(&self, id: &str) -> Option<&Entry<T>> {
        self.candidates(&self.ids, id).find(|entry| entry.id == id)
    }

    /// The objects with this place key, which for most is the natural key.
    pub fn by_key<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Entry<T>> {
        self.candidates(&self.keys, key).filter(move |entry| entry.item.place_key() == key)
    }

    /// The objects whose mark names this owner.
    pub fn by_owner<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = &'a Entry<T>> {
        self.candidates(&self.owners, owner).filter(move |entry| entry.item.owner_key().as_deref() == Some(owner))
    }

    /// All objects, in a steady order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.slots.iter().flatten()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time since the listing began; none if there was no listing.
    pub fn age(&self) -> Option<Duration> {
        self.listed_at.map(|time| time.elapsed())
    }

    /// Objects of the listing that could not be read.
    pub fn unreadable(&self) -> usize {
        self.unreadable
    }

    /// Takes an object in, in place of the one with its id.
    pub(crate) fn store(&mut self, entry: Entry<T>) {
        self.remove(&entry.id);
        if entry.item.deleted() {
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("no collection has four billion objects")
        });
        self.ids.add(&entry.id, slot);
        self.keys.add(&entry.item.place_key(), slot);
        if let Some(owner) = entry.item.owner_key() {
            self.owners.add(&owner, slot);
        }
        self.slots[slot as usize] = Some(entry);
    }

    /// Forgets an object.
    pub(crate) fn remove(&mut self, id: &str) -> Option<Entry<T>> {
        let slot =
            self.ids.slots(id).iter().copied().find(|slot| self.at(*slot).is_some_and(|entry| entry.id == id))?;
        let entry = self.slots[slot as usize].take()?;
        self.ids.remove(&entry.id, slot);
        self.keys.remove(&entry.item.place_key(), slot);
        if let Some(owner) = entry.item.owner_key() {
            self.owners.remove(&owner, slot);
        }
        self.free.push(slot);
        Some(entry)
    }

    /// Follows a write.
    pub(crate) fn apply(&mut self, edit: SnapshotEdit<T>) {
        match edit {
            SnapshotEdit::Stored(entry) => self.store(entry),
            SnapshotEdit::Removed(id) => drop(self.remove(&id)),
        }
    }

    fn at(&self, slot: u32) -> Option<&Entry<T>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn candidates<'a>(&'a self, index: &'a KeyIndex, key: &str) -> impl Iterator<Item = &'a Entry<T>> {
        index.slots(key).iter().filter_map(|slot| self.at(*slot))
    }
}

/// Hash of a key → slots.
#[derive(Clone, Debug, Default)]
struct KeyIndex(HashMap<u64, Slots>);

/// Nearly every key has one slot.
#[derive(Clone, Debug)]
enum Slots {
    One([u32; 1]),
    Many(Box<[u32]>),
}

impl Slots {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(slot) => slot,
            Self::Many(slots) => slots,
        }
    }
}

impl KeyIndex {
    fn slots(&self, key: &str) -> &[u32] {
        self.0.get(&hash(key)).map_or(&[], Slots::as_slice)
    }

    fn add(&mut self, key: &str, slot: u32) {
        let slots = self.0.entry(hash(key)).or_insert(Slots::One([slot]));
        if !slots.as_slice().contains(&slot) {
            *slots = Slots::Many(slots.as_slice().iter().copied().chain([slot]).collect());
        }
    }

    fn remove(&mut self, key: &str, slot: u32) {
        let key = hash(key);
        let Some(slots) = self.0.get_mut(&key) else { return };
        let rest: Box<[u32]> = slots.as_slice().iter().copied().filter(|other| *other != slot).collect();
        match *rest {
            [] => drop(self.0.remove(&key)),
            [only] => *slots = Slots::One([only]),
            _ => *slots = Slots::Many(rest),
        }
    }
}

fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestRecord, record};
    use proptest::prelude::*;
    use serde_json::json;

    fn entry(id: &str, name: &str) -> Entry<TestRecord> {
        Entry::read(record(id, name, "192.0.2.1")).unwrap()
    }

    #[test]
    fn objects_are_found_by_id_key_and_owner() {
        let mut snapshot = Snapshot::default();
        snapshot.store(entry("1", "a.example.com"));
        snapshot.store(entry("2", "a.example.com"));
        snapshot.store(entry("3", "b.example.com"));

        assert_eq!(snapshot.get("3").map(|entry| entry.item.name.as_str()), Some("b.example.com"));
        let ids: Vec<_> = snapshot.by_key("A a.example.com").map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["1", "2"]);
        assert_eq!(snapshot.by_owner("b.example.com").count(), 1);
    }

    #[test]
    fn a_changed_object_is_found_by_its_new_key_only() {
        let mut snapshot = Snapshot::default();
        snapshot.store(entry("1", "a.example.com"));

        snapshot.store(entry("1", "b.example.com"));

        assert_eq!((snapshot.len(), snapshot.by_key("A a.example.com").count()), (1, 0));
        assert_eq!(snapshot.by_key("A b.example.com").count(), 1);
    }

    #[test]
    fn an_object_that_cannot_be_read_is_counted_and_left_out() {
        let objects = json!([record("1", "a.example.com", "192.0.2.1"), {"id": "2", "name": 7}, {}]);

        let snapshot = Snapshot::<TestRecord>::listed(serde_json::from_value(objects).unwrap(), Instant::now());

        assert_eq!((snapshot.len(), snapshot.unreadable()), (1, 2));
    }

    proptest! {
        #[test]
        fn any_history_of_stores_and_removals_equals_a_plain_map(steps in proptest::collection::vec((0..8_u8, 0..4_u8, any::<bool>()), 0..60)) {
            let mut snapshot = Snapshot::default();
            let mut plain = std::collections::BTreeMap::new();
            for (id, name, keep) in steps {
                let (id, name) = (id.to_string(), format!("n{name}"));
                if keep {
                    snapshot.store(entry(&id, &name));
                    plain.insert(id, name);
                } else {
                    snapshot.remove(&id);
                    plain.remove(&id);
                }
            }

            prop_assert_eq!(snapshot.len(), plain.len());
            for name in ["n0", "n1", "n2", "n3"] {
                let mut found: Vec<_> = snapshot.by_key(&format!("A {name}")).map(|entry| entry.id.clone()).collect();
                found.sort();
                let expected: Vec<_> = plain.iter().filter(|(_, n)| *n == name).map(|(id, _)| id.clone()).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
