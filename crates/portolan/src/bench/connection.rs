//! One HTTP/2 connection with nothing on top, so that the client is not what gets measured.

use anyhow::{Context, bail};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::target::BenchServer;

const STREAM_WINDOW_BYTES: u32 = 8 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// A client: one connection, one request after the other.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    base: String,
    authorization: Option<String>,
}

/// What is sent with a request.
pub(super) struct SentBody<'a> {
    /// Its media type.
    pub(super) content_type: &'a str,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

impl SentBody<'_> {
    /// A JSON document.
    pub(super) fn json(document: &serde_json::Value) -> Self {
        Self { content_type: "application/json", bytes: document.to_string().into_bytes() }
    }

    /// No body.
    pub(super) fn none() -> Self {
        Self { content_type: "application/json", bytes: Vec::new() }
    }
}

impl Connection {
    /// Connects and shakes hands.
    pub(super) async fn open(target: &BenchServer) -> anyhow::Result<Self> {
        let (host, port) = target.host_and_port()?;
        let tcp =
            TcpStream::connect((host.as_str(), port)).await.with_context(|| format!("connecting to {host}:{port}"))?;
        tcp.set_nodelay(true).context("setting TCP_NODELAY")?;
        let name = ServerName::try_from(host.clone()).with_context(|| format!("{host} is no server name"))?;
        let tls =
            TlsConnector::from(target.tls()).connect(name, tcp).await.with_context(|| format!("TLS with {host}"))?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(1 << 20)
            .handshake(TokioIo::new(tls))
            .await
            .with_context(|| format!("HTTP/2 with {host}"))?;
        tokio::spawn(connection);
        let base = format!("https://{host}:{port}");
        Ok(Self { sender, base, authorization: target.authorization().map(str::to_owned) })
    }

    /// Sends a request and reads its whole answer, which must be a success.
    pub(super) async fn send(&mut self, method: Method, path: &str, body: SentBody<'_>) -> anyhow::Result<Bytes> {
        let (status, answer) = self.start(method.clone(), path, body).await?;
        let bytes =
            answer.collect().await.with_context(|| format!("reading the answer to {method} {path}"))?.to_bytes();
        if !status.is_success() {
            bail!("{method} {path} was answered {status}: {}", excerpt(&bytes));
        }
        Ok(bytes)
    }

    /// Sends a request and gives its answer's body as it comes.
    pub(super) async fn start(
        &mut self,
        method: Method,
        path: &str,
        body: SentBody<'_>,
    ) -> anyhow::Result<(StatusCode, Incoming)> {
        let mut request = Request::builder()
            .method(&method)
            .uri(format!("{}{path}", self.base))
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, body.content_type);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(Bytes::from(body.bytes))).with_context(|| format!("{path} is no path"))?;
        self.sender.ready().await.with_context(|| format!("the connection ended before {method} {path}"))?;
        let response = self.sender.send_request(request).await.with_context(|| format!("sending {method} {path}"))?;
        Ok((response.status(), response.into_body()))
    }
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned()
}
