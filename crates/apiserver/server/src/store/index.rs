//! The state in memory: current objects and recent events by collection.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::watch;

use super::history::{Event, EventHistory, EventKind};
use super::{Compacted, HistoryLimits, JournalRow, Listing, Range, Recovered, StoreKey, StoredObject};

/// Current objects and recent events.
#[derive(Debug)]
pub(super) struct StoreIndex {
    collections: HashMap<Arc<str>, StoredCollection>,
    version: u64,
    /// Versions up to and including this one have lost their history.
    compacted: u64,
    /// Collections of the events in the history, oldest first, to find the oldest without a search.
    order: VecDeque<(u64, Arc<str>)>,
    held_bytes: usize,
    /// Rows that the journal need not keep any longer.
    superseded: Vec<u64>,
}

#[derive(Debug)]
struct StoredCollection {
    objects: BTreeMap<Arc<str>, Arc<StoredObject>>,
    history: EventHistory,
    /// The version of the last event that its history lost.
    forgotten: u64,
    changed: watch::Sender<u64>,
}

impl StoredCollection {
    fn new() -> Self {
        Self { objects: BTreeMap::new(), history: EventHistory::default(), forgotten: 0, changed: watch::channel(0).0 }
    }
}

impl StoreIndex {
    /// The state after every row of a journal.
    pub(super) fn recover(recovered: Recovered) -> Self {
        let mut index = Self {
            collections: HashMap::new(),
            version: 0,
            compacted: recovered.compacted,
            order: VecDeque::new(),
            held_bytes: 0,
            superseded: Vec::new(),
        };
        for row in recovered.rows {
            let version = row.version;
            let key = row.key.clone();
            let previous = index.get(&key).cloned();
            let (kind, body) = match (row.body, &previous) {
                (Some(body), None) => (EventKind::Added, body),
                (Some(body), Some(_)) => (EventKind::Modified, body),
                (None, Some(previous)) => (EventKind::Deleted, previous.body.clone()),
                // The object's last text was compacted, its deletion was not yet: nobody can ask for it.
                (None, None) => continue,
            };
            let object = Arc::new(StoredObject { key, version, body });
            index.apply(Arc::new(Event { kind, object, previous }));
        }
        index.version = index.version.max(recovered.compacted);
        index
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(super) fn get(&self, key: &StoreKey) -> Option<&Arc<StoredObject>> {
        self.collections.get(&key.collection)?.objects.get(&key.path)
    }

    pub(super) fn count(&self, collection: &str) -> usize {
        self.collections.get(collection).map_or(0, |c| c.objects.len())
    }

    /// Every object, by ascending version.
    pub(super) fn everything(&self) -> Vec<JournalRow> {
        let objects = self.collections.values().flat_map(|collection| collection.objects.values());
        let row = |object: &Arc<StoredObject>| JournalRow {
            version: object.version,
            key: object.key.clone(),
            body: Some(object.body.clone()),
        };
        let mut rows: Vec<JournalRow> = objects.map(row).collect();
        rows.sort_by_key(|row| row.version);
        rows
    }

    /// Makes an event the newest one. Watchers are woken by [`StoreIndex::announce`].
    pub(super) fn apply(&mut self, event: Arc<Event>) {
        let key = &event.object.key;
        let collection = self.collections.entry(key.collection.clone()).or_insert_with(StoredCollection::new);
        match event.kind {
            EventKind::Deleted => collection.objects.remove(&key.path),
            EventKind::Added | EventKind::Modified => collection.objects.insert(key.path.clone(), event.object.clone()),
        };
        self.version = self.version.max(event.version());
        if event.version() > self.compacted {
            self.held_bytes += event.held_bytes();
            self.order.push_back((event.version(), key.collection.clone()));
            collection.history.push(event);
        }
    }

    /// Wakes the watchers of collections.
    pub(super) fn announce(&self, changed: &HashSet<Arc<str>>) {
        for name in changed {
            if let Some(collection) = self.collections.get(name) {
                collection.changed.send_replace(self.version);
            }
        }
    }

    pub(super) fn list(&self, range: &Range<'_>) -> Result<Listing, Compacted> {
        let version = range.at.unwrap_or(self.version);
        if version < self.compacted && version != self.version {
            return Err(self.too_old());
        }
        let Some(collection) = self.collections.get(range.collection) else {
            return Ok(Listing { objects: Vec::new(), version });
        };
        let start = if range.after.is_empty() { Bound::Included(range.prefix) } else { Bound::Excluded(range.after) };
        let current = collection.objects.range::<str, _>((start, Bound::Unbounded));
        let inside = |path: &str| path.starts_with(range.prefix) && (range.after.is_empty() || path > range.after);
        let current = current.take_while(|(path, _)| path.starts_with(range.prefix));
        if version == self.version {
            return Ok(Listing { objects: current.map(|(_, o)| o.clone()).collect(), version });
        }
        // Back in time: undo every event since then.
        let mut objects: BTreeMap<Arc<str>, Arc<StoredObject>> = current.map(|(p, o)| (p.clone(), o.clone())).collect();
        for event in collection.history.since(version).rev().filter(|e| inside(&e.object.key.path)) {
            match &event.previous {
                Some(previous) => objects.insert(previous.key.path.clone(), previous.clone()),
                None => objects.remove(&event.object.key.path),
            };
        }
        Ok(Listing { objects: objects.into_values().collect(), version })
    }

    /// A receiver that is told of changes to a collection, if the history still reaches back to a version.
    pub(super) fn subscribe(&mut self, collection: &Arc<str>, from: u64) -> Result<watch::Receiver<u64>, Compacted> {
        if from < self.compacted {
            return Err(self.too_old());
        }
        let collection = self.collections.entry(collection.clone()).or_insert_with(StoredCollection::new);
        Ok(collection.changed.subscribe())
    }

    pub(super) fn events_since(
        &self,
        collection: &str,
        position: u64,
        most: usize,
    ) -> Result<(Vec<Arc<Event>>, u64), Compacted> {
        let Some(collection) = self.collections.get(collection) else {
            return Ok((Vec::new(), self.version));
        };
        // Only what this collection has forgotten can have been missed.
        if position < collection.forgotten {
            return Err(self.too_old());
        }
        let events: Vec<Arc<Event>> = collection.history.since(position).take(most).cloned().collect();
        let position = if events.len() < most { self.version } else { events.last().map_or(position, |e| e.version()) };
        Ok((events, position))
    }

    /// Forgets what the limits do not allow.
    pub(super) fn enforce(&mut self, limits: HistoryLimits) {
        if self.order.len() <= limits.events && self.held_bytes <= limits.bytes {
            return;
        }
        // A tenth at once, so that the journal is not trimmed row by row.
        while self.order.len() > limits.events / 10 * 9 || self.held_bytes > limits.bytes / 10 * 9 {
            let Some(&(version, _)) = self.order.front() else { break };
            self.forget(version);
        }
    }

    /// Forgets the history up to a version.
    pub(super) fn compact(&mut self, version: u64) {
        while self.order.front().is_some_and(|(oldest, _)| *oldest <= version) {
            self.forget(version);
        }
        self.compacted = self.compacted.max(version.min(self.version));
    }

    fn forget(&mut self, up_to: u64) {
        let Some((version, name)) = self.order.pop_front() else {
            return;
        };
        debug_assert!(version <= up_to, "the oldest event goes first");
        self.compacted = self.compacted.max(version);
        let Some(collection) = self.collections.get_mut(&name) else {
            return;
        };
        debug_assert_eq!(collection.history.oldest(), Some(version), "the order knows the oldest event");
        let Some(event) = collection.history.pop_oldest() else {
            return;
        };
        collection.forgotten = version;
        self.held_bytes -= event.held_bytes();
        self.superseded.extend(event.previous.as_ref().map(|p| p.version));
        if event.kind == EventKind::Deleted {
            self.superseded.push(version);
        }
    }

    /// Rows that the journal need not keep, since the last call.
    pub(super) fn take_superseded(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.superseded)
    }

    /// Takes back rows that were not dropped after all.
    pub(super) fn put_back_superseded(&mut self, rows: Vec<u64>) {
        self.superseded.extend(rows);
    }

    fn too_old(&self) -> Compacted {
        Compacted { oldest: self.compacted, current: self.version }
    }
}
