//! The line of all who write one document in this process, whatever their credentials.
//!
//! A write leaves while nobody else's is on its way, and only over the document as the last one left it. Nobody waits in
//! line for a budget or after a failure: one credential's troubles are not the others'.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portolan_commit::{Line, Moment, Pace};

use super::Content;
use super::memory::Memory;

/// What a credential remembers of the document.
pub(super) type Remembered = Arc<Mutex<Memory>>;

#[derive(Default)]
pub(crate) struct WriteLine {
    line: Line<Last, Mutex<Memory>>,
    /// Writes that have, or may have, arrived.
    writes: AtomicU64,
}

/// The document as the last write left it; none where that is not known.
type Last = Option<Arc<Content>>;

impl WriteLine {
    /// Another credential's memory follows the writes.
    pub(super) fn follow(&self, memory: &Remembered) {
        self.line.follow(Arc::downgrade(memory));
    }

    /// How many writes there were so far. What is read after this was asked holds them all.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// Waits until no other write is on its way.
    pub(super) async fn turn(&self) -> WriteTurn<'_> {
        WriteTurn { last: self.line.turn().await, line: self }
    }

    /// How far apart writes are.
    pub(super) fn pace(&self) -> &Mutex<Pace> {
        self.line.pace()
    }
}

/// The turn to write. Others wait as long as it is held.
pub(super) struct WriteTurn<'a> {
    line: &'a WriteLine,
    last: tokio::sync::MutexGuard<'a, Last>,
}

impl<'a> WriteTurn<'a> {
    /// Whether nobody of this process wrote since then.
    pub(super) fn follows(&self, writes: u64) -> bool {
        self.line.writes() == writes
    }

    /// The document as the last write left it, and how many there were.
    pub(super) fn last(&self) -> Option<(Arc<Content>, u64)> {
        Some((Arc::clone(self.last.as_ref()?), self.line.writes()))
    }

    /// A write leaves; it counts as one of unknown outcome unless it is told otherwise, also when its writer is gone.
    pub(super) fn leaves(self, own: &Remembered) -> Leaving<'a> {
        let others = self.line.line.others(Arc::as_ptr(own));
        let others = others.into_iter().map(|memory| (Arc::clone(&memory), began(&memory))).collect();
        Leaving { turn: self, own: (Arc::clone(own), began(own)), others, came: Came::Unknown }
    }
}

fn began(memory: &Remembered) -> Moment {
    memory.lock().unwrap_or_else(PoisonError::into_inner).begin()
}

/// A write on its way.
pub(super) struct Leaving<'a> {
    turn: WriteTurn<'a>,
    own: (Remembered, Moment),
    others: Vec<(Remembered, Moment)>,
    came: Came,
}

/// What became of a write.
enum Came {
    Unknown,
    Refused,
    Arrived(Arc<Content>),
}

impl Leaving<'_> {
    /// It arrived, and the document is this; answers how many writes there were.
    pub(super) fn arrived(mut self, content: &Arc<Content>) -> u64 {
        self.came = Came::Arrived(Arc::clone(content));
        self.turn.line.writes() + 1
    }

    /// It changed nothing.
    pub(super) fn refused(mut self) {
        self.came = Came::Refused;
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let content = match &self.came {
            Came::Refused => return,
            Came::Unknown => None,
            Came::Arrived(content) => Some(content),
        };
        self.turn.line.writes.fetch_add(1, Ordering::SeqCst);
        *self.turn.last = content.cloned();
        let memories = self.others.iter().map(|follower| (follower, false)).chain([(&self.own, true)]);
        for ((memory, began), own) in memories {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            match content {
                // What another credential has not read itself it does not get to see.
                Some(content) if own || memory.known().is_some() => memory.store(*began, content),
                Some(_) => {}
                None => memory.doubt(),
            }
        }
    }
}
