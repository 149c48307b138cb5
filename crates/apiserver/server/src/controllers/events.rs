//! Events that are an hour old go; nothing else ever does by its age.
//!
//! An event's age counts from its last write, which the owners of its fields tell. The next one to go is waited for; a
//! clock that does not follow the timer is not asked again before something changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::api::Api;
use crate::registry::Resource;
use crate::store::{Event, EventKind, Expect, Range, StoreKey, StoreWrite, StoredObject, Write};

/// As `--event-ttl` of a real server.
const LIFE: SignedDuration = SignedDuration::from_hours(1);

/// The most that go at once; others may write in between.
const MOST_AT_ONCE: usize = 100;

/// Follows events.
pub(crate) async fn run(api: Arc<Api>, mut changes: UnboundedReceiver<Arc<Event>>) {
    let Some(events) = api.registry().find("", "v1", "events").cloned() else {
        return;
    };
    let mut expiry = Expiry { api, events, due: BTreeSet::new(), by_key: BTreeMap::new() };
    expiry.resume();
    loop {
        let wait = expiry.sweep().await;
        let timer = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timer => {
                if !expiry.is_due() && !expiry.follow_next(&mut changes).await {
                    return;
                }
            }
            followed = expiry.follow_next(&mut changes) => if !followed {
                return;
            }
        }
    }
}

struct Expiry {
    api: Arc<Api>,
    events: Arc<Resource>,
    due: BTreeSet<(Timestamp, StoreKey)>,
    by_key: BTreeMap<StoreKey, Timestamp>,
}

impl Expiry {
    fn resume(&mut self) {
        let range = Range { collection: &self.events.collection, prefix: "", after: "", at: None };
        for stored in self.api.store.list(&range).map(|listing| listing.objects).unwrap_or_default() {
            self.note(&stored);
        }
    }

    /// Waits for a change of an event and notes it; false when the store is gone.
    async fn follow_next(&mut self, changes: &mut UnboundedReceiver<Arc<Event>>) -> bool {
        while let Some(change) = changes.recv().await {
            if change.object.key.collection != self.events.collection {
                continue;
            }
            if change.kind == EventKind::Deleted {
                self.forget(&change.object.key);
            } else {
                self.note(&change.object);
            }
            return true;
        }
        false
    }

    fn note(&mut self, stored: &StoredObject) {
        self.forget(&stored.key);
        let written = last_write(&self.api.object(&self.events, stored));
        let due = written.and_then(|time| time.checked_add(LIFE).ok());
        if let Some(due) = due {
            self.due.insert((due, stored.key.clone()));
            self.by_key.insert(stored.key.clone(), due);
        }
    }

    fn forget(&mut self, key: &StoreKey) {
        if let Some(due) = self.by_key.remove(key) {
            self.due.remove(&(due, key.clone()));
        }
    }

    fn is_due(&self) -> bool {
        self.due.first().is_some_and(|(due, _)| *due <= (self.api.clock)())
    }

    /// Removes what is due and answers how long the next one has left.
    async fn sweep(&mut self) -> Option<Duration> {
        for _ in 0..MOST_AT_ONCE {
            if !self.is_due() {
                break;
            }
            let (_, key) = self.due.pop_first()?;
            self.by_key.remove(&key);
            self.remove(key).await;
        }
        let left = self.due.first()?.0.duration_since((self.api.clock)());
        // A moment more: timers and clocks do not agree on milliseconds.
        Some(Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1))
    }

    /// An event that was written meanwhile stays until that is an hour ago.
    async fn remove(&mut self, key: StoreKey) {
        let Some(stored) = self.api.store.get(&key) else { return };
        self.note(&stored);
        if self.by_key.get(&key).is_some_and(|due| *due > (self.api.clock)()) {
            return;
        }
        self.forget(&key);
        let write = Write { key, expect: Expect::Version(stored.version), change: StoreWrite::Delete };
        if let Err(error) = self.api.store.write(write).await {
            tracing::debug!(%error, "An event that is due was not removed");
        }
    }
}

fn last_write(event: &Value) -> Option<Timestamp> {
    let metadata = &event["metadata"];
    let owners = metadata["managedFields"].as_array().into_iter().flatten().map(|owner| &owner["time"]);
    owners.chain([&metadata["creationTimestamp"]]).filter_map(|time| time.as_str()?.parse().ok()).max()
}
