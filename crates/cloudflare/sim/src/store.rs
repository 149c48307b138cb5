//! The objects of one collection in one scope: by id, by natural key, in the order they were made.

pub(crate) mod ids;
pub(crate) mod lag;
pub(crate) mod seed;
pub(crate) mod snapshot;
pub(crate) mod state;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// Objects in creation order, with an index over a key that is computed from each.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    key: fn(&Value) -> String,
    next: u64,
    objects: BTreeMap<u64, StoredItem>,
    ids: HashMap<String, u64>,
    keys: BTreeMap<String, BTreeSet<u64>>,
}

/// An object, and the same as JSON text: lists are long, and are written more often than their objects change.
#[derive(Clone, Debug)]
pub(crate) struct StoredItem {
    pub(crate) value: Value,
    pub(crate) text: Box<str>,
}

/// How to take one change back.
#[derive(Debug)]
pub(crate) enum Undo {
    /// The object with this id was made.
    Insert(String),
    /// The object looked like this.
    Replace(Value),
    /// The object was at this place.
    Remove(u64, Value),
}

impl Rows {
    pub(crate) fn new(key: fn(&Value) -> String) -> Self {
        Self { key, next: 0, objects: BTreeMap::new(), ids: HashMap::new(), keys: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Value> {
        Some(&self.stored(id)?.value)
    }

    pub(crate) fn stored(&self, id: &str) -> Option<&StoredItem> {
        self.objects.get(self.ids.get(id)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().map(|stored| &stored.value)
    }

    pub(crate) fn iter_stored(&self) -> impl Iterator<Item = &StoredItem> {
        self.objects.values()
    }

    /// Objects with this natural key.
    pub(crate) fn by_key<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.keys.get(key).into_iter().flatten().filter_map(|place| Some(&self.objects.get(place)?.value))
    }

    pub(crate) fn insert(&mut self, value: Value) -> Undo {
        let place = self.next;
        self.next += 1;
        let id = id_of(&value).to_owned();
        self.put_at(place, value);
        Undo::Insert(id)
    }

    /// Replaces the object with the same id; `None` when there is none.
    pub(crate) fn replace(&mut self, value: Value) -> Option<Undo> {
        let place = *self.ids.get(id_of(&value))?;
        let old = self.take_at(place)?;
        self.put_at(place, value);
        Some(Undo::Replace(old))
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Undo> {
        let place = *self.ids.get(id)?;
        let old = self.take_at(place)?;
        Some(Undo::Remove(place, old))
    }

    /// Takes changes back, the last one first.
    pub(crate) fn undo(&mut self, changes: Vec<Undo>) {
        for change in changes.into_iter().rev() {
            match change {
                Undo::Insert(id) => {
                    self.remove(&id);
                }
                Undo::Replace(old) => {
                    self.replace(old);
                }
                Undo::Remove(place, old) => self.put_at(place, old),
            }
        }
    }

    fn put_at(&mut self, place: u64, value: Value) {
        self.keys.entry((self.key)(&value)).or_default().insert(place);
        self.ids.insert(id_of(&value).to_owned(), place);
        let text = value.to_string().into_boxed_str();
        self.objects.insert(place, StoredItem { value, text });
    }

    fn take_at(&mut self, place: u64) -> Option<Value> {
        let old = self.objects.remove(&place)?.value;
        self.ids.remove(id_of(&old));
        let key = (self.key)(&old);
        if let Some(places) = self.keys.get_mut(&key) {
            places.remove(&place);
            if places.is_empty() {
                self.keys.remove(&key);
            }
        }
        Some(old)
    }
}

/// The `id` of an object.
pub(crate) fn id_of(value: &Value) -> &str {
    text(value, "id")
}

/// A text member, or `""`.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a boolean member is set.
pub(crate) fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// Whether the object was deleted but is still listed.
pub(crate) fn is_deleted(value: &Value) -> bool {
    value.get("deleted_at").is_some_and(|at| !at.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn undoing_restores_objects_order_and_index() {
        let mut rows = Rows::new(|value| text(value, "name").to_owned());
        for (id, name) in [("1", "a"), ("2", "b"), ("3", "a")] {
            rows.insert(json!({"id": id, "name": name}));
        }
        let before: Vec<Value> = rows.iter().cloned().collect();

        let mut changes = vec![rows.remove("2").unwrap(), rows.insert(json!({"id": "4", "name": "c"}))];
        changes.push(rows.replace(json!({"id": "1", "name": "z"})).unwrap());
        assert_eq!(rows.by_key("a").count(), 1);
        rows.undo(changes);

        assert_eq!(rows.iter().cloned().collect::<Vec<_>>(), before);
        assert_eq!(rows.by_key("a").count(), 2);
        assert_eq!(rows.by_key("c").count(), 0);
    }
}
