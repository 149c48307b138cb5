//! HTTP request → HTTP answer. The only place that opens sockets; tests hand in their own.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;

/// Sends one request.
pub trait Transport: Send + Sync + 'static {
    /// Sends it and reads the whole answer.
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>>;
}

/// No answer came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// Whether anything may have reached the server; false if the connection failed before.
    pub sent: bool,
    /// What happened.
    pub message: String,
}

/// Pooled connections over TLS (or plain HTTP, for simulators).
#[derive(Clone)]
pub struct HttpTransport {
    client: reqwest::Client,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(30);

impl HttpTransport {
    /// A pool of its own. The process must have installed its TLS provider before.
    pub fn new() -> Result<Self, TransportError> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("portolan/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(failure)?;
        Ok(Self { client })
    }

    async fn exchange(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        let request = reqwest::Request::try_from(request).map_err(failure)?;
        let answer = self.client.execute(request).await.map_err(failure)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut response = http::Response::new(answer.bytes().await.map_err(failure)?);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpTransport")
    }
}

fn failure(error: reqwest::Error) -> TransportError {
    let sent = !(error.is_connect() || error.is_builder());
    let message = match (error.is_timeout(), error.is_connect()) {
        (true, true) => "connecting to Cloudflare timed out".to_owned(),
        (true, false) => "Cloudflare did not answer in time".to_owned(),
        (false, true) => format!("cannot connect to Cloudflare: {}", innermost(&error)),
        (false, false) => format!("the connection to Cloudflare broke: {}", innermost(&error)),
    };
    TransportError { sent, message }
}

fn innermost(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => innermost(source),
        None => error.to_string(),
    }
}
