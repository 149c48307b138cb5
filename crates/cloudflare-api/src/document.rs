//! Group commit for whole documents, such as a tunnel's configuration: read, let every gathered source edit, write once.
//!
//! The API has no `If-Match`. Somebody's write between our read and our write is lost there, but shows as a version that is
//! not the one read plus one: then it is read and merged again, and the caller is told ([`Raced`]).

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use http::Method;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::error::{ApiError, Effect, ErrorClass};
use crate::governor::Lane;
use crate::limiter::Permit;
use crate::request::Request;
use crate::sender::Sender;
use crate::urgency::Urgency;

#[cfg(test)]
mod tests;

/// Times that a document is merged again because somebody else wrote it meanwhile.
const MERGES: u32 = 3;

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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Its content; null where nothing was ever written.
    pub value: Value,
    /// Its version, where the API counts.
    pub version: Option<i64>,
}

/// Somebody else wrote between our read and our write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raced {
    /// The version that was read.
    pub read: i64,
    /// The version that our write became.
    pub became: i64,
}

/// What became of an edit.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// The document that holds the edit.
    pub content: Content,
    /// Whether anything had to be written.
    pub written: bool,
    /// Whether somebody else's write was overtaken on the way.
    pub raced: Option<Raced>,
}

type Edit = Arc<dyn Fn(&Value) -> Value + Send + Sync>;
type Reply = oneshot::Sender<Result<Committed, ApiError>>;

/// One document's handle, with one writer for everybody in the process.
pub struct Document {
    shared: Arc<Shared>,
    writer: OnceLock<AbortOnDropHandle<()>>,
}

impl Document {
    pub(crate) fn new(sender: Arc<Sender>, kind: &'static DocumentKind, scope: &str, owner: &str) -> Self {
        let shared = Shared {
            sender,
            kind,
            segments: [scope.to_owned(), owner.to_owned()],
            waiting: Mutex::default(),
            arrived: Notify::new(),
            urgency: Urgency::default(),
        };
        Self { shared: Arc::new(shared), writer: OnceLock::new() }
    }

    /// Reads it.
    pub async fn read(&self, lane: Lane) -> Result<Content, ApiError> {
        self.shared.read(None, lane).await
    }

