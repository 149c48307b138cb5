//! The watched collections as controllers see them: parsed, without `managedFields`, by name, by label and by owner.
//!
//! A parsed object takes several times the memory of its text. Pods are many, slices and endpoints large, and a plan reads
//! a few of them: of these only the store's own text is kept, and what was parsed lately.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use portolan_workloads::{ObjectName, View};
use serde_json::{Map, Value};

use crate::api::Api;
use crate::object;
use crate::registry::Resource;
use crate::store::{Event, EventKind, Range, StoredObject};

/// Collections that are kept as text.
const AS_TEXT: [&str; 3] = ["pods", "endpoints", "endpointslices.discovery.k8s.io"];
/// Bytes of text whose objects stay parsed, twice at most, of a collection that is kept as text.
const MOST_RECENT_BYTES: usize = 1 << 20;

pub(super) struct Cache {
    api: Arc<Api>,
    collections: HashMap<Arc<str>, CachedCollection>,
}

struct CachedCollection {
    resource: Arc<Resource>,
    /// Events up to here are in it.
    version: u64,
    objects: BTreeMap<ObjectName, CachedObject>,
    /// Names by namespace and the uid of the controlling owner; empty for those that nothing controls.
    by_owner: HashMap<(String, String), BTreeSet<String>>,
    /// Of a collection that is kept as text.
    recent: Option<Mutex<Recent>>,
}

struct CachedObject {
    /// The uid of the controlling owner; empty where there is none.
    owner: Box<str>,
    stored: Arc<StoredObject>,
    /// Where the collection is not kept as text.
    parsed: Option<Arc<Value>>,
}

/// What was parsed lately, in two halves: where the younger one is full, the older one is forgotten.
#[derive(Default)]
struct Recent {
    /// The text of the younger half.
    bytes: usize,
    young: HashMap<Arc<str>, (u64, Arc<Value>)>,
    old: HashMap<Arc<str>, (u64, Arc<Value>)>,
}

/// An object before and after an event.
pub(super) struct ObjectChange {
    pub(super) before: Option<Arc<Value>>,
    pub(super) after: Option<Arc<Value>>,
}

