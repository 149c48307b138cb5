//! The log of requests: in memory, and as JSON lines in a file.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::{call::parse_json, mask};

/// How many requests are kept in memory.
const KEPT: usize = 200_000;
/// How many bytes of answers are kept in memory; older answers are forgotten first.
const KEPT_BYTES: usize = 64 << 20;

/// A request and its answer, without secrets.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// When, in milliseconds since 1970 by the simulator's clock.
    pub at_ms: i64,
    /// HTTP method.
    pub method: String,
    /// Path as sent, `/client/v4` included.
    pub path: String,
    /// Query parameters; a repeated one is an array.
    pub query: Value,
    /// Body, `null` when there was none.
    pub body: Value,
    /// HTTP status; 0 when no answer was given.
    pub status: u16,
    /// Digest of the credential that was sent ([`credential_id`](crate::credential_id)); empty when there was none.
    pub credential: String,
    response: Bytes,
}

impl RecordedRequest {
    /// Path without `/client/v4`.
    pub fn route(&self) -> &str {
        self.path.strip_prefix(crate::call::PREFIX).unwrap_or(&self.path)
    }

    /// Whether the request asked for a change.
    pub fn is_write(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH" | "DELETE")
    }

    /// The answer; `null` when none was given or it is no longer kept.
    pub fn response(&self) -> Value {
        parse_json(&self.response).unwrap_or_default()
    }

    /// The line in a recording: as [`RecordedRequest::to_json`], but the answer is copied, not parsed.
    fn to_line(&self) -> String {
        let Self { at_ms, method, path, query, body, status, credential, response } = self;
        let response = std::str::from_utf8(response).ok().filter(|text| text.starts_with('{')).unwrap_or("null");
        let (method, path) = (Value::from(method.as_str()), Value::from(path.as_str()));
        format!(
            "{{\"at_ms\":{at_ms},\"method\":{method},\"path\":{path},\"query\":{query},\"body\":{body},\
             \"status\":{status},\"credential\":\"{credential}\",\"response\":{response}}}\n"
        )
    }

    /// The request as one line of a recording.
    pub fn to_json(&self) -> Value {
        json!({
            "at_ms": self.at_ms, "method": self.method, "path": self.path, "query": self.query,
            "body": self.body, "status": self.status, "credential": self.credential, "response": self.response(),
        })
    }
}

/// What is known of a request when its outcome is decided.
#[derive(Debug)]
pub(crate) struct RequestRecord<'a> {
    pub(crate) at_ms: i64,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(String, String)],
    pub(crate) body: &'a Bytes,
    pub(crate) credential: &'a str,
}

/// All requests so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: VecDeque<RecordedRequest>,
    with_response: usize,
    bytes: usize,
    file: Option<File>,
}

impl Log {
    pub(crate) fn to_file(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file: Some(file), ..Self::default() })
    }

    pub(crate) fn add(&mut self, asked: &RequestRecord<'_>, status: u16, response: &Bytes) {
        let entry = RecordedRequest {
            at_ms: asked.at_ms,
            method: asked.method.to_owned(),
            path: asked.path.to_owned(),
            query: query_json(asked.query),
            body: body_json(asked.body),
            status,
            credential: asked.credential.to_owned(),
            response: masked(asked.path, response),
        };
        self.write(&entry);
        self.bytes += entry.response.len();
        self.kept.push_back(entry);
        self.forget();
    }

    pub(crate) fn entries(&self) -> Vec<RecordedRequest> {
        self.kept.iter().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn take(&mut self) -> Vec<RecordedRequest> {
        (self.bytes, self.with_response) = (0, 0);
        std::mem::take(&mut self.kept).into()
    }

    fn write(&mut self, entry: &RecordedRequest) {
        let Some(file) = &mut self.file else { return };
        let line = entry.to_line();
        if let Err(error) = file.write_all(line.as_bytes()).and_then(|()| file.flush()) {
            tracing::error!(%error, "Stopped recording requests");
            self.file = None;
        }
    }

    /// `with_response` is the place of the oldest request whose answer is kept.
    fn forget(&mut self) {
        if self.kept.len() > KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.response.len();
            self.with_response = self.with_response.saturating_sub(1);
        }
        while self.bytes > KEPT_BYTES && self.with_response < self.kept.len() {
            self.bytes -= std::mem::take(&mut self.kept[self.with_response].response).len();
            self.with_response += 1;
        }
    }
}

fn masked(path: &str, response: &Bytes) -> Bytes {
    if !mask::is_sensitive(path) {
        return response.clone();
    }
    let Ok(mut answer) = parse_json(response) else { return response.clone() };
    mask::mask_answer(path, &mut answer);
    Bytes::from(answer.to_string())
}

fn body_json(body: &Bytes) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let unreadable = || Value::from(format!("{} bytes that are not JSON", body.len()));
    let mut value = parse_json(body).unwrap_or_else(|_| unreadable());
    mask::mask(&mut value);
    value
}

fn query_json(query: &[(String, String)]) -> Value {
    let mut members = Map::new();
    for (name, value) in query {
        let value = Value::from(value.as_str());
        match members.get_mut(name) {
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = json!([first.take(), value]),
            None => drop(members.insert(name.clone(), value)),
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_answers_are_forgotten_before_memory_grows() {
        let mut log = Log::default();
        let answer = Bytes::from(format!("\"{}\"", "x".repeat(KEPT_BYTES / 4)));
        let asked =
            RequestRecord { at_ms: 0, method: "GET", path: "/x", query: &[], body: &Bytes::new(), credential: "" };

        for _ in 0..6 {
            log.add(&asked, 200, &answer);
        }

        let kept: Vec<bool> = log.entries().iter().map(|entry| !entry.response().is_null()).collect();
        assert_eq!(kept, [false, false, false, true, true, true]);
    }

    #[test]
    fn repeated_parameters_become_an_array() {
        let pair = |value: &str| ("tag".to_owned(), value.to_owned());

        assert_eq!(query_json(&[pair("a"), pair("b"), pair("c")]), json!({"tag": ["a", "b", "c"]}));
    }
}
