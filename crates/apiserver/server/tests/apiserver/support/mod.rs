//! What the tests share: servers, raw requests and watches, clients in process and over TLS.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "every test uses a part; a failed step is a failed test"
)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use kube::config::{KubeConfigOptions, Kubeconfig};
use portolan_apiserver::{ApiBody, ApiServer, ApiService, Config, RunningServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tower::ServiceExt as _;

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Gives up on what never ends.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("this should not take so long")
}

/// A server in memory.
pub(crate) async fn server() -> ApiServer {
    ApiServer::open(Config::default()).await.unwrap()
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.text)))
    }

    pub(crate) fn ok(self) -> Value {
        assert!(self.code < 300, "{}: {}", self.code, String::from_utf8_lossy(&self.text));
        self.json()
    }
}

pub(crate) fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Sends a request in process and leaves its answer's body unread.
pub(crate) async fn open(
    service: &ApiService,
    method: &str,
    path: &str,
    kind: &str,
    body: Bytes,
) -> http::Response<ApiBody> {
    let mut request = Request::builder().method(method).uri(path);
    if !kind.is_empty() {
        request = request.header("content-type", kind);
    }
    service.clone().oneshot(request.body(Full::new(body)).unwrap()).await.unwrap()
}

/// Sends a request in process.
pub(crate) async fn send(service: &ApiService, method: &str, path: &str, kind: &str, body: impl Into<Bytes>) -> Answer {
    let response = open(service, method, path, kind, body.into()).await;
    let (parts, body) = response.into_parts();
    let text = soon(body.collect()).await.unwrap().to_bytes();
    Answer { code: parts.status.as_u16(), headers: parts.headers, text }
}

pub(crate) async fn get(service: &ApiService, path: &str) -> Answer {
    send(service, "GET", path, "", "").await
}

pub(crate) async fn post(service: &ApiService, path: &str, object: &Value) -> Answer {
    send(service, "POST", path, "application/json", object.to_string()).await
}

pub(crate) async fn put(service: &ApiService, path: &str, object: &Value) -> Answer {
    send(service, "PUT", path, "application/json", object.to_string()).await
}

pub(crate) async fn merge(service: &ApiService, path: &str, patch: &Value) -> Answer {
    send(service, "PATCH", path, "application/merge-patch+json", patch.to_string()).await
}

pub(crate) async fn delete(service: &ApiService, path: &str) -> Answer {
    send(service, "DELETE", path, "", "").await
}

pub(crate) fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

/// The lines of a watch.
pub(crate) struct Lines {
    body: ApiBody,
    rest: Vec<u8>,
    ready: std::collections::VecDeque<Vec<u8>>,
}

impl Lines {
    /// Opens a watch in process; the query comes after `watch=true`.
    pub(crate) async fn watch(service: &ApiService, path: &str, query: &str) -> Self {
        let response = open(service, "GET", &format!("{path}?watch=true{query}"), "", Bytes::new()).await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), rest: Vec::new(), ready: std::collections::VecDeque::new() }
    }

    /// The next line; none at the end.
    pub(crate) async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            let data = self.body.frame().await?.unwrap().into_data().unwrap();
            let mut parts = data.split(|b| *b == b'\n');
            self.rest.extend_from_slice(parts.next().unwrap_or_default());
            for part in parts {
                self.ready.push_back(std::mem::replace(&mut self.rest, part.to_vec()));
            }
        }
    }

    /// The next event; none at the end.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        soon(self.line()).await.map(|line| serde_json::from_slice(&line).unwrap())
    }

    /// The next events as type and name, with their versions.
    pub(crate) async fn seen(&mut self, count: usize) -> Vec<(String, String, u64)> {
        let mut seen = Vec::new();
        for _ in 0..count {
            let event = self.event().await.expect("the watch goes on");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            seen.push((text(&event["type"]), text(&event["object"]["metadata"]["name"]), version_of(&event["object"])));
        }
        seen
    }
}

/// A client of a server that listens.
pub(crate) async fn tls_client(server: &RunningServer) -> kube::Client {
    tls_client_of(&server.kubeconfig()).await
}

/// A client of the server that a kubeconfig names.
pub(crate) async fn tls_client_of(kubeconfig: &str) -> kube::Client {
    // A second test of the same process finds it installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

/// A bare TLS connection that speaks HTTP/1.1.
pub(crate) async fn connect(server: &RunningServer) -> TlsStream<TcpStream> {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// Sends bytes over a new connection and reads until the server closes it; a server may close before it read all.
pub(crate) async fn exchange(server: &RunningServer, request: &[u8]) -> String {
    let (mut reader, mut writer) = tokio::io::split(connect(server).await);
    let write = async {
        let _ = writer.write_all(request).await;
        let _ = writer.flush().await;
    };
    let mut text = Vec::new();
    let read = async {
        let _ = reader.read_to_end(&mut text).await;
    };
    soon(futures::future::join(write, read)).await;
    String::from_utf8_lossy(&text).into_owned()
}
