//! Whole objects of a kind that has few, readable at any time without waiting.
//!
//! What we write ourselves can be told to the cache, so that the next reader sees it though the watch has not brought it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use futures::StreamExt as _;
use kube::Resource as _;
use kube::api::ObjectMeta;
use portolan_core::ObjectKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::dispatch::fingerprint::{key_of, version_of};
use crate::jobs::task::Task;
use crate::reconcile::Object;
use crate::watch::guarded::{Guarded, GuardedBody};
use crate::watch::{CollectionEvent, Following, Selection, follow};

/// What a cache can say of an object, for readers to whom "there is none" means less protection.
#[derive(Debug)]
pub enum Lookup<K> {
    /// It is there.
    Found(Arc<K>),
    /// There is none.
    Absent,
    /// Nobody can tell.
    Unknown(Doubt),
}

/// Why nobody can tell whether there is an object, or what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It is there, and does not parse as its kind.
    Malformed,
    /// The server does not serve the kind, or has not listed it yet: it may be back in a moment, and its objects with it.
    Unlisted,
}

type Listener<K> = Box<dyn Fn(Option<&K>, Option<&K>) + Send + Sync>;

type Doubter = Box<dyn Fn() + Send + Sync>;

/// Acts as long as the owner lives.
fn weakly<T, K, F: Fn(&T, Option<&K>, Option<&K>)>(
    owner: &Arc<T>,
    act: F,
) -> impl Fn(Option<&K>, Option<&K>) + use<T, K, F> {
    let owner = Arc::downgrade(owner);
    move |before, after| {
        if let Some(owner) = owner.upgrade() {
            act(&owner, before, after);
        }
    }
}

/// Which changes a listener hears of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hears {
    /// All.
    Everything,
    /// Those that the watch brought.
    Watch,
}

/// A mirror of a collection. Clones share it.
pub struct Cache<K> {
    inner: Arc<Inner<K>>,
    /// Takes off what need not be kept of an object.
    trim: fn(&mut K),
}

struct Inner<K> {
    selection: Selection,
    objects: RwLock<BTreeMap<ObjectKey, Arc<K>>>,
    /// Keys of the list under way.
    listing: Mutex<Option<BTreeSet<ObjectKey>>>,
    /// Uids of objects that we deleted and that the watch may still bring.
    deleted: Mutex<BTreeMap<ObjectKey, String>>,
    listeners: Mutex<Vec<(Listener<K>, Hears)>>,
    /// Objects that are there and do not parse.
    malformed: Mutex<BTreeSet<ObjectKey>>,
    /// Whether the server said last that it does not know the kind.
    missing: AtomicBool,
    /// Who hears that something that was in doubt is not any more, or the other way round.
    doubters: Mutex<Vec<Doubter>>,
    ready: watch::Sender<bool>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), trim: self.trim }
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self::of(Selection::all())
    }
}

impl<K> Cache<K> {
    /// An empty cache of some of the objects.
    pub fn of(selection: Selection) -> Self {
        let inner = Inner {
            selection,
            objects: RwLock::new(BTreeMap::new()),
            listing: Mutex::default(),
            deleted: Mutex::default(),
            listeners: Mutex::new(Vec::new()),
            malformed: Mutex::default(),
            missing: AtomicBool::new(false),
            doubters: Mutex::default(),
            ready: watch::channel(false).0,
        };
        Self { inner: Arc::new(inner), trim: |_| {} }
    }

    /// Keeps no more of each object than `trim` leaves: what nobody reads need not stay in memory.
    #[must_use]
    pub fn trimming(self, trim: fn(&mut K)) -> Self {
        Self { trim, ..self }
    }
}

impl<K: Object> Cache<K> {
    /// An empty cache; [`into_task`](Self::into_task) fills it.
    pub fn new() -> Self {
        Self::default()
    }

