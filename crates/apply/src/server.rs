//! A server and requests to it: plain requests with their answers, and watches as a stream of JSON events.

use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt, Stream, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// An answer (not a watch) that takes longer than this is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A server that answers Kubernetes requests.
#[derive(Clone)]
pub struct Server {
    client: kube::Client,
    address: String,
    origin: String,
}

/// One request, as a value.
pub struct ServerRequest<'a> {
    /// What is done.
    pub method: Method,
    /// Path and query.
    pub path: &'a str,
    /// In which form the answer is wanted.
    pub accept: &'a str,
    /// In which form the body is.
    pub content_type: &'a str,
    /// The body; empty for reads.
    pub body: Vec<u8>,
}

/// A successful answer.
pub struct ServerReply {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
    pub body: Value,
}

/// Why there is no successful answer.
#[derive(Debug)]
pub enum CallError {
    /// The server understood and refused, with a `Status`.
    Refused {
        /// HTTP status.
        code: u16,
        /// Reason of the `Status`.
        reason: String,
        /// What it says.
        message: String,
    },
    /// No answer came, or none that can be read.
    Failed(Failure),
}

impl<'a> ServerRequest<'a> {
    /// A read of `path`.
    pub fn get(path: &'a str) -> Self {
        let json = "application/json";
        Self { method: Method::GET, path, accept: json, content_type: json, body: Vec::new() }
    }

    fn into_request(self) -> Outcome<Request<Vec<u8>>> {
        Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(ACCEPT, self.accept)
            .header(CONTENT_TYPE, self.content_type)
            .body(self.body)
            .map_err(|error| {
                Failure::new(format!("{:?} is no request path: {error}", self.path))
                    .next("check the names given on the command line")
            })
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(failure) => failure,
            CallError::Refused { code, reason, message } => {
                let next = advice(code, &reason, &message);
                let failure = Self::new(message);
                match next {
                    Some(next) => failure.next(next),
                    None => failure,
                }
            }
        }
    }
}

/// What to do about a refusal, where its code says so.
fn advice(code: u16, reason: &str, message: &str) -> Option<&'static str> {
    match (code, reason) {
        (401, _) => Some("the token is not this server's; use the kubeconfig in its data directory"),
        (404, _) => Some("check the name and the namespace (-n NAMESPACE, or -A for all with `get`)"),
        (409, "Conflict") if message.contains("has been modified") => Some(
            "take metadata.resourceVersion out of the file, which is that of an older state, or fetch the object anew",
        ),
        (409, "Conflict") => Some("another manager owns these fields; --force-conflicts takes them over with `apply`"),
        (422, _) => Some("correct the fields named above and apply again"),
        (429, _) => Some("the server is busy; try again shortly"),
        _ => None,
    }
}

impl Server {
    /// A server at an address, which was found in `origin`.
    pub fn new(client: kube::Client, address: impl Into<String>, origin: impl Into<String>) -> Self {
        Self { client, address: address.into(), origin: origin.into() }
    }

    /// A server that is already connected, as the embedded one in this process.
    pub fn of_client(client: kube::Client, address: impl Into<String>) -> Self {
        Self::new(client, address, "none")
    }

