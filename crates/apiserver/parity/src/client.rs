//! A request as data → the server's answer.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::answer::{AnswerBody, ServerAnswer};
use crate::server::PeerServer;

/// How long one answer may take; a server that needs longer is taken to hang.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// A request to either server: the path is relative to the server's URL.
#[derive(Clone, Debug)]
pub(crate) struct PeerRequest {
    pub method: &'static str,
    pub path: String,
    pub content_type: Option<String>,
    /// Replace what the client would send by itself (`Authorization`, `Accept`).
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl PeerRequest {
    pub(crate) fn get(path: &str) -> Self {
        Self { method: "GET", path: path.to_owned(), content_type: None, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn json(method: &'static str, path: &str, body: &Value) -> Self {
        let content_type = Some("application/json".to_owned());
        Self { content_type, method, body: body.to_string().into_bytes(), ..Self::get(path) }
    }
}

/// A connection pool to one server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Client {
    pub(crate) fn new(server: &PeerServer) -> Result<Self, reqwest::Error> {
        // Two tests of one process may both come here first; the second finds it done.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder().tls_certs_only([]).no_proxy().http1_only();
        for certificate in reqwest::Certificate::from_pem_bundle(server.ca.as_bytes())? {
            builder = builder.add_root_certificate(certificate);
        }
        Ok(Self { http: builder.build()?, url: server.url.clone(), token: server.token.clone() })
    }

    /// The text at a path, or what went wrong: for readiness.
    pub(crate) async fn text(&self, path: &str) -> String {
        let answer = self.http.get(format!("{}{path}", self.url)).bearer_auth(&self.token).send().await;
        match answer {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    /// The whole answer; a transport failure is an answer, too, because the other server may not have it.
    pub(crate) async fn send(&self, request: &PeerRequest) -> ServerAnswer {
        match tokio::time::timeout(ANSWER_WITHIN, self.exchange(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => ServerAnswer::failed(&broken(&error)),
            Err(_) => ServerAnswer::failed("no answer in time"),
        }
    }

    async fn exchange(&self, request: &PeerRequest) -> Result<ServerAnswer, reqwest::Error> {
        let response = self.builder(request).send().await?;
        let mut answer = ServerAnswer::head(&response);
        let bytes = response.bytes().await?;
        answer.body = AnswerBody::parse(&bytes);
        Ok(answer)
    }

    /// Reads a watch event by event until `enough` says so, the server ends it, or `within` has passed.
    pub(crate) async fn watch(
        &self,
        request: &PeerRequest,
        within: Duration,
        mut enough: impl FnMut(&[Value]) -> bool,
    ) -> ServerAnswer {
        let response = match self.builder(request).send().await {
            Ok(response) => response,
            Err(error) => return ServerAnswer::failed(&broken(&error)),
        };
        let mut answer = ServerAnswer::head(&response);
        if answer.status != 200 {
            answer.body = AnswerBody::parse(&response.bytes().await.unwrap_or_default());
            return answer;
        }
        let mut events = Vec::new();
        let reading = read_events(response, &mut events, &mut enough);
        let end = tokio::time::timeout(within, reading).await.unwrap_or("timed out");
        answer.body = AnswerBody::Events { events, end };
        answer
    }

    fn builder(&self, request: &PeerRequest) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(request.method.as_bytes()).unwrap_or(reqwest::Method::GET);
        self.http
            .request(method, format!("{}{}", self.url, request.path))
            .headers(self.headers(request))
            .body(request.body.clone())
    }

    fn headers(&self, request: &PeerRequest) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.token)).expect("a token is plain text");
        headers.insert(AUTHORIZATION, bearer);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(Ok(content_type)) = request.content_type.as_deref().map(HeaderValue::from_str) {
            headers.insert(CONTENT_TYPE, content_type);
        }
        let name = |name: &str| HeaderName::from_bytes(name.as_bytes()).expect("cases name proper headers");
        for (given, _) in &request.headers {
            headers.remove(name(given));
        }
        // A header that is given twice is sent twice.
        for (given, value) in request.headers.iter().filter(|(_, value)| !value.is_empty()) {
            headers.append(name(given), HeaderValue::from_str(value).expect("cases give proper header values"));
        }
        headers
    }
}

async fn read_events(
    response: reqwest::Response,
    events: &mut Vec<Value>,
    enough: &mut impl FnMut(&[Value]) -> bool,
) -> &'static str {
    let mut chunks = response.bytes_stream();
    let mut pending = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { return "broken off" };
        pending.extend_from_slice(&chunk);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            events.push(serde_json::from_slice(&line).unwrap_or(Value::Null));
            if enough(events) {
                return "enough";
            }
        }
    }
    "closed by the server"
}

/// The kind of a transport failure, without addresses.
fn broken(error: &reqwest::Error) -> String {
    if error.is_connect() { "connection refused".to_owned() } else { "connection broken".to_owned() }
}