    /// Applies `edit` to the document as it stands, together with whatever else gathered. `edit` maps the live content to
    /// the wanted one; it may run several times. A newer edit of the same `source` that waits too takes this one's place,
    /// and both get its result.
    pub async fn edit(
        &self,
        lane: Lane,
        source: &str,
        edit: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Result<Committed, ApiError> {
        let (reply, answer) = oneshot::channel();
        self.shared.push(lane, source, Arc::new(edit), reply);
        self.writer.get_or_init(|| AbortOnDropHandle::new(tokio::spawn(run(self.shared.clone()))));
        answer.await.unwrap_or_else(|_| Err(ApiError::transient("the writer stopped", Effect::Unknown)))
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

struct Source {
    name: String,
    lane: Lane,
    edit: Edit,
    replies: Vec<Reply>,
}

impl Source {
    fn answer(self, answer: &Result<Committed, ApiError>) {
        for reply in self.replies {
            // A caller that went away does not mind.
            let _ = reply.send(answer.clone());
        }
    }

    fn is_wanted(&self) -> bool {
        self.replies.iter().any(|reply| !reply.is_closed())
    }
}

struct Shared {
    sender: Arc<Sender>,
    kind: &'static DocumentKind,
    segments: [String; 2],
    waiting: Mutex<VecDeque<Source>>,
    arrived: Notify,
    urgency: Urgency,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Source>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, lane: Lane, name: &str, edit: Edit, reply: Reply) {
        let mut waiting = self.waiting();
        match waiting.iter_mut().find(|source| source.name == name) {
            Some(older) => {
                older.edit = edit;
                older.lane = older.lane.min(lane);
                older.replies.push(reply);
            }
            None => waiting.push_back(Source { name: name.to_owned(), lane, edit, replies: vec![reply] }),
        }
        self.urgency.raise(lane);
        self.arrived.notify_one();
    }

    fn lane(&self) -> Option<Lane> {
        let mut waiting = self.waiting();
        waiting.retain(Source::is_wanted);
        waiting.iter().map(|source| source.lane).min()
    }

    fn take(&self) -> Vec<Source> {
        self.waiting().drain(..).collect()
    }

    fn request(&self, method: Method) -> Request {
        Request::new(method, self.kind.template, &[&self.segments[0], &self.segments[1]])
    }

    async fn read(&self, permit: Option<Permit>, lane: Lane) -> Result<Content, ApiError> {
        let answer = self.sender.answer_with(permit, lane, &self.request(Method::GET)).await?;
        Ok(self.content(answer.result))
    }

    async fn write(&self, lane: Lane, value: &Value) -> Result<Content, ApiError> {
        let request = self.request(Method::PUT).with_body(json!({ self.kind.content: value }));
        let mut content = self.content(self.sender.answer(lane, &request).await?.result);
        if content.value.is_null() {
            content.value = value.clone();
        }
        Ok(content)
    }

    fn content(&self, mut result: Value) -> Content {
        let version = result.get(self.kind.version).and_then(Value::as_i64);
        Content { value: result.get_mut(self.kind.content).map(Value::take).unwrap_or_default(), version }
    }
}

async fn run(shared: Arc<Shared>) {
    loop {
        let Some(lane) = shared.lane() else {
            shared.arrived.notified().await;
            continue;
        };
        commit(&shared, lane).await;
    }
}

/// Reads the document, then takes what has gathered meanwhile, and writes.
async fn commit(shared: &Shared, lane: Lane) {
    let (lane, permit) = shared.urgency.permit(&shared.sender, lane).await;
    let live = shared.read(Some(permit), lane).await;
    let group = shared.take();
    shared.urgency.settle();
    let mut live = match live {
        Ok(live) => live,
        Err(error) => {
            let answer = Err(error);
            return group.into_iter().for_each(|source| source.answer(&answer));
        }
    };
    shared.sender.metrics().committed(shared.kind.name, group.len());
    let mut groups = vec![group];
    while let Some(mut group) = groups.pop() {
        match apply(shared, lane, &live, &group).await {
            Err(error) if group.len() > 1 && concerns_content(&error) => {
                let second = group.split_off(group.len().div_ceil(2));
                groups.extend([second, group]);
            }
            answer => {
                if let Ok(committed) = &answer {
                    live = committed.content.clone();
                }
                for source in group {
                    source.answer(&answer);
                }
            }
        }
    }
}

async fn apply(shared: &Shared, lane: Lane, live: &Content, group: &[Source]) -> Result<Committed, ApiError> {
    let mut live = live.clone();
    let (mut written, mut raced) = (false, None);
    for _ in 0..MERGES {
        let wanted = group.iter().fold(live.value.clone(), |value, source| (source.edit)(&value));
        if wanted == live.value {
            break;
        }
        let now = shared.write(lane, &wanted).await?;
        written = true;
        let Some(race) = race(&live, &now) else {
            live = now;
            break;
        };
        tracing::warn!(
            document = shared.kind.name,
            read = race.read,
            became = race.became,
            "Somebody else wrote at the same time"
        );
        raced = Some(race);
        live = shared.read(None, lane).await?;
    }
    Ok(Committed { content: live, written, raced })
}

fn race(before: &Content, after: &Content) -> Option<Raced> {
    let (read, became) = (before.version?, after.version?);
    (became != read + 1).then_some(Raced { read, became })
}

fn concerns_content(error: &ApiError) -> bool {
    error.effect == Effect::None
        && matches!(error.class, ErrorClass::Validation | ErrorClass::Conflict | ErrorClass::Unknown)
}
