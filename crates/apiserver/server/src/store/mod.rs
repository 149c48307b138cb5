//! Objects by key, one global version, and the history that watches resume from.
//!
//! Reads come from memory; writes go through one writer that makes them durable in its [`Journal`] before anything
//! else sees them. While a commit is under way further writes gather, and the next commit carries them all.
//!
//! An object's body is kept as JSON without `kind`, `apiVersion` and `metadata.resourceVersion`: those are put back
//! when it is read (see [`crate::encode`]), so that one text serves every version of its API and its last state
//! doubles as the state that its `DELETED` event shows.

mod history;
mod index;
mod journal;
mod memory;
mod sqlite;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::{Arc, Mutex, RwLock};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};

pub use history::{Event, EventKind};
pub use journal::{Journal, JournalError, JournalRow, Recovered};
pub use memory::{MemoryJournal, PreparedJournal};
pub use sqlite::SqliteJournal;

use index::StoreIndex;
use writer::{Command, StoreWriter};

/// How much history is kept for watches to resume from.
#[derive(Clone, Copy, Debug)]
pub struct HistoryLimits {
    /// Most events kept.
    pub events: usize,
    /// Most bytes of superseded bodies kept.
    pub bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { events: 20_000, bytes: 16 << 20 }
    }
}

/// Where an object stands: its collection and `namespace/name`, or `name` where it has no namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreKey {
    /// The collection, such as `configmaps` or `deployments.apps`.
    pub collection: Arc<str>,
    /// `namespace/name` or `name`.
    pub path: Arc<str>,
}

impl StoreKey {
    /// The key of an object.
    pub fn new(collection: &Arc<str>, namespace: &str, name: &str) -> Self {
        let path = if namespace.is_empty() { Arc::from(name) } else { Arc::from(format!("{namespace}/{name}")) };
        Self { collection: collection.clone(), path }
    }

    /// The namespace, empty where there is none.
    pub fn namespace(&self) -> &str {
        self.path.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&*self.path, |(_, name)| name)
    }
}

/// The text of an object as it is stored, with the labels that selectors look at.
#[derive(Clone, Debug)]
pub struct ObjectText {
    /// Everything after `"metadata":{"resourceVersion":"N",` of the object's JSON.
    pub tail: Bytes,
    /// `metadata.labels`, sorted by key.
    pub labels: Labels,
}

/// Labels, sorted by key; nothing is allocated where there are none.
pub type Labels = Option<Box<[(Box<str>, Box<str>)]>>;

/// An object in the store.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// Where it stands.
    pub key: StoreKey,
    /// The version of its last write.
    pub version: u64,
    /// Its text.
    pub body: ObjectText,
}

/// What must be true for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No object stands there.
    Absent,
    /// The object stands there in exactly this version.
    Version(u64),
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum StoreWrite {
    /// Put this text there.
    Put(ObjectText),
    /// Remove the object; watchers see its last state in the version of the deletion.
    Delete,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// Where.
    pub key: StoreKey,
    /// Under which condition.
    pub expect: Expect,
    /// What.
    pub change: StoreWrite,
}

/// Why a write did not happen.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// [`Expect`] did not hold; this is what stands there instead.
    #[error("the object changed meanwhile")]
    Unexpected(Option<Arc<StoredObject>>),
    /// The journal could not make it durable.
    #[error("the data file could not be written: {0}")]
    Journal(Arc<JournalError>),
    /// The server is stopping.
    #[error("the store is closed")]
    Closed,
}

/// The asked-for version is no longer in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The oldest version that can still be asked for.
    pub oldest: u64,
    /// The newest version.
    pub current: u64,
}

/// The store. Clones share it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<StoreInner>,
    writes: WriteThread,
}

struct StoreInner {
    index: RwLock<StoreIndex>,
    observers: Mutex<Vec<mpsc::UnboundedSender<Arc<Event>>>>,
    limits: HistoryLimits,
}

/// Durable journals block, so they get a thread; the journal in memory is written in place, which also keeps
/// tests under a paused clock deterministic.
#[derive(Clone)]
enum WriteThread {
    Inline(Arc<Mutex<StoreWriter>>),
    Thread(mpsc::UnboundedSender<Command>),
}

impl Store {
    /// Opens a store on what its journal holds.
    pub fn open(mut journal: Box<dyn Journal>, limits: HistoryLimits) -> Result<Self, JournalError> {
        let index = StoreIndex::recover(journal.recover()?);
        let shared = Arc::new(StoreInner { index: RwLock::new(index), observers: Mutex::new(Vec::new()), limits });
        let blocks = journal.blocks();
        let writer = StoreWriter::new(shared.clone(), journal);
        let writes = if blocks {
            WriteThread::Thread(writer.spawn()?)
        } else {
            WriteThread::Inline(Arc::new(Mutex::new(writer)))
        };
        Ok(Self { shared, writes })
    }

