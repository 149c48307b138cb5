//! A snapshot that is listed and written at the same time: which listing is valid, and what was written while one ran. Pure.
//!
//! Order is counted in ticks, not in time, so that two things at the same instant still have an order.

use std::collections::HashSet;

pub use portolan_commit::Freshness;
use portolan_commit::{Moment, Validity};
use portolan_core::{Entry, Item};
use tokio::time::Instant;

use crate::cache::recent_writes::RecentWrites;
use crate::cache::snapshot::Snapshot;
use crate::call::error::{ApiError, ErrorClass};
use crate::call::listing::Element;
use crate::item::ListedItem;

/// What a caller who asks for a refresh has to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RefreshNeed {
    Nothing,
    Listing,
    /// A listing that this caller waited for failed.
    Failed(ApiError),
}

/// A write as a snapshot shows it.
#[derive(Clone, Debug)]
pub(crate) enum SnapshotEdit<T> {
    Stored(Entry<T>),
    Removed(String),
}

#[derive(Debug)]
pub(crate) struct SnapshotStore<T> {
    snapshot: Snapshot<T>,
    validity: Validity<ApiError>,
    /// When the listing began that the snapshot shows.
    listed: Option<Moment>,
    /// When a listing found more than so many pages, and how many those are.
    larger: Option<(Moment, u64)>,
    /// What was written while a listing runs, which may or may not have seen it.
    journal: Option<Vec<SnapshotEdit<T>>>,
    /// What was written a moment ago, which a listing may not show yet.
    recent: RecentWrites,
    /// This credential may read the scope, as far as it has tried.
    reads: bool,
}

/// A listing under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(Moment);

impl<T> Default for SnapshotStore<T> {
    fn default() -> Self {
        Self {
            snapshot: Snapshot::default(),
            validity: Validity::default(),
            listed: None,
            larger: None,
            journal: None,
            recent: RecentWrites::default(),
            reads: false,
        }
    }
}

impl<T: Item> SnapshotStore<T> {
    pub(crate) fn snapshot(&self) -> &Snapshot<T> {
        &self.snapshot
    }

    /// A moment in the order of things.
    pub(crate) fn tick(&mut self) -> Moment {
        self.validity.now()
    }

    /// What a caller needs who asked at `asked`.
    pub(crate) fn need(&self, freshness: Freshness, asked: Moment) -> RefreshNeed {
        match self.validity.answer(self.listed, freshness, asked) {
            Some(Ok(())) => RefreshNeed::Nothing,
            Some(Err(error)) => RefreshNeed::Failed(error),
            None => RefreshNeed::Listing,
        }
    }

    pub(crate) fn begin(&mut self, at: Instant) -> Began {
        portolan_core::waypoint!();
        self.journal = Some(Vec::new());
        Began(self.validity.moment(at))
    }

    /// What we wrote a moment ago and a listing does not show: it lags behind, or somebody deleted it. The last written
    /// first.
    pub(crate) fn unlisted(&self, Began(listed): Began, objects: &[ListedItem<T>]) -> Vec<Entry<T>> {
        let written = self.recent.present(listed.at());
        if written.is_empty() {
            return Vec::new();
        }
        let shown: HashSet<&str> = objects.iter().filter_map(Element::id).collect();
        let missing = written.into_iter().filter(|id| !shown.contains(id));
        missing.filter_map(|id| self.snapshot.get(id)).cloned().collect()
    }

    /// What was listed, and what is there though the listing did not show it.
    pub(crate) fn finish(&mut self, Began(listed): Began, objects: Vec<ListedItem<T>>, unlisted: Vec<Entry<T>>) {
        self.snapshot = Snapshot::listed(objects, listed.at());
        for entry in unlisted {
            self.snapshot.store(entry);
        }
        for id in self.recent.gone(listed.at()) {
            self.snapshot.remove(id);
        }
        for edit in self.journal.take().into_iter().flatten() {
            self.snapshot.apply(edit);
        }
        self.listed = Some(listed);
        self.reads = true;
        self.validity.succeed();
    }

    pub(crate) fn fail(&mut self, error: ApiError) {
        if matches!(error.class, ErrorClass::Auth | ErrorClass::NotFound) {
            self.reads = false;
        }
        self.validity.fail(error);
    }

    /// The collection has more than so many pages, and was not listed.
    pub(crate) fn exceeds(&mut self, pages: u64) {
        self.larger = Some((self.tick(), pages));
    }

    /// Whether it was found since `asked` to have more than so many pages.
    pub(crate) fn is_larger(&self, asked: Moment, pages: u64) -> bool {
        self.larger.is_some_and(|(when, found)| when.is_after(asked) && pages <= found)
    }

    /// The listing is over, if only because nobody waits for it any more.
    pub(crate) fn abandon(&mut self) {
        self.journal = None;
    }

    pub(crate) fn stored(&mut self, entry: &Entry<T>) {
        self.note(&SnapshotEdit::Stored(entry.clone()));
        self.snapshot.store(entry.clone());
    }

    pub(crate) fn removed(&mut self, id: &str) {
        self.note(&SnapshotEdit::Removed(id.to_owned()));
        self.snapshot.remove(id);
    }

    fn note(&mut self, edit: &SnapshotEdit<T>) {
        match edit {
            SnapshotEdit::Stored(entry) => self.recent.stored(&entry.id, Instant::now()),
            SnapshotEdit::Removed(id) => self.recent.removed(id, Instant::now()),
        }
        if let Some(journal) = &mut self.journal {
            journal.push(edit.clone());
        }
    }

    /// Another credential's write: it shows here only where this one has read the scope itself.
    pub(crate) fn heard(&mut self, edit: &SnapshotEdit<T>) {
        self.note(edit);
        if self.reads {
            self.snapshot.apply(edit.clone());
        }
    }

    /// Another credential's write that may have arrived.
    pub(crate) fn heard_doubt(&mut self) {
        if self.reads || self.journal.is_some() {
            self.doubt();
        }
    }

    /// Nothing is there any more.
    pub(crate) fn clear(&mut self) {
        self.snapshot = Snapshot::default();
        self.reads = false;
        self.doubt();
    }

    /// Something may have happened that is not in the snapshot, nor in a listing that began before.
    pub(crate) fn doubt(&mut self) {
        self.validity.doubt();
    }
}
