//! One worker at a time writes a tunnel's configuration, or makes tokens of some names: a Lease per document, shared by all
//! tasks of this worker.
//!
//! Tasks that come while the lease is young join those at work; later ones wait for the next term, so that other workers
//! get their turn. A worker that is alone takes none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use portolan_core::{Problem, WriteGate};
use portolan_engine::{CancellationToken, Context, DocumentLock, HeldLock, Leadership};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

use crate::settings::Settings;

/// So long may tasks join a term. Shorter terms change hands more often, and were slower when measured.
const JOINING: Duration = Duration::from_secs(2);
/// So long is another worker waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// The locks of one worker.
pub(crate) struct DocumentLocks {
    context: Arc<Context>,
    /// None where this worker is alone.
    lock: Option<DocumentLock>,
    /// Those that are in use.
    documents: Mutex<BTreeMap<String, Arc<LockedDocument>>>,
}

#[derive(Default)]
struct LockedDocument {
    /// One at a time waits for other workers.
    line: tokio::sync::Mutex<Option<AbortOnDropHandle<()>>>,
    term: Mutex<Weak<LockTerm>>,
}

/// A lease that is held; when nobody needs it any more it is given back. Tasks of all credentials share it: their writes
/// stand in one line here anyway.
pub(crate) struct LockTerm {
    begun: Instant,
    lease: Leadership,
    _end: DropGuard,
}

/// Open while all these leases hold, which they are kept for.
pub(crate) fn gate(terms: Vec<Arc<LockTerm>>) -> WriteGate {
    WriteGate::new(move || terms.iter().all(|term| term.lease.is_held()))
}

impl DocumentLocks {
    pub(crate) fn new(context: &Arc<Context>, settings: &Settings) -> Self {
        // A worker that was killed finds its own lease when it comes back, and need not wait for it.
        let lock = (!settings.alone).then(|| DocumentLock::new(settings.identity.clone()));
        Self { context: Arc::clone(context), lock, documents: Mutex::default() }
    }

    /// Waits until this worker may write all of these; in one order, so that no two wait for each other.
    pub(crate) async fn enter(&self, documents: BTreeSet<String>) -> Result<Vec<Arc<LockTerm>>, Problem> {
        portolan_core::waypoint!();
        let mut terms = Vec::new();
        if let Some(lock) = &self.lock {
            for name in documents {
                terms.push(self.term(lock, &name).await?);
            }
        }
        Ok(terms)
    }

    async fn term(&self, lock: &DocumentLock, name: &str) -> Result<Arc<LockTerm>, Problem> {
        let document = self.document(name);
        if let Some(term) = document.young() {
            return Ok(term);
        }
        let mut keeper = document.line.lock().await;
        if let Some(term) = document.young() {
            return Ok(term);
        }
        if let Some(ended) = keeper.take() {
            // It ends when the last task of its term has.
            let _ = ended.await;
        }
        let held = lock.acquire(&self.context, name, PATIENCE).await?;
        let (over, lease) = (CancellationToken::new(), held.leadership());
        let kept = keep(held, over.clone(), Arc::clone(&document));
        *keeper = Some(AbortOnDropHandle::new(tokio::spawn(kept)));
        let term = Arc::new(LockTerm { begun: Instant::now(), lease, _end: over.drop_guard() });
        *document.term.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&term);
        Ok(term)
    }

    fn document(&self, name: &str) -> Arc<LockedDocument> {
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        // Who waits for a lease or keeps one has its document.
        documents.retain(|_, document| Arc::strong_count(document) > 1);
        Arc::clone(documents.entry(name.to_owned()).or_default())
    }
}

impl LockedDocument {
    fn young(&self) -> Option<Arc<LockTerm>> {
        let term = self.term.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        term.filter(|term| term.begun.elapsed() < JOINING && term.lease.is_held())
    }
}

/// Renews a lease until its term is over. The document is not forgotten meanwhile.
async fn keep(mut held: HeldLock, over: CancellationToken, _document: Arc<LockedDocument>) {
    let lost = tokio::select! {
        () = over.cancelled() => false,
        () = held.hold() => true,
    };
    if lost {
        tracing::warn!("The lock of a document was lost: what was to be written under it is not sent");
        over.cancelled().await;
    } else {
        held.release().await;
    }
}
