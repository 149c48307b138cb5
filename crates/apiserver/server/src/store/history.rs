//! What happened to a collection, newest last.

use std::collections::VecDeque;
use std::sync::Arc;

use super::StoredObject;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One write, as watchers see it.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The object after it; the last state, in the version of the deletion, where it was deleted.
    pub object: Arc<StoredObject>,
    /// The object before it.
    pub previous: Option<Arc<StoredObject>>,
}

impl Event {
    /// The version of the write.
    pub fn version(&self) -> u64 {
        self.object.version
    }

    /// Bytes that only the history holds on to.
    pub(super) fn held_bytes(&self) -> usize {
        self.previous.as_ref().map_or(0, |p| p.body.tail.len())
    }
}

/// The events of one collection in order.
#[derive(Debug, Default)]
pub(super) struct EventHistory {
    events: VecDeque<Arc<Event>>,
}

impl EventHistory {
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    /// Events after a version.
    pub(super) fn since(&self, version: u64) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let start = self.events.partition_point(|e| e.version() <= version);
        self.events.range(start..)
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.events.front().map(|e| e.version())
    }

    pub(super) fn pop_oldest(&mut self) -> Option<Arc<Event>> {
        self.events.pop_front()
    }
}
