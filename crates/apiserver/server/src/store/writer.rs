//! The one place that gives out versions: writes in, commits out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::history::{Event, EventKind};
use super::journal::{Commit, Journal, JournalError, JournalRow};
use super::{Expect, ObjectText, StoreInner, StoreKey, StoreWrite, StoredObject, Write, WriteError};

/// Most writes in one commit.
const MOST_PER_COMMIT: usize = 512;

/// What the writer's thread is asked to do.
pub(super) enum Command {
    /// Write, and answer.
    Write(Box<Write>, oneshot::Sender<WriteResult>),
    /// Close the journal, and say so.
    Close(oneshot::Sender<()>),
}

pub(super) type WriteResult = Result<Arc<StoredObject>, WriteError>;

pub(super) struct StoreWriter {
    shared: Arc<StoreInner>,
    journal: Box<dyn Journal>,
}

impl StoreWriter {
    pub(super) fn new(shared: Arc<StoreInner>, journal: Box<dyn Journal>) -> Self {
        Self { shared, journal }
    }

    /// Moves to a thread; it ends when the last sender is gone.
    pub(super) fn spawn(mut self) -> Result<mpsc::UnboundedSender<Command>, JournalError> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let run = move || {
            while let Some(first) = receiver.blocking_recv() {
                if let Some(closed) = self.run_batch(first, &mut receiver) {
                    drop(self);
                    // Nobody may be waiting any longer.
                    let _ = closed.send(());
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("portolan-store".to_owned())
            .spawn(run)
            .map_err(|source| JournalError::Io { step: "starting the store's writer thread", source })?;
        Ok(sender)
    }

    /// Writes what has gathered; answers whom to tell when the journal is to be closed.
    fn run_batch(
        &mut self,
        first: Command,
        receiver: &mut mpsc::UnboundedReceiver<Command>,
    ) -> Option<oneshot::Sender<()>> {
        let (mut writes, mut answers, mut closing) = (Vec::new(), Vec::new(), None);
        let mut next = Some(first);
        while let Some(command) = next {
            match command {
                Command::Write(write, answer) => {
                    writes.push(*write);
                    answers.push(answer);
                }
                Command::Close(closed) => closing = Some(closed),
            }
            let room = writes.len() < MOST_PER_COMMIT && closing.is_none();
            next = if room { receiver.try_recv().ok() } else { None };
        }
        for (answer, result) in answers.into_iter().zip(self.commit(writes)) {
            // A client that went away does not wait for its answer; its write stands.
            let _ = answer.send(result);
        }
        closing
    }

    /// Commits writes together and makes them visible; the answers are in the order of the writes.
    pub(super) fn commit(&mut self, writes: Vec<Write>) -> Vec<WriteResult> {
        let mut batch = Batch::default();
        let (superseded, compacted) = {
            let mut index = self.shared.index.write().expect("the index is not poisoned");
            batch.version = index.version();
            (index.take_superseded(), index.compacted())
        };
        let mut answers: Vec<WriteResult> = writes.into_iter().map(|write| self.admit(&mut batch, write)).collect();
        if batch.events.is_empty() {
            self.keep_superseded(superseded);
            return answers;
        }
        let commit = Commit { rows: &batch.rows, superseded: &superseded, compacted };
        if let Err(error) = self.journal.commit(&commit) {
            self.keep_superseded(superseded);
            let error = Arc::new(error);
            for answer in &mut answers {
                *answer = Err(WriteError::Journal(error.clone()));
            }
            return answers;
        }
        self.publish(batch.events);
        answers
    }

    /// Rows that could not be dropped yet are dropped with the next commit.
    fn keep_superseded(&self, rows: Vec<u64>) {
        self.shared.index.write().expect("the index is not poisoned").put_back_superseded(rows);
    }

    /// Checks one write against the state that the writes before it leave.
    fn admit(&self, batch: &mut Batch, write: Write) -> WriteResult {
        let current = match batch.pending.get(&write.key) {
            Some(pending) => pending.clone(),
            None => self.shared.index.read().expect("the index is not poisoned").get(&write.key).cloned(),
        };
        let holds = match (write.expect, &current) {
            (Expect::Absent, None) => true,
            (Expect::Version(expected), Some(current)) => current.version == expected,
            (Expect::Absent, Some(_)) | (Expect::Version(_), None) => false,
        };
        if !holds {
            return Err(WriteError::Unexpected(current));
        }
        Ok(batch.add(write.key, write.change, current))
    }

    /// Makes committed events visible to readers, watchers and observers, in this order of versions.
    fn publish(&self, events: Vec<Arc<Event>>) {
        let mut changed = HashSet::new();
        {
            let mut index = self.shared.index.write().expect("the index is not poisoned");
            for event in &events {
                changed.insert(event.object.key.collection.clone());
                index.apply(event.clone());
            }
            index.enforce(self.shared.limits);
            index.announce(&changed);
        }
        let mut observers = self.shared.observers.lock().expect("observers are only pushed and sent to");
        observers.retain(|observer| events.iter().all(|event| observer.send(event.clone()).is_ok()));
    }
}

/// Writes that will be committed together.
#[derive(Default)]
struct Batch {
    version: u64,
    rows: Vec<JournalRow>,
    events: Vec<Arc<Event>>,
    pending: HashMap<StoreKey, Option<Arc<StoredObject>>>,
}

impl Batch {
    fn add(&mut self, key: StoreKey, change: StoreWrite, current: Option<Arc<StoredObject>>) -> Arc<StoredObject> {
        self.version += 1;
        let version = self.version;
        let (kind, body) = match (change, &current) {
            (StoreWrite::Put(body), None) => (EventKind::Added, body),
            (StoreWrite::Put(body), Some(_)) => (EventKind::Modified, body),
            (StoreWrite::Delete, Some(current)) => (EventKind::Deleted, current.body.clone()),
            (StoreWrite::Delete, None) => (EventKind::Deleted, ObjectText { tail: bytes::Bytes::new(), labels: None }),
        };
        let deleted = kind == EventKind::Deleted;
        let object = Arc::new(StoredObject { key: key.clone(), version, body });
        self.rows.push(JournalRow { version, key: key.clone(), body: (!deleted).then(|| object.body.clone()) });
        self.events.push(Arc::new(Event { kind, object: object.clone(), previous: current }));
        self.pending.insert(key, (!deleted).then(|| object.clone()));
        object
    }
}
