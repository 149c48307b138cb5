//! Group commit for whole documents, such as a tunnel's configuration: read, let every gathered source edit, write once.
//!
//! The API has no `If-Match`. Somebody's write between our read and our write is lost there, but shows as a version that is
//! not the one read plus one: then it is read and merged again, and the caller is told ([`Raced`]). For the same reason a
//! write that failed is never just repeated: the document is read and merged again first.

use std::fmt;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use http::Method;
use portolan_core::WriteGate;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::budget::governor::Lane;
use crate::budget::limiter::Permit;
use crate::cache::snapshot_store::Freshness;
use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::call::options::CallOptions;
use crate::call::request::Request;
use crate::call::retry::RetryPolicy;
use crate::call::sender::{Exit, Sender};
use portolan_commit::PendingWrite;

mod line;
#[cfg(test)]
mod line_tests;
mod memory;
mod queue;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use line::WriteLine;
use line::{Remembered, WriteTurn};
pub use memory::KnownDocument;
use memory::Memory;
use queue::EditQueue;

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentKind {
    /// Short name, unique among documents.
    pub name: &'static str,
    /// Path template with two placeholders: the account or zone, and the document's owner.
    pub template: &'static str,
    /// Member of the answer that holds the content, which is also what a write sends.
    pub content: &'static str,
    /// Member of the answer that holds the version.
    pub version: &'static str,
}

/// The configuration of a `cloudflared` tunnel.
pub static TUNNEL_CONFIGURATION: DocumentKind = DocumentKind {
    name: "tunnel_configuration",
    template: "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations",
    content: "config",
    version: "version",
};

/// A document as it stands at the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// Its content; an empty object where nothing was ever written, or where its owner is not there.
    pub value: Value,
    /// Its version, where the API counts.
    pub version: Option<i64>,
}

impl Default for Content {
    fn default() -> Self {
        Self { value: json!({}), version: None }
    }
}

/// Somebody else wrote between our read and our write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raced {
    /// The version that was read.
    pub read: i64,
    /// The version that our write became.
    pub became: i64,
}

impl fmt::Display for Raced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} was read, and the write became version {}", self.read, self.became)
    }
}

/// What became of an edit.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// The document that holds the edit.
    pub content: Arc<Content>,
    /// Whether anything had to be written.
    pub written: bool,
    /// Whether somebody else's write was overtaken on the way.
    pub raced: Option<Raced>,
}

/// One document's handle, with one writer for everybody in the process who has this credential; the writers of several
/// credentials stand in one `WriteLine`.
///
/// # Expected flow
/// [`expect`](Self::expect) as soon as an edit is likely, [`snapshot`](Self::snapshot) or [`refresh`](Self::refresh) to plan,
/// [`edit`](Self::edit) to apply, with the expectation dropped right before.
///
/// # Guarantees
/// - Edits that gather are one read and one write. A refused document is split by source, so that one bad edit fails alone.
/// - Edits run on the document as it was just read, never on a snapshot, and nothing is written if they change nothing.
/// - A write carries edits of one credential, and goes over the document as the last write of this process left it.
/// - A write of unknown outcome is followed by a read, and only then, after the policy's pause, by another write.
///
/// # Caveats
/// The owner's absence (404) reads as an empty document, so that taking something out of it succeeds. A write to it fails.
pub struct Document {
    shared: Arc<DocumentInner>,
    writer: Arc<OnceLock<AbortOnDropHandle<()>>>,
    retry: RetryPolicy,
    gate: WriteGate,
}

impl Document {
    pub(crate) fn new(
        sender: Arc<Sender>,
        kind: &'static DocumentKind,
        (scope, owner): (&str, &str),
        line: Arc<WriteLine>,
    ) -> Self {
        let retry = sender.retry();
        let memory = Remembered::default();
        line.follow(&memory);
        let shared = DocumentInner {
            sender,
            kind,
            segments: [scope.to_owned(), owner.to_owned()],
            queue: EditQueue::default(),
            memory,
            reading: tokio::sync::Mutex::new(()),
            line,
        };
        Self { shared: Arc::new(shared), writer: Arc::default(), retry, gate: WriteGate::default() }
    }

    /// The same document and writer for callers with another policy, who may write while a gate is open.
    pub(crate) fn view(&self, retry: RetryPolicy, gate: WriteGate) -> Self {
        Self { shared: self.shared.clone(), writer: self.writer.clone(), retry, gate }
    }

    /// The same document for edits that are sent while this gate is open too.
    #[must_use]
    pub fn within(&self, gate: &WriteGate) -> Self {
        self.view(self.retry, self.gate.and(gate))
    }

    /// Reads it.
    pub async fn read(&self, lane: Lane) -> Result<Arc<Content>, ApiError> {
        self.shared.read(None, self.options(lane)).await
    }