    /// An object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.objects().get(key).cloned()
    }

    /// An object, for readers to whom "there is none" means less protection: what does not parse, and all objects of a
    /// kind that is not served, are unknown.
    pub fn look_up(&self, key: &ObjectKey) -> Lookup<K> {
        if !self.is_ready() || self.inner.missing.load(Ordering::Acquire) {
            return Lookup::Unknown(Doubt::Unlisted);
        }
        if self.malformed().contains(key) {
            return Lookup::Unknown(Doubt::Malformed);
        }
        self.get(key).map_or(Lookup::Absent, Lookup::Found)
    }

    /// Calls back when [`look_up`](Self::look_up) may answer otherwise though no object that parses has changed.
    pub fn on_doubt(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.inner.doubters.lock().expect("no listener panics").push(Box::new(listener));
    }

    /// All objects, by key.
    pub fn iter(&self) -> impl Iterator<Item = Arc<K>> + use<K> {
        self.objects().values().cloned().collect::<Vec<_>>().into_iter()
    }

    /// Waits until the first list is complete. A kind that the server does not know is complete.
    pub async fn ready(&self) {
        let mut ready = self.inner.ready.subscribe();
        // The sender lives as long as the cache.
        let _ = ready.wait_for(|ready| *ready).await;
    }

    /// Whether the first list is complete.
    pub fn is_ready(&self) -> bool {
        *self.inner.ready.borrow()
    }

    /// Calls back with every object before and after its change. The callback may read the cache and must not wait.
    pub fn on_change(&self, listener: impl Fn(Option<&K>, Option<&K>) + Send + Sync + 'static) {
        self.listen(Box::new(listener), Hears::Everything);
    }

    /// As [`on_change`](Self::on_change), without what [`wrote`](Self::wrote) and [`deleted`](Self::deleted) told: who
    /// wrote it knows.
    pub fn on_seen(&self, listener: impl Fn(Option<&K>, Option<&K>) + Send + Sync + 'static) {
        self.listen(Box::new(listener), Hears::Watch);
    }

    /// As [`on_change`](Self::on_change), for an owner that the cache does not keep alive: it may own the cache.
    pub fn follow<T: Send + Sync + 'static>(
        &self,
        owner: &Arc<T>,
        act: impl Fn(&T, Option<&K>, Option<&K>) + Send + Sync + 'static,
    ) {
        self.on_change(weakly(owner, act));
    }

    /// As [`on_seen`](Self::on_seen), for an owner that the cache does not keep alive.
    pub fn follow_seen<T: Send + Sync + 'static>(
        &self,
        owner: &Arc<T>,
        act: impl Fn(&T, Option<&K>, Option<&K>) + Send + Sync + 'static,
    ) {
        self.on_seen(weakly(owner, act));
    }

    fn listen(&self, listener: Listener<K>, hears: Hears) {
        self.inner.listeners.lock().expect("no listener panics").push((listener, hears));
    }

    /// Takes in an object as our own write left it.
    pub fn wrote(&self, object: K) {
        let key = key_of(object.meta());
        if let Some(listing) = self.inner.listing.lock().expect("nothing panics while it is held").as_mut() {
            // The list may have been made before the write.
            listing.insert(key.clone());
        }
        if !self.is_old(object.meta()) {
            self.put(key.clone(), Some(Arc::new(object)), Hears::Everything);
            self.set_malformed(&key, false);
        }
    }

    /// Takes out an object that we deleted; one of the same name that is newer stays.
    pub fn deleted(&self, key: &ObjectKey, uid: &str) {
        self.inner.deleted.lock().expect("nothing panics while it is held").insert(key.clone(), uid.to_owned());
        self.take_out(key, Some(uid), Hears::Everything);
    }

    /// The task that fills the cache and keeps it true.
    pub fn into_task(&self, context: &Context, shutdown: CancellationToken) -> Task {
        let selection = self.inner.selection.clone();
        let api = selection.api::<Guarded<K>>(&context.client);
        let following = Following {
            resource: K::plural(&()).into_owned(),
            selection,
            seed: context.seed,
            metrics: context.metrics.clone(),
        };
        let mut events = follow(api, following);
        let (cache, ready) = (self.clone(), self.clone());
        let run = async move {
            let fill = async {
                while let Some(event) = events.next().await {
                    cache.see(event);
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = fill => {}
            }
        };
        let listed = self.clone();
        Task::new(K::plural(&()).into_owned(), move || usize::from(!ready.is_ready()), run)
            .lacking(move || (!listed.is_ready()).then_some("its first list is not complete"))
    }

    fn objects(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<ObjectKey, Arc<K>>> {
        self.inner.objects.read().expect("nothing panics while it is held")
    }

    fn see(&self, event: CollectionEvent<Guarded<K>>) {
        match event {
            CollectionEvent::Restarted => *self.listing() = Some(BTreeSet::new()),
            CollectionEvent::Found(raw) => {
                if let Some(listing) = self.listing().as_mut() {
                    listing.insert(key_of(raw.meta()));
                }
                self.arrived(raw);
            }
            CollectionEvent::Changed(raw) => self.arrived(raw),
            CollectionEvent::Gone(raw) => self.gone(raw.meta()),
            CollectionEvent::Listed => self.listed(),
            CollectionEvent::Failed { missing } => {
                if missing {
                    self.set_missing(true);
                    self.inner.ready.send_replace(true);
                }
            }
        }
    }

    fn listing(&self) -> MutexGuard<'_, Option<BTreeSet<ObjectKey>>> {
        self.inner.listing.lock().expect("nothing panics while it is held")
    }

    fn listed(&self) {
        let listed = self.listing().take().unwrap_or_default();
        let gone: Vec<_> = self.objects().keys().filter(|key| !listed.contains(*key)).cloned().collect();
        for key in gone {
            self.put(key, None, Hears::Watch);
        }
        self.inner.deleted.lock().expect("nothing panics while it is held").retain(|key, _| listed.contains(key));
        let stale: Vec<_> = self.malformed().iter().filter(|key| !listed.contains(*key)).cloned().collect();
        for key in &stale {
            self.set_malformed(key, false);
        }
        self.set_missing(false);
        self.inner.ready.send_replace(true);
    }

    fn malformed(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.inner.malformed.lock().expect("nothing panics while it is held")
    }

    fn set_malformed(&self, key: &ObjectKey, malformed: bool) {
        let changed = if malformed { self.malformed().insert(key.clone()) } else { self.malformed().remove(key) };
        if changed {
            self.tell_doubters();
        }
    }

    fn set_missing(&self, missing: bool) {
        if self.inner.missing.swap(missing, Ordering::AcqRel) != missing {
            self.tell_doubters();
        }
    }

    fn tell_doubters(&self) {
        for doubter in self.inner.doubters.lock().expect("no listener panics").iter() {
            doubter();
        }
    }

    fn arrived(&self, raw: Guarded<K>) {
        let key = key_of(raw.meta());
        if self.is_old(raw.meta()) {
            return;
        }
        match raw.body {
            GuardedBody::Typed(mut object) => {
                (self.trim)(&mut object);
                self.put(key.clone(), Some(Arc::new(*object)), Hears::Watch);
                self.set_malformed(&key, false);
            }
            // Its own controller says so; here it is as good as absent, except for those who look it up.
            GuardedBody::Malformed(_) => {
                self.set_malformed(&key, true);
                self.put(key, None, Hears::Watch);
            }
        }
    }

    /// Whether an object is known in this version or a newer one, or was deleted by us.
    fn is_old(&self, meta: &ObjectMeta) -> bool {
        let (key, version) = (key_of(meta), version_of(meta));
        let deleted = self.inner.deleted.lock().expect("nothing panics while it is held").get(&key).cloned();
        let known = self.get(&key).map(|object| version_of(object.meta()));
        deleted.is_some_and(|uid| meta.uid.as_deref() == Some(uid.as_str()))
            || (version != 0 && known.is_some_and(|known| known >= version))
    }

    /// The watch says that an object is gone.
    fn gone(&self, meta: &ObjectMeta) {
        let key = key_of(meta);
        let mut deleted = self.inner.deleted.lock().expect("nothing panics while it is held");
        if deleted.get(&key) == meta.uid.as_ref() {
            deleted.remove(&key);
        }
        drop(deleted);
        self.set_malformed(&key, false);
        self.take_out(&key, meta.uid.as_deref(), Hears::Watch);
    }

    fn take_out(&self, key: &ObjectKey, uid: Option<&str>, who: Hears) {
        if self.get(key).is_some_and(|known| known.meta().uid.as_deref() == uid) {
            self.put(key.clone(), None, who);
        }
    }

    /// Takes a change in and tells those who hear of everything, or of what the watch brings.
    fn put(&self, key: ObjectKey, object: Option<Arc<K>>, who: Hears) {
        let before = {
            let mut objects = self.inner.objects.write().expect("nothing panics while it is held");
            match object.clone() {
                Some(object) => objects.insert(key, object),
                None => objects.remove(&key),
            }
        };
        if before.is_none() && object.is_none() {
            return;
        }
        for (listener, hears) in self.inner.listeners.lock().expect("no listener panics").iter() {
            if *hears == Hears::Everything || who == Hears::Watch {
                listener(before.as_deref(), object.as_deref());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(uid: &str, version: u64) -> ConfigMap {
        let metadata = ObjectMeta {
            name: Some("a".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    fn seen(uid: &str, version: u64) -> Guarded<ConfigMap> {
        serde_json::from_value(serde_json::to_value(map(uid, version)).unwrap()).unwrap()
    }

    fn version(cache: &Cache<ConfigMap>) -> Option<u64> {
        cache.get(&ObjectKey::cluster("a")).map(|map| version_of(&map.metadata))
    }

    #[test]
    fn an_own_write_is_seen_at_once_and_older_sightings_do_not_undo_it() {
        let cache = Cache::new();
        cache.see(CollectionEvent::Changed(seen("u", 5)));

        cache.wrote(map("u", 7));
        cache.see(CollectionEvent::Changed(seen("u", 6)));

        assert_eq!(version(&cache), Some(7));
    }

    #[test]
    fn an_own_deletion_is_not_undone_by_a_late_sighting_and_a_new_object_is_taken_in() {
        let cache = Cache::new();
        cache.wrote(map("u", 5));
        cache.deleted(&ObjectKey::cluster("a"), "u");

        cache.see(CollectionEvent::Changed(seen("u", 6)));
        assert_eq!(version(&cache), None);
        cache.see(CollectionEvent::Changed(seen("v", 8)));
        assert_eq!(version(&cache), Some(8));
        cache.see(CollectionEvent::Gone(seen("u", 7)));

        assert_eq!(version(&cache), Some(8), "the object that went was another one");
    }

    #[test]
    fn who_hears_of_the_watch_alone_is_not_told_of_own_writes() {
        let (cache, all, watched) = (Cache::new(), Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let (count, other) = (Arc::clone(&all), Arc::clone(&watched));
        cache.on_change(move |_, _| *count.lock().unwrap() += 1);
        cache.on_seen(move |_, _| *other.lock().unwrap() += 1);

        cache.wrote(map("u", 5));
        cache.see(CollectionEvent::Changed(seen("u", 5)));
        cache.see(CollectionEvent::Changed(seen("u", 6)));
        cache.deleted(&ObjectKey::cluster("a"), "u");

        assert_eq!((*all.lock().unwrap(), *watched.lock().unwrap()), (3, 1));
    }

    fn shown(cache: &Cache<ConfigMap>) -> &'static str {
        match cache.look_up(&ObjectKey::cluster("a")) {
            Lookup::Found(_) => "found",
            Lookup::Absent => "absent",
            Lookup::Unknown(Doubt::Malformed) => "malformed",
            Lookup::Unknown(Doubt::Unlisted) => "unlisted",
        }
    }

    fn broken(uid: &str, version: u64) -> Guarded<ConfigMap> {
        let mut object = serde_json::to_value(map(uid, version)).unwrap();
        object["data"] = serde_json::json!(7);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn finding_2_what_does_not_parse_is_unknown_and_not_absent() {
        let (cache, told) = (Cache::new(), Arc::new(Mutex::new(0)));
        let count = Arc::clone(&told);
        cache.on_doubt(move || *count.lock().unwrap() += 1);
        assert_eq!(shown(&cache), "unlisted");
        cache.see(CollectionEvent::Restarted);
        cache.see(CollectionEvent::Found(seen("u", 5)));
        cache.see(CollectionEvent::Listed);
        assert_eq!(shown(&cache), "found");

        cache.see(CollectionEvent::Changed(broken("u", 6)));
        assert_eq!((shown(&cache), version(&cache)), ("malformed", None));
        cache.see(CollectionEvent::Changed(seen("u", 7)));
        assert_eq!(shown(&cache), "found");
        cache.see(CollectionEvent::Changed(broken("u", 8)));
        cache.see(CollectionEvent::Gone(broken("u", 9)));
        assert_eq!(shown(&cache), "absent");
        cache.see(CollectionEvent::Changed(broken("v", 10)));
        cache.see(CollectionEvent::Restarted);
        cache.see(CollectionEvent::Listed);

        assert_eq!((shown(&cache), *told.lock().unwrap()), ("absent", 6));
    }

    #[test]
    fn finding_2_a_kind_that_is_not_served_is_unknown_and_not_empty() {
        let (cache, told) = (Cache::new(), Arc::new(Mutex::new(0)));
        let count = Arc::clone(&told);
        cache.on_doubt(move || *count.lock().unwrap() += 1);
        cache.see(CollectionEvent::Failed { missing: true });
        assert_eq!((shown(&cache), cache.is_ready()), ("unlisted", true));
        cache.see(CollectionEvent::Restarted);
        cache.see(CollectionEvent::Found(seen("u", 5)));
        cache.see(CollectionEvent::Listed);
        assert_eq!(shown(&cache), "found");

        cache.see(CollectionEvent::Failed { missing: false });
        assert_eq!(shown(&cache), "found", "a broken watch says nothing about the kind");
        cache.see(CollectionEvent::Failed { missing: true });

        assert_eq!((shown(&cache), *told.lock().unwrap()), ("unlisted", 3));
    }

    #[test]
    fn what_is_written_while_a_list_is_under_way_outlives_it() {
        let cache = Cache::new();
        cache.see(CollectionEvent::Restarted);

        cache.wrote(map("u", 5));
        cache.see(CollectionEvent::Listed);

        assert_eq!(version(&cache), Some(5));
    }

    #[test]
    fn finding_25_what_nobody_reads_of_an_object_is_not_kept() {
        let cache = Cache::new().trimming(|map: &mut ConfigMap| map.data = None);
        let large = |version: u64| {
            let mut object = serde_json::to_value(map("u", version)).unwrap();
            object["data"] = serde_json::json!({"blob": "x".repeat(1 << 20)});
            serde_json::from_value(object).unwrap()
        };

        cache.see(CollectionEvent::Found(large(5)));
        cache.see(CollectionEvent::Changed(large(6)));

        let kept = cache.get(&ObjectKey::cluster("a")).unwrap();
        assert_eq!((version(&cache), kept.data.as_ref()), (Some(6), None));
    }
}
