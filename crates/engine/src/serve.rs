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
