//! What this crate's tests share: a scripted API in memory and a record-shaped item.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use portolan_core::Item;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::transport::{Transport, TransportError};
use crate::client::Client;
use crate::clients::Clients;
use crate::collection::{Batch, Collection, TypedCollection};
use crate::credential::Credential;
use crate::settings::Settings;

/// What is kept of a DNS record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TestRecord {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) content: String,
}

/// The records of a zone, as tests keep them.
pub(crate) static RECORDS: TypedCollection<TestRecord> = TypedCollection::of(Collection {
    per_page: 5_000,
    batch: Some(Batch { template: "/zones/{zone_id}/dns_records/batch", max: 200 }),
    ..crate::collection!(Zone, "dns_records", "dns_records")
});

/// The routes of an account, as tests keep them.
pub(crate) static ROUTES: TypedCollection<TestRecord> = TypedCollection::of(Collection {
    per_page: 1_000,
    list_query: &[("is_deleted", "false")],
    refuses_duplicates: true,
    ..crate::collection!(Account, "network_routes", "teamnet/routes")
});

impl Item for TestRecord {
    fn natural_key(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    fn owner_key(&self) -> Option<String> {
        Some(self.name.clone())
    }
}

/// A record as the API shows it.
pub(crate) fn record(id: &str, name: &str, content: &str) -> Value {
    json!({"id": id, "type": "A", "name": name, "content": content, "ttl": 1, "meta": {}})
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) at: Duration,
    pub(crate) line: String,
    pub(crate) body: Value,
    pub(crate) headers: http::HeaderMap,
}

pub(crate) type Answered = Result<http::Response<Bytes>, TransportError>;
type Script = Box<dyn FnMut(&SeenRequest) -> Answered + Send>;

/// An API that a closure plays.
pub(crate) struct Scripted {
    start: Instant,
    latency: Duration,
    script: Mutex<Script>,
    seen: Mutex<Vec<SeenRequest>>,
}

impl Scripted {
    pub(crate) fn new(latency: Duration, script: impl FnMut(&SeenRequest) -> Answered + Send + 'static) -> Arc<Self> {
        let (script, seen) = (Mutex::new(Box::new(script) as Script), Mutex::default());
        Arc::new(Self { start: Instant::now(), latency, script, seen })
    }

    /// Answers in order, and then only with the last one.
    pub(crate) fn in_order(answers: impl IntoIterator<Item = Answered>) -> Arc<Self> {
        let mut answers: VecDeque<Answered> = answers.into_iter().collect();
        Self::new(Duration::ZERO, move |_| match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().expect("a script has at least one answer"),
        })
    }

    pub(crate) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// `GET /zones?page=1` and so on.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// A client of this API.
    pub(crate) fn client(self: &Arc<Self>) -> Client {
        self.client_with(Settings::default())
    }

    pub(crate) fn client_with(self: &Arc<Self>, settings: Settings) -> Client {
        clients(settings, self.clone()).client(&Credential::token("t0ken-canary"))
    }
}

pub(crate) fn clients(settings: Settings, transport: Arc<dyn Transport>) -> Clients {
    Clients::new(Settings { base_url: String::new(), ..settings }, transport, Arc::new(|| jiff::Timestamp::UNIX_EPOCH))
}

impl Transport for Scripted {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Answered> {
        Box::pin(async move {
            let seen = SeenRequest {
                at: self.start.elapsed(),
                line: format!("{} {}", request.method(), request.uri()),
                body: serde_json::from_slice(request.body()).unwrap_or_default(),
                headers: request.headers().clone(),
            };
            self.seen.lock().unwrap().push(seen.clone());
            tokio::time::sleep(self.latency / 2).await;
            let answer = (self.script.lock().unwrap())(&seen);
            tokio::time::sleep(self.latency / 2).await;
            answer
        })
    }
}

/// A successful answer.
pub(crate) fn good(result: Value) -> Answered {
    answer(200, &json!({"success": true, "errors": [], "messages": [], "result": result}))
}

/// A refusal.
pub(crate) fn bad(status: u16, code: u64) -> Answered {
    answer(status, &json!({"success": false, "errors": [{"code": code, "message": "no"}], "result": null}))
}

/// Any answer.
#[expect(clippy::unnecessary_wraps, reason = "scripts mix answers and broken connections")]
pub(crate) fn answer(status: u16, body: &Value) -> Answered {
    Ok(http::Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap())
}

/// The same with a header.
pub(crate) fn with_header(answer: Answered, name: &'static str, value: &str) -> Answered {
    answer.map(|mut answer| {
        answer.headers_mut().append(name, value.parse().unwrap());
        answer
    })
}

/// The connection broke; `sent` before or after the request left.
pub(crate) fn broken(sent: bool) -> Answered {
    Err(TransportError { sent, message: "connection reset".to_owned() })
}

/// What is logged, kept as text.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Keeps the lines of this thread until the guard is dropped.
    pub(crate) fn start(&self) -> tracing::subscriber::DefaultGuard {
        // With a single subscriber in the process, tracing asks the thread that reaches a line first whether anybody wants
        // it, and that may be another test's. A second one makes it ask all.
        static SECOND: std::sync::OnceLock<tracing::Dispatch> = std::sync::OnceLock::new();
        SECOND.get_or_init(|| tracing::Dispatch::new(tracing_subscriber::registry()));
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