    /// The client for typed requests.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The server's URL.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where its address was found.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The namespace of the kubeconfig's context, `default` where it names none.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Sends one request. Warnings of the server go to standard error.
    pub async fn call(&self, call: ServerRequest<'_>) -> Result<ServerReply, CallError> {
        let request = call.into_request().map_err(CallError::Failed)?;
        tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(request)).await.unwrap_or_else(|_| {
            Err(CallError::Failed(
                Failure::new(format!("{} gave no answer for {} s", self.address, ANSWER_TIMEOUT.as_secs()))
                    .next("look at the server's log, then try again"),
            ))
        })
    }

    async fn exchange(&self, request: Request<Vec<u8>>) -> Result<ServerReply, CallError> {
        let response = self.client.send(request.map(Into::into)).await.map_err(|error| self.unreachable(&error))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| self.unreachable(&error))?.to_bytes();
        print_warnings(&parts.headers);
        if parts.status.is_success() {
            let body = serde_json::from_slice(&bytes)
                .map_err(|error| CallError::Failed(Failure::new(format!("the answer is not JSON: {error}"))))?;
            return Ok(ServerReply { status: parts.status, body });
        }
        Err(refusal(parts.status, &bytes))
    }

    /// The object at `path`, or nothing where there is none.
    pub async fn find(&self, path: &str) -> Outcome<Option<Value>> {
        match self.call(ServerRequest::get(path)).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(CallError::Refused { code: 404, .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a namespace unless it is there.
    pub async fn make_namespace(&self, name: &str) -> Outcome {
        let collection = "/api/v1/namespaces";
        if self.find(&format!("{collection}/{}", crate::kinds::segment(name))).await?.is_some() {
            return Ok(());
        }
        let object = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let call = ServerRequest {
            method: Method::POST,
            body: object.to_string().into_bytes(),
            ..ServerRequest::get(collection)
        };
        self.call(call).await?;
        Ok(())
    }

    /// A watch: its events as they come, until the server ends it.
    pub async fn watch(&self, path: &str, accept: &str) -> Outcome<impl Stream<Item = Outcome<Value>> + Unpin + use<>> {
        let lines = self.stream_of(ServerRequest { accept, ..ServerRequest::get(path) }).await?;
        let broken = |error: std::io::Error| {
            Failure::new(format!("the watch broke off: {error}"))
                .next("the server stopped, or the network did; start again")
        };
        Ok(Box::pin(lines.lines().map_err(broken).and_then(|line| async move {
            serde_json::from_str(&line).map_err(|error| Failure::new(format!("a watch event is not JSON: {error}")))
        })))
    }

    /// A text as it comes, until the server ends it.
    pub async fn stream(&self, path: &str) -> Outcome<impl AsyncBufRead + use<>> {
        self.stream_of(ServerRequest { accept: "*/*", ..ServerRequest::get(path) }).await
    }

    async fn stream_of(&self, request: ServerRequest<'_>) -> Outcome<impl AsyncBufRead + use<>> {
        self.client.request_stream(request.into_request()?).await.map_err(|error| match error {
            kube::Error::Api(status) => {
                Failure::from(CallError::Refused { code: status.code, reason: status.reason, message: status.message })
            }
            error => self.unreachable(&error).into(),
        })
    }

    /// The sentence for a server that cannot be reached.
    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> CallError {
        CallError::Failed(
            Failure::new(format!("no answer from {} (kubeconfig {}): {}", self.address, self.origin, chain(error)))
                .next(
                    "start the server with `portolan apiserver` or `portolan up`, or name another one with --kubeconfig or KUBECONFIG",
                ),
        )
    }
}

/// An error and its causes, each said once.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn print_warnings(headers: &HeaderMap) {
    for value in headers.get_all("warning") {
        if let Some(text) = value.to_str().ok().and_then(warning_text) {
            eprintln!("Warning: {text}");
        }
    }
}

/// The quoted text of a warning header: `299 - "unknown field \"a\""`.
fn warning_text(header: &str) -> Option<String> {
    let (_, quoted) = header.split_once('"')?;
    let text = quoted.strip_suffix('"').unwrap_or(quoted);
    Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
}

fn refusal(status: StatusCode, bytes: &[u8]) -> CallError {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    CallError::Refused {
        code: status.as_u16(),
        reason: text("reason").unwrap_or_default(),
        message: text("message").unwrap_or_else(|| format!("the server answered {status} without saying why")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_header_loses_its_quoting() {
        assert_eq!(warning_text(r#"299 - "unknown field \"spec.a\"""#).as_deref(), Some(r#"unknown field "spec.a""#));
    }

    #[test]
    fn a_refusal_without_a_status_body_still_says_the_code() {
        let failure: Failure = refusal(StatusCode::BAD_GATEWAY, b"<html>").into();

        assert!(failure.to_string().contains("502"), "{failure}");
    }

    #[test]
    fn an_older_state_in_a_file_is_told_apart_from_a_conflict_of_fields() {
        let body = br#"{"kind":"Status","reason":"Conflict","message":"Operation cannot be fulfilled on httproutes \"a\": the object has been modified; please apply your changes to the latest version and try again"}"#;
        let failure: Failure = refusal(StatusCode::CONFLICT, body).into();

        let told = failure.to_string();
        assert!(told.contains("resourceVersion") && !told.contains("--force-conflicts"), "{told}");
    }

    #[test]
    fn a_conflict_tells_how_to_take_the_fields_over() {
        let body = br#"{"kind":"Status","reason":"Conflict","message":"conflict with \"a\""}"#;
        let failure: Failure = refusal(StatusCode::CONFLICT, body).into();

        assert!(failure.to_string().contains("--force-conflicts"), "{failure}");
    }
}
