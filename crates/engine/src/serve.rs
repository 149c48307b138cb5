//! `/metrics`, and `/healthz`, `/livez`, `/readyz` for probes.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// What Prometheus expects.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers whether the process is ready.
#[derive(Clone)]
pub struct Probes {
    ready: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Probes {
    /// Probes that ask this.
    pub fn new(ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { ready: Arc::new(ready) }
    }

    /// Whether the process is ready.
    pub fn is_ready(&self) -> bool {
        (self.ready)()
    }
}

/// The health endpoints, to be served alone or with others.
pub fn health_routes(probes: Probes) -> Router {
    let alive = || async { "ok" };
    let ready = move || async move {
        if probes.is_ready() { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready") }
    };
    Router::new().route("/healthz", get(alive)).route("/livez", get(alive)).route("/readyz", get(ready))
}

/// The metrics endpoint, to be served alone or with others.
pub fn metrics_routes(metrics: Arc<Metrics>) -> Router {
    let render = move || async move { ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.render()).into_response() };
    Router::new().route("/metrics", get(render))
}

/// Serves routes until it is told to stop.
pub async fn serve(listener: TcpListener, routes: Router, shutdown: CancellationToken) -> std::io::Result<()> {
    axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn get_text(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn probes_and_metrics_are_answered_until_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ready, shutdown) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let is_ready = ready.clone();
        let probes = Probes::new(move || is_ready.load(Ordering::Relaxed));
        let metrics = Arc::new(Metrics::new());
        metrics.panicked("Gadget");
        let routes = health_routes(probes).merge(metrics_routes(metrics));
        let server = tokio::spawn(serve(listener, routes, shutdown.clone()));

        assert!(get_text(address, "/livez").await.starts_with("HTTP/1.1 200"));
        assert!(get_text(address, "/readyz").await.starts_with("HTTP/1.1 503"));
        ready.store(true, Ordering::Relaxed);
        assert!(get_text(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        let metrics = get_text(address, "/metrics").await;
        assert!(metrics.contains("# TYPE portolan_reconcile_panics counter"), "{metrics}");

        shutdown.cancel();
        server.await.unwrap().unwrap();
    }
}