    /// Reads it if what is known of it is older than asked for. Concurrent callers share one read, and its failure.
    pub async fn refresh(&self, lane: Lane, freshness: Freshness) -> Result<Arc<Content>, ApiError> {
        let asked = self.shared.memory().begin();
        if let Some(Ok(content)) = self.shared.memory().answer(freshness, asked) {
            return Ok(content);
        }
        let _turn = self.shared.reading.lock().await;
        let shared = self.shared.memory().answer(freshness, asked);
        if let Some(answer) = shared {
            return answer;
        }
        // Whoever asks before the request goes out shares it.
        tokio::task::yield_now().await;
        let permit =
            self.shared.sender.permit(lane).await.inspect_err(|error| self.shared.memory().fail(error.clone()))?;
        self.shared.read(Some(permit), self.options(lane)).await
    }

    /// What was last read or written, if anything was.
    pub fn snapshot(&self) -> Option<KnownDocument> {
        self.shared.memory().known()
    }

    /// Says that an edit is likely to come soon: others that are ready wait for it, at most two seconds, so that they go out
    /// together. Drop it when the edit begins, or when it is not to come after all.
    pub fn expect(&self) -> PendingWrite {
        self.shared.queue.expect()
    }

    /// Applies `edit` to the document as it stands, together with whatever else gathered. `edit` makes the live content the
    /// wanted one, in place; it may run several times. A newer edit of the same `source` that waits too takes this one's
    /// place, and both get its result.
    pub async fn edit(
        &self,
        lane: Lane,
        source: &str,
        edit: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Result<Committed, ApiError> {
        portolan_core::waypoint!();
        let (reply, answer) = oneshot::channel();
        self.shared.queue.push((self.options(lane), self.gate.clone()), source, Box::new(edit), reply);
        self.writer.get_or_init(|| AbortOnDropHandle::new(tokio::spawn(writer::run(self.shared.clone()))));
        answer.await.unwrap_or_else(|_| Err(ApiError::transient("the writer stopped", Effect::Unknown)))
    }

    fn options(&self, lane: Lane) -> CallOptions {
        CallOptions { lane, retry: self.retry }
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("kind", &self.shared.kind.name)
            .field("of", &self.shared.segments)
            .finish_non_exhaustive()
    }
}

/// What the handle and its writer both use.
struct DocumentInner {
    sender: Arc<Sender>,
    kind: &'static DocumentKind,
    segments: [String; 2],
    queue: EditQueue,
    memory: Remembered,
    reading: tokio::sync::Mutex<()>,
    line: Arc<WriteLine>,
}

/// A document as it was read for a write.
struct Live {
    content: Arc<Content>,
    /// Writes of this process that it holds.
    writes: u64,
    /// Whether the document is there.
    found: bool,
}

impl DocumentInner {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, method: Method) -> Request {
        Request::new(method, self.kind.template, &[&self.segments[0], &self.segments[1]])
    }

    async fn read(&self, permit: Option<Permit>, options: CallOptions) -> Result<Arc<Content>, ApiError> {
        Ok(self.look(permit, options).await?.content)
    }

    async fn look(&self, permit: Option<Permit>, options: CallOptions) -> Result<Live, ApiError> {
        let (began, writes) = (self.memory().begin(), self.line.writes());
        let answer = self.sender.answer(permit, options, Exit::FREE, &self.request(Method::GET)).await;
        let found = answer.is_ok();
        let content = match answer {
            Ok(answer) => self.content(answer.result),
            Err(error) if error.class == ErrorClass::NotFound => Content::default(),
            Err(error) => {
                self.memory().fail(error.clone());
                return Err(error);
            }
        };
        let content = Arc::new(content);
        self.memory().store(began, &content);
        Ok(Live { content, writes, found })
    }

    /// One attempt: another one needs another read.
    async fn write(
        &self,
        (permit, turn): (Permit, WriteTurn<'_>),
        options: CallOptions,
        value: &Value,
    ) -> Result<Live, ApiError> {
        let request = self.request(Method::PUT).with_body(json!({ self.kind.content: value }));
        let leaving = turn.leaves(&self.memory);
        let answer = self.sender.answer::<Value>(Some(permit), options.once(), Exit::FREE, &request).await;
        let content = match answer {
            Ok(answer) if answer.result.get(self.kind.content).is_none_or(Value::is_null) => {
                Content { value: value.clone(), ..self.content(answer.result) }
            }
            Ok(answer) => self.content(answer.result),
            Err(error) => {
                if error.effect == Effect::None {
                    leaving.refused();
                }
                return Err(error);
            }
        };
        let content = Arc::new(content);
        let writes = leaving.arrived(&content);
        Ok(Live { content, writes, found: true })
    }

    fn content(&self, mut result: Value) -> Content {
        let version = result.get(self.kind.version).and_then(Value::as_i64);
        match result.get_mut(self.kind.content).map(Value::take) {
            None | Some(Value::Null) => Content { version, ..Content::default() },
            Some(value) => Content { value, version },
        }
    }
}