    /// A store that forgets everything when it is dropped.
    pub fn in_memory() -> Self {
        Self::open(Box::new(MemoryJournal), HistoryLimits::default()).expect("memory has nothing to recover")
    }

    /// The version of the last write.
    pub fn version(&self) -> u64 {
        self.read().version()
    }

    /// The object at a key.
    pub fn get(&self, key: &StoreKey) -> Option<Arc<StoredObject>> {
        self.read().get(key).cloned()
    }

    /// The objects of a collection whose path starts with `prefix` and is greater than `after`, at most `limit` (0: all),
    /// now or as they were at a version, with that version.
    pub fn list(&self, range: &Range<'_>) -> Result<Listing, Compacted> {
        self.read().list(range)
    }

    /// How many objects a collection holds.
    pub fn count(&self, collection: &str) -> usize {
        self.read().count(collection)
    }

    /// Every object, by ascending version, and the version at which they stand so.
    pub fn everything(&self) -> (Vec<JournalRow>, u64) {
        let index = self.read();
        (index.everything(), index.version())
    }

    /// Writes, and answers when the write is durable and visible.
    pub async fn write(&self, write: Write) -> Result<Arc<StoredObject>, WriteError> {
        match &self.writes {
            WriteThread::Inline(writer) => {
                let mut writer = writer.lock().expect("the writer does not panic");
                let mut answers = writer.commit(vec![write]);
                answers.pop().unwrap_or(Err(WriteError::Closed))
            }
            WriteThread::Thread(sender) => {
                let (answer, answered) = oneshot::channel();
                sender.send(Command::Write(Box::new(write), answer)).map_err(|_| WriteError::Closed)?;
                answered.await.unwrap_or(Err(WriteError::Closed))
            }
        }
    }

    /// Closes the journal once everything before it is written; later writes fail.
    pub async fn close(&self) {
        if let WriteThread::Thread(sender) = &self.writes {
            let (closed, is_closed) = oneshot::channel();
            if sender.send(Command::Close(closed)).is_ok() {
                // An error means that it was closed already.
                let _ = is_closed.await;
            }
        }
    }

    /// Follows a collection from after a version. The version must be in the history.
    pub fn watch(&self, collection: &Arc<str>, from: u64) -> Result<Watch, Compacted> {
        let mut index = self.write_lock();
        let changed = index.subscribe(collection, from)?;
        Ok(Watch { shared: self.shared.clone(), collection: collection.clone(), position: from, changed })
    }

    /// Every event from now on, of all collections.
    pub fn observe(&self) -> mpsc::UnboundedReceiver<Arc<Event>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.shared.observers.lock().expect("observers are only pushed and sent to").push(sender);
        receiver
    }

    /// Forgets the history up to a version; watches and lists at older versions answer 410 from then on.
    pub fn compact(&self, version: u64) {
        self.write_lock().compact(version);
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, StoreIndex> {
        self.shared.index.read().expect("the index is not poisoned: nothing panics while it is written")
    }

    fn write_lock(&self) -> std::sync::RwLockWriteGuard<'_, StoreIndex> {
        self.shared.index.write().expect("the index is not poisoned: nothing panics while it is written")
    }
}

/// What a list asks for.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The collection.
    pub collection: &'a str,
    /// The start of every path, such as `namespace/`.
    pub prefix: &'a str,
    /// Paths up to and including this one are passed over.
    pub after: &'a str,
    /// At which version; `None` is now.
    pub at: Option<u64>,
}

/// Objects as they stood together at one version.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The objects, by path.
    pub objects: Vec<Arc<StoredObject>>,
    /// The version of the whole list.
    pub version: u64,
}

/// A follower of one collection. It holds a position, not a queue: a slow reader costs no memory and falls out of the
/// history in the end.
pub struct Watch {
    shared: Arc<StoreInner>,
    collection: Arc<str>,
    position: u64,
    changed: watch::Receiver<u64>,
}

impl Watch {
    /// The events since the last call, at most `most`, and the version up to which there are no others.
    pub fn ready(&mut self, most: usize) -> Result<(Vec<Arc<Event>>, u64), Compacted> {
        self.changed.borrow_and_update();
        let index = self.shared.index.read().expect("the index is not poisoned");
        let (events, position) = index.events_since(&self.collection, self.position, most)?;
        self.position = position;
        Ok((events, position))
    }

    /// Waits until the collection has changed since the last [`ready`](Self::ready); false when the store is gone.
    pub async fn changed(&mut self) -> bool {
        self.changed.changed().await.is_ok()
    }
}
