//! The watched collections in memory, as controllers see them: parsed, without `managedFields`, by name and by owner.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use portolan_workloads::{Name, View};
use serde_json::Value;

use crate::api::Api;
use crate::object;
use crate::registry::Resource;
use crate::store::{Event, EventKind, Range, Stored};

pub(super) struct Cache {
    api: Arc<Api>,
    collections: HashMap<Arc<str>, Collection>,
}

struct Collection {
    resource: Arc<Resource>,
    /// Events up to here are in it.
    version: u64,
    objects: BTreeMap<Name, Arc<Value>>,
    /// By namespace and the uid of the controlling owner; empty for those that nothing controls.
    by_owner: HashMap<(String, String), BTreeMap<String, Arc<Value>>>,
}

/// An object before and after an event.
pub(super) struct Seen {
    pub(super) before: Option<Arc<Value>>,
    pub(super) after: Option<Arc<Value>>,
}

impl Cache {
    pub(super) fn new<'a>(api: &Arc<Api>, collections: impl Iterator<Item = &'a str>) -> Self {
        let registry = api.registry();
        let collections = collections.filter_map(|name| {
            let resource = registry.by_collection(name)?.clone();
            let (objects, by_owner) = (BTreeMap::new(), HashMap::new());
            Some((resource.collection.clone(), Collection { resource, version: 0, objects, by_owner }))
        });
        Self { api: api.clone(), collections: collections.collect() }
    }

    /// Reads what is looked at of all collections as they are now.
    pub(super) fn fill(&mut self, reads: impl Fn(&str, &str) -> bool) {
        for (name, collection) in &mut self.collections {
            let range = Range { collection: name, prefix: "", after: "", at: None };
            let Ok(listing) = self.api.store.list(&range) else { continue };
            collection.version = listing.version;
            for stored in listing.objects.iter().filter(|stored| reads(name, stored.key.name())) {
                collection.put(parse(&self.api, &collection.resource, stored));
            }
        }
    }

    /// Takes an event in; `None` where nobody looks at its object, or it was in the list already.
    pub(super) fn apply(&mut self, event: &Event, reads: impl Fn(&str, &str) -> bool) -> Option<Seen> {
        let key = &event.object.key;
        let collection = self.collections.get_mut(&key.collection)?;
        if event.version() <= collection.version || !reads(&key.collection, key.name()) {
            return None;
        }
        let name = Name { namespace: key.namespace().to_owned(), name: key.name().to_owned() };
        let before = collection.remove(&name);
        let after = (event.kind != EventKind::Deleted)
            .then(|| collection.put(parse(&self.api, &collection.resource, &event.object)));
        Some(Seen { before, after })
    }

    pub(super) fn names(&self, collection: &str) -> Vec<Name> {
        self.collections.get(collection).map(|c| c.objects.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn get_object(&self, collection: &str, name: &Name) -> Option<Arc<Value>> {
        self.collections.get(collection)?.objects.get(name).cloned()
    }
}

fn parse(api: &Api, resource: &Resource, stored: &Stored) -> Value {
    let mut value = api.object(resource, stored);
    object::set_meta(&mut value, "managedFields", None);
    value
}

impl Collection {
    fn put(&mut self, value: Value) -> Arc<Value> {
        let name = Name { namespace: object::namespace(&value).to_owned(), name: object::name(&value).to_owned() };
        let value = Arc::new(value);
        let siblings = self.by_owner.entry((name.namespace.clone(), controller(&value).to_owned())).or_default();
        siblings.insert(name.name.clone(), value.clone());
        self.objects.insert(name, value.clone());
        value
    }

    fn remove(&mut self, name: &Name) -> Option<Arc<Value>> {
        let value = self.objects.remove(name)?;
        let owner = (name.namespace.clone(), controller(&value).to_owned());
        if let Some(siblings) = self.by_owner.get_mut(&owner) {
            siblings.remove(&name.name);
            if siblings.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        Some(value)
    }
}

/// The uid of the controlling owner; empty where there is none.
fn controller(value: &Value) -> &str {
    let owners = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let uid = owners.into_iter().find(|owner| owner["controller"] == true).and_then(|owner| owner["uid"].as_str());
    uid.unwrap_or_default()
}

impl View for Cache {
    fn now(&self) -> Timestamp {
        (self.api.clock)()
    }

    fn get(&self, collection: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.get_object(collection, &Name { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    fn list(&self, collection: &str, namespace: &str) -> Vec<Arc<Value>> {
        let Some(collection) = self.collections.get(collection) else { return Vec::new() };
        if namespace.is_empty() {
            return collection.objects.values().cloned().collect();
        }
        let first = Name { namespace: namespace.to_owned(), name: String::new() };
        let from_there = collection.objects.range(first..);
        from_there.take_while(|(name, _)| name.namespace == namespace).map(|(_, object)| object.clone()).collect()
    }

    fn controlled_by(&self, collection: &str, namespace: &str, uid: &str) -> Vec<Arc<Value>> {
        let collection = self.collections.get(collection);
        let owner = (namespace.to_owned(), uid.to_owned());
        let siblings = collection.and_then(|collection| collection.by_owner.get(&owner));
        siblings.map(|siblings| siblings.values().cloned().collect()).unwrap_or_default()
    }
}
