//! `/metrics`, and `/healthz`, `/livez`, `/readyz` for probes.

use std::sync::Arc;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::{MethodRouter, get};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::observe::health::{Health, Probes};
use crate::observe::metrics::Metrics;

/// What Prometheus expects.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The health endpoints, to be served alone or with others. `?verbose` lists all checks; a failure lists them anyway.
pub fn health_routes(probes: Probes) -> Router {
    let (alive, ready) = (probes.clone(), probes);
    let live = probe(move || alive.live());
    Router::new().route("/healthz", live.clone()).route("/livez", live).route("/readyz", probe(move || ready.ready()))
}

fn probe(look: impl Fn() -> Health + Clone + Send + Sync + 'static) -> MethodRouter {
    get(move |RawQuery(query): RawQuery| std::future::ready(answer(&look(), query.as_deref().unwrap_or_default())))
}

fn answer(health: &Health, query: &str) -> (StatusCode, String) {
    let verbose = query.split('&').any(|part| part.split('=').next() == Some("verbose"));
    match (health.is_well(), verbose) {
        (true, false) => (StatusCode::OK, "ok".to_owned()),
        (true, true) => (StatusCode::OK, health.lines()),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, health.lines()),
    }
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
    use crate::observe::health::Check;

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
        let probes = Probes::new(
            || vec![Check::passed("runtime")],
            move || {
                let failure =
                    (!is_ready.load(Ordering::Relaxed)).then(|| "the list of gadgets is not complete".to_owned());
                vec![Check::of("gadgets", failure)]
            },
        );
        let metrics = Arc::new(Metrics::new());
        metrics.panicked("Gadget");
        let routes = health_routes(probes).merge(metrics_routes(metrics));
        let server = tokio::spawn(serve(listener, routes, shutdown.clone()));

        assert!(get_text(address, "/livez").await.starts_with("HTTP/1.1 200"));
        let unready = get_text(address, "/readyz").await;
        assert!(unready.starts_with("HTTP/1.1 503"), "{unready}");
        assert!(unready.contains("[-]gadgets failed: the list of gadgets is not complete"), "{unready}");
        ready.store(true, Ordering::Relaxed);
        let ready = get_text(address, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 200") && ready.ends_with("ok"), "{ready}");
        assert!(get_text(address, "/readyz?verbose").await.ends_with("[+]gadgets ok\nreadyz check passed\n"));
        assert!(get_text(address, "/healthz?verbose").await.ends_with("[+]runtime ok\nlivez check passed\n"));
        let metrics = get_text(address, "/metrics").await;
        assert!(metrics.contains("# TYPE portolan_reconcile_panics counter"), "{metrics}");

        shutdown.cancel();
        server.await.unwrap().unwrap();
    }
}
