//! Durations → figures: rates, medians, 99th percentiles.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::memory;

/// The figures of one server, by name.
pub(super) struct Figures {
    server: String,
    values: Map<String, Value>,
}

impl Figures {
    /// No figures yet.
    pub(super) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), values: Map::new() }
    }

    /// Whose figures they are.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// All of them.
    pub(super) fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Records many operations that took `elapsed` together.
    pub(super) fn rate(&mut self, name: &str, elapsed: Duration, mut latencies: Vec<Duration>) {
        latencies.sort_unstable();
        let figure = json!({
            "count": latencies.len(),
            "per_second": rounded(per_second(latencies.len(), elapsed)),
            "p50_ms": milliseconds(quantile(&latencies, 50)),
            "p99_ms": milliseconds(quantile(&latencies, 99)),
        });
        self.add(name, figure);
    }

    /// Records a few long operations, whose duration matters and not their rate.
    pub(super) fn durations(&mut self, name: &str, mut latencies: Vec<Duration>, bytes: usize) {
        latencies.sort_unstable();
        let figure = json!({
            "count": latencies.len(),
            "bytes": bytes,
            "min_ms": milliseconds(quantile(&latencies, 0)),
            "p50_ms": milliseconds(quantile(&latencies, 50)),
        });
        self.add(name, figure);
    }

    /// Records how much resident memory the server has now.
    pub(super) fn memory(&mut self, name: &str, pids: &[u32]) {
        let value = memory::resident_mib(pids).map(rounded);
        self.add(name, json!(value));
    }

    /// Records how long one thing took.
    pub(super) fn duration(&mut self, name: &str, took: Duration) {
        self.add(name, json!(milliseconds(took)));
    }

    fn add(&mut self, name: &str, figure: Value) {
        eprintln!("{}: {name} {figure}", self.server);
        self.values.insert(name.to_owned(), figure);
    }
}

/// Operations a second.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
pub(super) fn per_second(count: usize, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64().max(1e-9)
}

/// The value below which `percent` of the sorted durations lie.
pub(super) fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

/// Milliseconds, rounded.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1000.0)
}

/// Three significant places are more than a benchmark can promise.
pub(super) fn rounded(value: f64) -> f64 {
    let places = if value.abs() >= 100.0 { 1.0 } else { 1000.0 };
    (value * places).round() / places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_taken_from_the_sorted_values() {
        let values: Vec<Duration> = (1..=101).map(Duration::from_millis).collect();

        assert_eq!(quantile(&values, 0), Duration::from_millis(1));
        assert_eq!(quantile(&values, 50), Duration::from_millis(51));
        assert_eq!(quantile(&values, 99), Duration::from_millis(100));
        assert_eq!(quantile(&[], 99), Duration::ZERO);
    }
}
