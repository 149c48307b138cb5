//! What a server said to one request.

use serde_json::{Value, json};

/// Status line, the headers that clients read, and the body.
#[derive(Clone, Debug)]
pub(crate) struct ServerAnswer {
    pub status: u16,
    pub content_type: String,
    pub warnings: Vec<String>,
    pub body: AnswerBody,
}

/// The body in the form it is compared in.
#[derive(Clone, Debug)]
pub(crate) enum AnswerBody {
    Json(Value),
    Text(String),
    /// The events of a watch and how it ended.
    Events {
        events: Vec<Value>,
        end: &'static str,
    },
}

impl AnswerBody {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        match serde_json::from_slice(bytes) {
            Ok(value) => Self::Json(value),
            Err(_) => Self::Text(String::from_utf8_lossy(bytes).into_owned()),
        }
    }
}

impl ServerAnswer {
    pub(crate) fn head(response: &reqwest::Response) -> Self {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let warnings = response.headers().get_all("warning").iter();
        Self {
            status: response.status().as_u16(),
            content_type: header("content-type").unwrap_or_default().to_owned(),
            warnings: warnings.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect(),
            body: AnswerBody::Text(String::new()),
        }
    }

    /// No answer at all: status 0 and why.
    pub(crate) fn failed(reason: &str) -> Self {
        Self { status: 0, content_type: String::new(), warnings: Vec::new(), body: AnswerBody::Text(reason.to_owned()) }
    }

    /// The JSON body, `null` where there is none.
    pub(crate) fn json(&self) -> &Value {
        match &self.body {
            AnswerBody::Json(value) => value,
            AnswerBody::Text(_) | AnswerBody::Events { .. } => &Value::Null,
        }
    }

    /// One value with everything that is compared.
    pub(crate) fn to_value(&self) -> Value {
        let body = match &self.body {
            AnswerBody::Json(value) => value.clone(),
            AnswerBody::Text(text) => json!(text),
            AnswerBody::Events { events, end } => json!({"events": events, "end": end}),
        };
        json!({"status": self.status, "type": self.content_type, "warnings": self.warnings, "body": body})
    }
}