impl Cache {
    pub(super) fn new<'a>(api: &Arc<Api>, collections: impl Iterator<Item = &'a str>) -> Self {
        let registry = api.registry();
        let collections = collections.filter_map(|name| {
            let resource = registry.by_collection(name)?.clone();
            Some((resource.collection.clone(), CachedCollection::new(resource)))
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
                collection.put(&self.api, stored);
            }
        }
    }

    /// Takes an event in; `None` where nobody looks at its object, or it was in the list already.
    pub(super) fn apply(&mut self, event: &Event, reads: impl Fn(&str, &str) -> bool) -> Option<ObjectChange> {
        let key = &event.object.key;
        let collection = self.collections.get_mut(&key.collection)?;
        if event.version() <= collection.version || !reads(&key.collection, key.name()) {
            return None;
        }
        let before = collection.remove(&self.api, &name_of(&event.object));
        let after = (event.kind != EventKind::Deleted).then(|| collection.put(&self.api, &event.object));
        Some(ObjectChange { before, after })
    }

    pub(super) fn names(&self, collection: &str) -> Vec<ObjectName> {
        self.collections.get(collection).map(|c| c.objects.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn get_object(&self, collection: &str, name: &ObjectName) -> Option<Arc<Value>> {
        let collection = self.collections.get(collection)?;
        collection.objects.get(name).map(|kept| collection.parsed(&self.api, kept))
    }

    /// The objects of a namespace that are wanted, by name; of all namespaces where it is empty.
    fn choose(&self, collection: &str, namespace: &str, wanted: impl Fn(&CachedObject) -> bool) -> Vec<Arc<Value>> {
        let Some(collection) = self.collections.get(collection) else { return Vec::new() };
        let all = collection.inside(namespace).filter(|kept| wanted(kept));
        all.map(|kept| collection.parsed(&self.api, kept)).collect()
    }

    /// The objects that an owner controls, or nothing, and that are wanted, by name.
    fn of_owner(
        &self,
        collection: &str,
        namespace: &str,
        uid: &str,
        wanted: impl Fn(&CachedObject) -> bool,
    ) -> Vec<Arc<Value>> {
        let Some(collection) = self.collections.get(collection) else { return Vec::new() };
        let names = collection.by_owner.get(&(namespace.to_owned(), uid.to_owned()));
        let kept = names.into_iter().flatten().filter_map(|name| {
            let name = ObjectName { namespace: namespace.to_owned(), name: name.clone() };
            collection.objects.get(&name)
        });
        kept.filter(|kept| wanted(kept)).map(|kept| collection.parsed(&self.api, kept)).collect()
    }
}

fn name_of(stored: &StoredObject) -> ObjectName {
    ObjectName { namespace: stored.key.namespace().to_owned(), name: stored.key.name().to_owned() }
}

fn parse(api: &Api, resource: &Resource, stored: &StoredObject) -> Arc<Value> {
    let mut value = api.object(resource, stored);
    object::set_meta(&mut value, "managedFields", None);
    Arc::new(value)
}

impl CachedCollection {
    fn new(resource: Arc<Resource>) -> Self {
        let recent = AS_TEXT.contains(&&*resource.collection).then(Mutex::default);
        Self { resource, version: 0, objects: BTreeMap::new(), by_owner: HashMap::new(), recent }
    }

    /// What is in a namespace, by name; in all of them where it is empty.
    fn inside<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a CachedObject> {
        let first = ObjectName { namespace: namespace.to_owned(), name: String::new() };
        let from_there = self.objects.range(first..);
        let inside = from_there.take_while(move |(name, _)| namespace.is_empty() || name.namespace == namespace);
        inside.map(|(_, kept)| kept)
    }

    fn put(&mut self, api: &Api, stored: &Arc<StoredObject>) -> Arc<Value> {
        let value = parse(api, &self.resource, stored);
        let (name, owner) = (name_of(stored), controller(&value));
        self.by_owner.entry((name.namespace.clone(), owner.to_owned())).or_default().insert(name.name.clone());
        let parsed = match &self.recent {
            Some(recent) => {
                lock(recent).put(stored, value.clone());
                None
            }
            None => Some(value.clone()),
        };
        self.objects.insert(name, CachedObject { owner: owner.into(), stored: stored.clone(), parsed });
        value
    }

    fn remove(&mut self, api: &Api, name: &ObjectName) -> Option<Arc<Value>> {
        let kept = self.objects.remove(name)?;
        let owner = (name.namespace.clone(), kept.owner.to_string());
        if let Some(siblings) = self.by_owner.get_mut(&owner) {
            siblings.remove(&name.name);
            if siblings.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        Some(self.parsed(api, &kept))
    }

    fn parsed(&self, api: &Api, kept: &CachedObject) -> Arc<Value> {
        if let Some(value) = &kept.parsed {
            return value.clone();
        }
        let Some(recent) = &self.recent else { return parse(api, &self.resource, &kept.stored) };
        let mut recent = lock(recent);
        recent.get(&kept.stored).unwrap_or_else(|| {
            let value = parse(api, &self.resource, &kept.stored);
            recent.put(&kept.stored, value.clone());
            value
        })
    }
}

fn lock(recent: &Mutex<Recent>) -> std::sync::MutexGuard<'_, Recent> {
    recent.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recent {
    fn get(&mut self, stored: &StoredObject) -> Option<Arc<Value>> {
        let path = &stored.key.path;
        let (version, value) = self.young.get(path).or_else(|| self.old.get(path))?;
        let value = (*version == stored.version).then(|| value.clone())?;
        if !self.young.contains_key(path) {
            self.put(stored, value.clone());
        }
        Some(value)
    }

    fn put(&mut self, stored: &StoredObject, value: Arc<Value>) {
        if self.bytes >= MOST_RECENT_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += stored.body.tail.len();
        self.young.insert(stored.key.path.clone(), (stored.version, value));
    }
}

/// The uid of the controlling owner; empty where there is none.
fn controller(value: &Value) -> &str {
    let owners = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let uid = owners.into_iter().find(|owner| owner["controller"] == true).and_then(|owner| owner["uid"].as_str());
    uid.unwrap_or_default()
}

/// Whether an object carries all of these labels.
fn carries(stored: &StoredObject, wanted: &Map<String, Value>) -> bool {
    let labels = stored.body.labels.as_deref().unwrap_or_default();
    wanted.iter().all(|(key, value)| {
        let found = labels.binary_search_by(|(name, _)| (**name).cmp(key.as_str()));
        found.is_ok_and(|index| Some(&*labels[index].1) == value.as_str())
    })
}

impl View for Cache {
    fn now(&self) -> Timestamp {
        (self.api.clock)()
    }

    fn get(&self, collection: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.get_object(collection, &ObjectName { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    fn list(&self, collection: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.choose(collection, namespace, |_| true)
    }

    fn visit(&self, collection: &str, namespace: &str, look: &mut dyn FnMut(&Value)) {
        let Some(collection) = self.collections.get(collection) else { return };
        for kept in collection.inside(namespace) {
            match &kept.parsed {
                Some(value) => look(value),
                None => look(&parse(&self.api, &collection.resource, &kept.stored)),
            }
        }
    }

    fn labelled(&self, collection: &str, namespace: &str, labels: &Map<String, Value>) -> Vec<Arc<Value>> {
        self.choose(collection, namespace, |kept| carries(&kept.stored, labels))
    }

    fn controlled_by(&self, collection: &str, namespace: &str, uid: &str) -> Vec<Arc<Value>> {
        self.of_owner(collection, namespace, uid, |_| true)
    }

    fn strays(&self, collection: &str, namespace: &str, labels: &Map<String, Value>) -> Vec<Arc<Value>> {
        self.of_owner(collection, namespace, "", |kept| carries(&kept.stored, labels))
    }
}
