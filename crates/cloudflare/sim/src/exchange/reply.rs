//! What a handler answers, and the envelope around it.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

/// One entry of an answer's `errors`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplyError {
    pub(crate) code: u64,
    pub(crate) message: String,
    /// Inner errors, as the DNS service wraps some of its own.
    pub(crate) chain: Vec<(u64, String)>,
    /// Which part of the body is meant, as a JSON pointer.
    pub(crate) pointer: Option<String>,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) failures: Vec<ReplyError>,
    pub(crate) retry_after_seconds: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: u64, message: impl Into<String>) -> Self {
        let failure = ReplyError { code, message: message.into(), chain: Vec::new(), pointer: None };
        Self { status, failures: vec![failure], retry_after_seconds: None }
    }

    pub(crate) fn bad(code: u64, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// A second entry in the list of errors.
    pub(crate) fn and(mut self, code: u64, message: impl Into<String>) -> Self {
        self.failures.push(ReplyError { code, message: message.into(), chain: Vec::new(), pointer: None });
        self
    }

    /// An error that explains the last one, in its `error_chain`.
    pub(crate) fn because(mut self, code: u64, message: impl Into<String>) -> Self {
        if let Some(last) = self.failures.last_mut() {
            last.chain.push((code, message.into()));
        }
        self
    }

    /// Says which part of the body the errors are about.
    pub(crate) fn at(mut self, pointer: &str) -> Self {
        for failure in &mut self.failures {
            failure.pointer = Some(pointer.to_owned());
        }
        self
    }

    pub(crate) fn envelope(&self) -> Bytes {
        let errors: Vec<Value> = self.failures.iter().map(ReplyError::to_json).collect();
        let envelope = json!({"success": false, "errors": errors, "messages": [], "result": null});
        Bytes::from(envelope.to_string())
    }
}

impl ReplyError {
    fn to_json(&self) -> Value {
        let mut entry = json!({"code": self.code, "message": self.message});
        if !self.chain.is_empty() {
            let chain = self.chain.iter().map(|(code, message)| json!({"code": code, "message": message}));
            entry["error_chain"] = chain.collect();
        }
        if let Some(pointer) = &self.pointer {
            entry["source"] = json!({"pointer": pointer});
        }
        entry
    }
}

/// A granted request: its result, already as JSON text so that long lists are written once.
#[derive(Clone, Debug)]
pub(crate) struct Success {
    pub(crate) status: u16,
    pub(crate) result: String,
    pub(crate) info: Option<Value>,
}

impl Success {
    pub(crate) fn of(result: &impl Serialize) -> Self {
        Self { status: 200, result: to_text(result), info: None }
    }

    /// A list of objects that are JSON text already.
    pub(crate) fn list<'a>(texts: impl Iterator<Item = Cow<'a, str>>, info: Option<Value>) -> Self {
        Self { status: 200, result: array(texts), info }
    }

    /// The same with another status.
    pub(crate) fn with(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn envelope(&self) -> Bytes {
        let head = r#"{"success":true,"errors":[],"messages":[],"result":"#;
        let mut text = String::with_capacity(head.len() + self.result.len() + 160);
        text.push_str(head);
        text.push_str(&self.result);
        if let Some(info) = &self.info {
            text.push_str(r#","result_info":"#);
            text.push_str(&info.to_string());
        }
        text.push('}');
        Bytes::from(text)
    }
}

/// What every handler returns.
pub(crate) type Reply = Result<Success, Refusal>;

pub(crate) fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("JSON values have string keys")
}

/// `[a,b,…]`
pub(crate) fn array<'a>(texts: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut array = String::from("[");
    for text in texts {
        if array.len() > 1 {
            array.push(',');
        }
        array.push_str(&text);
    }
    array.push(']');
    array
}
