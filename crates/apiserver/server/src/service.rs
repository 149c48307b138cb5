//! HTTP in, HTTP out: the server as a `tower::Service`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use portolan_rbac::User;
use serde_json::json;

use crate::access::{self, Caller};
use crate::answer::{Answer, AnswerContent};
use crate::api::Api;
use crate::call::{Call, Incoming, Upgrade};
use crate::negotiate::{self, MediaTypes, ObjectForm, TextFormat};
use crate::openapi;
use crate::request::{self, RequestRoute};
use crate::status::{ApiError, status_text};

/// A body of the server's answers.
pub type ApiBody = UnsyncBoxBody<Bytes, Infallible>;

/// A body that is too long is read on up to this many times the limit, so that its client comes to read the answer.
const MOST_DRAINED: usize = 4;

/// The longest that a request's body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The server as a service: give it to `kube::Client::new`, or to an HTTP server.
#[derive(Clone)]
pub struct ApiService {
    api: Arc<Api>,
    /// How it is known who asks.
    caller: Caller,
    /// Turns true when the server stops, which ends watches.
    stopping: tokio::sync::watch::Receiver<bool>,
}

impl ApiService {
    pub(crate) fn new(api: Arc<Api>, caller: Caller, stopping: tokio::sync::watch::Receiver<bool>) -> Self {
        Self { api, caller, stopping }
    }

    /// Answers one request.
    async fn answer<B>(self, request: Request<B>) -> Response<ApiBody>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: std::fmt::Display,
    {
        let (mut parts, body) = request.into_parts();
        let route = request::route(parts.uri.path());
        let user = match self.admit(&parts, &route) {
            Ok(user) => user,
            Err(error) => return failure(&error, &[], error_format(&parts.headers)),
        };
        let body = match read_body(body, &parts.headers, self.api.limits.body_bytes).await {
            Ok(body) => body,
            Err(error) => return failure(&error, &[], TextFormat::Json),
        };
        let text = |name: header::HeaderName| {
            parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
        };
        let upgrade = parts.headers.contains_key(header::UPGRADE).then(|| Upgrade {
            headers: parts.headers.clone(),
            connection: parts.extensions.remove(),
            stopping: self.stopping.clone(),
        });
        let incoming = Incoming {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            accept: text(header::ACCEPT),
            content_type: text(header::CONTENT_TYPE),
            user_agent: text(header::USER_AGENT),
            user,
            body,
            upgrade,
        };
        let format = negotiate::accept(&incoming.accept, &[], MediaTypes::One)
            .map_or(TextFormat::Json, |accepted| accepted.format);
        match self.dispatch(route, incoming).await {
            Ok(answer) => success(answer.compressed(&parts.headers).await, &parts.headers, &self.stopping),
            Err((error, warnings)) => failure(&error, &warnings, format),
        }
    }

    /// The user that a request runs as. Probes need no token.
    fn admit(&self, parts: &Parts, route: &RequestRoute) -> Result<Arc<User>, ApiError> {
        let is_anonymous = matches!(self.caller, Caller::Bearer) && !parts.headers.contains_key(header::AUTHORIZATION);
        if *route == RequestRoute::Health && is_anonymous {
            return Ok(access::administrator());
        }
        self.caller.admit(&self.api, parts)
    }

    async fn dispatch(&self, route: RequestRoute, incoming: Incoming) -> Result<Answer, (ApiError, Vec<String>)> {
        if let RequestRoute::Resource(target) = route {
            let method = incoming.method.clone();
            let call = Call::new(self.api.clone(), target, incoming).map_err(|e| (e, Vec::new()))?;
            return call.run(&method).await;
        }
        self.document(&route, &incoming).map_err(|error| (error, Vec::new()))
    }

    /// Everything that is not a resource.
    fn document(&self, route: &RequestRoute, incoming: &Incoming) -> Result<Answer, ApiError> {
        if *route == RequestRoute::Unknown {
            let below_api = incoming.path.starts_with("/api/") || incoming.path.starts_with("/apis/");
            return Err(if below_api { ApiError::no_such_resource() } else { ApiError::no_such_path() });
        }
        if *route == RequestRoute::Health {
            return Ok(Answer::text(StatusCode::OK, "ok"));
        }
        if *route == RequestRoute::OpenApi {
            return openapi::answer(&self.api, incoming);
        }
        if incoming.method != Method::GET {
            return Err(ApiError::method_not_allowed());
        }
        let accepted = negotiate::accept(&incoming.accept, &[ObjectForm::Discovery], MediaTypes::One)?;
        let aggregated = accepted.shape == ObjectForm::Discovery;
        let registry = self.api.registry();
        let value = match route {
            RequestRoute::Root => {
                json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]})
            }
            RequestRoute::Version => version(),
            RequestRoute::CoreVersions if aggregated => return Ok(discovery(&registry.aggregated(true))),
            RequestRoute::Groups if aggregated => return Ok(discovery(&registry.aggregated(false))),
            RequestRoute::CoreVersions => registry.core_versions(""),
            RequestRoute::Groups => registry.group_list(),
            RequestRoute::Group(group) => registry.group(group).ok_or_else(ApiError::no_such_path)?,
            RequestRoute::GroupVersion(group, version) => registry.resource_list(group, version).ok_or_else(|| {
                if registry.is_builtin_group(group) { ApiError::no_such_resource() } else { ApiError::no_such_path() }
            })?,
            RequestRoute::Health | RequestRoute::Resource(_) | RequestRoute::OpenApi | RequestRoute::Unknown => {
                return Err(ApiError::no_such_path());
            }
        };
        Ok(Answer::value(StatusCode::OK, &value, accepted))
    }
}

fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": concat!("v1.36.3+portolan-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": concat!("linux/", "amd64"),
    })
}

fn discovery(value: &serde_json::Value) -> Answer {
    let mut answer = Answer::value(StatusCode::OK, value, negotiate::PLAIN);
    answer.content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    answer.known_as(&openapi::hash(value.to_string().as_bytes()))
}

/// The form of an error that comes before the request is looked at.
fn error_format(headers: &HeaderMap) -> TextFormat {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    negotiate::accept(accept, &[], MediaTypes::One).map_or(TextFormat::Json, |accepted| accepted.format)
}

/// A whole body, unless it is too long or too slow.
async fn read_body<B>(body: B, headers: &HeaderMap, limit: usize) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit * MOST_DRAINED) {
        return Err(ApiError::too_large(limit));
    }
    let read = async {
        let mut body = std::pin::pin!(body);
        let (mut whole, mut seen) = (BytesMut::new(), 0);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| ApiError::bad_request(format!("reading the request's body: {e}")))?;
            if let Ok(data) = frame.into_data() {
                seen += data.len();
                if seen > limit * MOST_DRAINED {
                    return Err(ApiError::too_large(limit));
                }
                if seen <= limit {
                    whole.extend_from_slice(&data);
                }
            }
        }
        if seen > limit { Err(ApiError::too_large(limit)) } else { Ok(whole.freeze()) }
    };
    match tokio::time::timeout(BODY_TIMEOUT, read).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::bad_request("the request's body took too long")),
    }
}

fn success(answer: Answer, request: &HeaderMap, stopping: &tokio::sync::watch::Receiver<bool>) -> Response<ApiBody> {
    let is_known = answer.code == StatusCode::OK && answer.etag.as_deref().is_some_and(|etag| is_known(request, etag));
    let body = match answer.body {
        _ if is_known => full(Bytes::new()),
        AnswerContent::Full(bytes) => full(bytes),
        AnswerContent::Later(body) => full(body()),
        AnswerContent::Stream(lines) => {
            let mut stopping = stopping.clone();
            let stopped = async move {
                // An error means that the server is gone, which is as good as stopping.
                let _ = stopping.wait_for(|stop| *stop).await;
            };
            let frames = lines.take_until(Box::pin(stopped)).map(|chunk| Ok(Frame::data(chunk)));
            StreamBody::new(frames).boxed_unsync()
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { answer.code };
    let headers = response.headers_mut();
    if !is_known && !answer.content_type.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(encoding) = answer.encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if let Some(etag) = answer.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
        headers.insert(header::ETAG, etag);
    }
    for (name, value) in answer.headers {
        headers.insert(name, value);
    }
    add_warnings(headers, &answer.warnings);
    response
}

/// Whether the client has a document already: `If-None-Match` may name several, and weak ones.
fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let known = request.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
    known.split(',').map(str::trim).any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag)
}

fn failure(error: &ApiError, warnings: &[String], format: TextFormat) -> Response<ApiBody> {
    let (content_type, text) = match format {
        _ if error.plain => ("text/plain; charset=utf-8", error.message.clone().into_bytes()),
        TextFormat::Yaml => {
            (format.media_type(), serde_saphyr::to_string(&error.status()).unwrap_or_default().into_bytes())
        }
        TextFormat::Json => (format.media_type(), status_text(&error.status())),
    };
    let mut response = Response::new(full(Bytes::from(text)));
    *response.status_mut() = error.code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = error.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    add_warnings(headers, warnings);
    response
}

/// `Warning: 299 - "text"`, once for each text.
fn add_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    let mut seen = std::collections::HashSet::new();
    for warning in warnings.iter().filter(|w| seen.insert(w.as_str())) {
        let text: String = warning.chars().filter(|c| !c.is_control()).collect();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}

fn full(bytes: Bytes) -> ApiBody {
    Full::new(bytes).boxed_unsync()
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}
