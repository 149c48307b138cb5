//! `--otlp URL` → spans at an OpenTelemetry collector.

use portolan_engine::CancellationToken;
use portolan_engine::telemetry::{Exporter, SpanLayer, spans};
use std::sync::Arc;
use std::time::Duration;

/// A collector that takes longer loses the batch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Spans on their way to a collector.
pub(crate) struct Traces {
    exporter: Exporter,
    url: String,
}

/// A layer for the log, and what sends the spans it sees.
pub(crate) fn prepare(collector: &str) -> (SpanLayer, Traces) {
    let (layer, exporter) = spans(Arc::new(jiff::Timestamp::now), seed());
    (layer, Traces { exporter, url: traces_url(collector) })
}

/// Ids of spans must not repeat those of the last start.
fn seed() -> u64 {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    u64::from_le_bytes(bytes[..8].try_into().expect("sixteen bytes hold eight"))
}

/// Collectors take spans at `/v1/traces` of their address.
fn traces_url(collector: &str) -> String {
    let base = collector.trim_end_matches('/');
    if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") }
}

impl Traces {
    /// Sends batches until it is told to stop, the last one then.
    pub(crate) async fn send(self, shutdown: CancellationToken) {
        let Ok(client) = reqwest::Client::builder().timeout(TIMEOUT).build() else { return };
        let post = |batch: serde_json::Value| {
            let request = client.post(&self.url).json(&batch);
            async { request.send().await?.error_for_status().map(drop) }
        };
        self.exporter.run(shutdown, post).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collectors_address_is_enough() {
        assert_eq!(traces_url("http://collector:4318/"), "http://collector:4318/v1/traces");
        assert_eq!(traces_url("http://collector:4318/v1/traces"), "http://collector:4318/v1/traces");
    }
}
