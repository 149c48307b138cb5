//! Whole objects of a kind that has few, readable at any time without waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, RwLock};

use futures::StreamExt as _;
use kube::{Api, Resource as _};
use portolan_core::ObjectKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::identity::{key_of, version_of};
use crate::raw::{Body, Raw};
use crate::reconcile::Object;
use crate::task::Task;
use crate::watch::{Following, Selection, Sighting, follow};

type Listener<K> = Box<dyn Fn(Option<&K>, Option<&K>) + Send + Sync>;

/// A mirror of a collection. Clones share it.
pub struct Cache<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    objects: RwLock<BTreeMap<ObjectKey, Arc<K>>>,
    listeners: Mutex<Vec<Listener<K>>>,
    ready: watch::Sender<bool>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let inner = Inner {
            objects: RwLock::new(BTreeMap::new()),
            listeners: Mutex::new(Vec::new()),
            ready: watch::channel(false).0,
        };
        Self { inner: Arc::new(inner) }
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
        self.inner.listeners.lock().expect("no listener panics").push(Box::new(listener));
    }

    /// The task that fills the cache and keeps it true.
    pub fn into_task(&self, context: &Context, shutdown: CancellationToken) -> Task {
        let following = Following {
            resource: K::plural(&()).into_owned(),
            selection: Selection::all(),
            seed: context.seed,
            metrics: context.metrics.clone(),
        };
        let mut sightings = follow(Api::<Raw<K>>::all(context.client.clone()), following);
        let (cache, ready) = (self.clone(), self.clone());
        let run = async move {
            let mut listing = None;
            let fill = async {
                while let Some(sighting) = sightings.next().await {
                    cache.see(sighting, &mut listing);
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = fill => {}
            }
        };
        Task::new("cache", move || usize::from(!ready.is_ready()), run)
    }

    fn objects(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<ObjectKey, Arc<K>>> {
        self.inner.objects.read().expect("nothing panics while it is held")
    }

    fn see(&self, sighting: Sighting<Raw<K>>, listing: &mut Option<BTreeSet<ObjectKey>>) {
        match sighting {
            Sighting::Restarted => *listing = Some(BTreeSet::new()),
            Sighting::Found(raw) => {
                if let Some(listing) = listing {
                    listing.insert(key_of(raw.meta()));
                }
                self.arrived(raw);
            }
            Sighting::Changed(raw) => self.arrived(raw),
            Sighting::Gone(raw) => self.put(key_of(raw.meta()), None),
            Sighting::Listed => {
                let listed = listing.take().unwrap_or_default();
                let gone: Vec<_> = self.objects().keys().filter(|key| !listed.contains(*key)).cloned().collect();
                for key in gone {
                    self.put(key, None);
                }
                self.inner.ready.send_replace(true);
            }
            Sighting::Failed { missing } => {
                if missing {
                    self.inner.ready.send_replace(true);
                }
            }
        }
    }

    fn arrived(&self, raw: Raw<K>) {
        let (key, version) = (key_of(raw.meta()), version_of(raw.meta()));
        let known = self.get(&key).map(|object| version_of(object.meta()));
        if version != 0 && known == Some(version) {
            return;
        }
        match raw.body {
            Body::Typed(object) => self.put(key, Some(Arc::new(*object))),
            // Its own controller says so; here it is as good as absent.
            Body::Malformed(_) => self.put(key, None),
        }
    }

    fn put(&self, key: ObjectKey, object: Option<Arc<K>>) {
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
        for listener in self.inner.listeners.lock().expect("no listener panics").iter() {
            listener(before.as_deref(), object.as_deref());
        }
    }
}
