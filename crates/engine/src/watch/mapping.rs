//! Objects of other kinds that make a controller's objects run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use portolan_core::ObjectKey;
use tokio::sync::oneshot;

use crate::dispatch::fingerprint::{key_of, version_of};
use crate::dispatch::handle::Handle;
use crate::dispatch::store::Store;
use crate::watch::CollectionEvent;

/// What became of an object of another kind.
#[derive(Debug)]
pub enum Related<'a, K> {
    /// It is there, new or changed.
    Here(&'a K),
    /// It is gone, or no longer what its kind should be.
    Gone(&'a ObjectKey),
}

type Map<K, P> = Arc<dyn Fn(Related<'_, K>, &Store<P>) -> Vec<ObjectKey> + Send + Sync>;

/// A watch whose events enqueue.
pub(crate) struct MappedWatch<K, P> {
    events: BoxStream<'static, CollectionEvent<K>>,
    map: Map<K, P>,
    /// What every object named when it was seen last, and in which version that was.
    named: BTreeMap<ObjectKey, (u64, Vec<ObjectKey>)>,
    listing: Option<BTreeSet<ObjectKey>>,
}

impl<K: kube::Resource, P> MappedWatch<K, P> {
    pub(crate) fn new(
        events: BoxStream<'static, CollectionEvent<K>>,
        map: impl Fn(Related<'_, K>, &Store<P>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        Self { events, map: Arc::new(map), named: BTreeMap::new(), listing: None }
    }

    /// Enqueues for good; tells when the first list is complete, or could not be had.
    pub(crate) async fn run(mut self, handle: Handle<P>, listed: oneshot::Sender<()>) {
        let mut listed = Some(listed);
        while let Some(event) = self.events.next().await {
            let settled = matches!(event, CollectionEvent::Listed | CollectionEvent::Failed { .. });
            let keys = self.touched(event, &handle);
            if !keys.is_empty() {
                handle.enqueue_all(&keys);
            }
            if settled && let Some(listed) = listed.take() {
                // Nobody may be waiting any longer.
                let _ = listed.send(());
            }
        }
    }

    fn touched(&mut self, event: CollectionEvent<K>, handle: &Handle<P>) -> BTreeSet<ObjectKey> {
        match event {
            CollectionEvent::Restarted => {
                self.listing = Some(BTreeSet::new());
                BTreeSet::new()
            }
            CollectionEvent::Found(object) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(key_of(object.meta()));
                }
                self.here(&object, handle)
            }
            CollectionEvent::Changed(object) => self.here(&object, handle),
            CollectionEvent::Gone(object) => self.gone(&key_of(object.meta()), handle),
            CollectionEvent::Listed => self.absent(handle),
            CollectionEvent::Failed { .. } => BTreeSet::new(),
        }
    }

    fn here(&mut self, object: &K, handle: &Handle<P>) -> BTreeSet<ObjectKey> {
        let (key, version) = (key_of(object.meta()), version_of(object.meta()));
        if version != 0 && self.named.get(&key).is_some_and(|(known, _)| *known == version) {
            return BTreeSet::new();
        }
        let names = handle.read(|store| (self.map)(Related::Here(object), store));
        let before = self.named.insert(key, (version, names.clone()));
        names.into_iter().chain(before.into_iter().flat_map(|(_, names)| names)).collect()
    }

    fn gone(&mut self, key: &ObjectKey, handle: &Handle<P>) -> BTreeSet<ObjectKey> {
        let names = handle.read(|store| (self.map)(Related::Gone(key), store));
        let before = self.named.remove(key);
        names.into_iter().chain(before.into_iter().flat_map(|(_, names)| names)).collect()
    }

    fn absent(&mut self, handle: &Handle<P>) -> BTreeSet<ObjectKey> {
        let Some(listing) = self.listing.take() else { return BTreeSet::new() };
        let gone: Vec<ObjectKey> = self.named.keys().filter(|key| !listing.contains(*key)).cloned().collect();
        gone.iter().flat_map(|key| self.gone(key, handle)).collect()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;

    use super::*;

    fn map(name: &str, version: &str, names: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                resource_version: Some(version.to_owned()),
                labels: Some([("names".to_owned(), names.to_owned())].into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    fn trigger() -> MappedWatch<ConfigMap, ()> {
        MappedWatch::new(futures::stream::pending().boxed(), |seen, _| match seen {
            Related::Here(map) => {
                map.metadata.labels.iter().flatten().map(|(_, name)| ObjectKey::cluster(name)).collect()
            }
            Related::Gone(_) => Vec::new(),
        })
    }

    fn names(keys: &BTreeSet<ObjectKey>) -> Vec<&str> {
        keys.iter().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn what_an_object_names_now_and_named_before_runs() {
        let (mut trigger, handle) = (trigger(), Handle::new());

        assert_eq!(names(&trigger.touched(CollectionEvent::Changed(map("m", "1", "a")), &handle)), ["a"]);
        assert_eq!(names(&trigger.touched(CollectionEvent::Changed(map("m", "2", "b")), &handle)), ["a", "b"]);
        assert_eq!(names(&trigger.touched(CollectionEvent::Gone(map("m", "3", "b")), &handle)), ["b"]);
    }

    #[test]
    fn a_list_that_brings_nothing_new_makes_nothing_run() {
        let (mut trigger, handle) = (trigger(), Handle::new());
        trigger.touched(CollectionEvent::Changed(map("m", "1", "a")), &handle);

        trigger.touched(CollectionEvent::Restarted, &handle);

        assert!(trigger.touched(CollectionEvent::Found(map("m", "1", "a")), &handle).is_empty());
        assert!(trigger.touched(CollectionEvent::Listed, &handle).is_empty());
    }

    #[test]
    fn an_object_that_is_missing_from_a_list_is_gone() {
        let (mut trigger, handle) = (trigger(), Handle::new());
        trigger.touched(CollectionEvent::Changed(map("m", "1", "a")), &handle);

        trigger.touched(CollectionEvent::Restarted, &handle);

        assert_eq!(names(&trigger.touched(CollectionEvent::Listed, &handle)), ["a"]);
    }
}
