//! Measurements for Prometheus. Labels are kinds, results and reasons: never names of objects.

use std::sync::Mutex;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    kind: &'static str,
    result: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Readiness {
    kind: &'static str,
    ready: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Job {
    job: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Watched {
    resource: String,
}

type Durations = Family<Kind, Histogram, fn() -> Histogram>;

/// The registry, and what the engine measures.
pub struct Metrics {
    registry: Mutex<Registry>,
    passes: Family<Ended, Counter>,
    durations: Durations,
    waits: Durations,
    depth: Family<Kind, Gauge>,
    age: Family<Kind, Gauge<f64, std::sync::atomic::AtomicU64>>,
    running: Family<Kind, Gauge>,
    objects: Family<Readiness, Gauge>,
    writes: Family<Kind, Counter>,
    panics: Family<Kind, Counter>,
    watch_errors: Family<Watched, Counter>,
    leading: Family<Job, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry with the engine's metrics in it.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("portolan")),
            passes: Family::default(),
            durations: Family::new_with_constructor(seconds),
            waits: Family::new_with_constructor(seconds),
            depth: Family::default(),
            age: Family::default(),
            running: Family::default(),
            objects: Family::default(),
            writes: Family::default(),
            panics: Family::default(),
            watch_errors: Family::default(),
            leading: Family::default(),
        };
        metrics.register(|registry| {
            registry.register("reconciles", "Passes over objects by how they ended", metrics.passes.clone());
            registry.register("reconcile_duration_seconds", "How long passes took", metrics.durations.clone());
            registry.register("queue_wait_seconds", "How long objects waited beyond their time", metrics.waits.clone());
            registry.register("queue_depth", "Objects in line, waiting ones among them", metrics.depth.clone());
            registry.register("queue_age_seconds", "How long the first in line has waited", metrics.age.clone());
            registry.register("reconciles_running", "Passes at work", metrics.running.clone());
            registry.register("objects", "Objects by what their Ready condition says", metrics.objects.clone());
            registry.register("status_writes", "Statuses written", metrics.writes.clone());
            registry.register("reconcile_panics", "Passes that ended in a panic", metrics.panics.clone());
            registry.register("watch_errors", "Watches and lists that failed", metrics.watch_errors.clone());
            registry.register("leader", "1 where this process leads the job", metrics.leading.clone());
        });
        metrics
    }

    /// Adds metrics of others.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().expect("nothing panics while metrics are registered"));
    }

    /// The text that Prometheus reads.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().expect("nothing panics while metrics are registered");
        encode(&mut text, &registry).expect("text is written to memory");
        text
    }

    pub(crate) fn passed(&self, kind: &'static str, result: &'static str, reason: &'static str, took: Duration) {
        self.passes.get_or_create(&Ended { kind, result, reason }).inc();
        self.durations.get_or_create(&Kind { kind }).observe(took.as_secs_f64());
    }

    pub(crate) fn waited(&self, kind: &'static str, wait: Duration) {
        self.waits.get_or_create(&Kind { kind }).observe(wait.as_secs_f64());
    }

    pub(crate) fn queued(&self, kind: &'static str, in_line: usize, running: usize, age: Duration) {
        self.depth.get_or_create(&Kind { kind }).set(count(in_line));
        self.running.get_or_create(&Kind { kind }).set(count(running));
        self.age.get_or_create(&Kind { kind }).set(age.as_secs_f64());
    }

    /// An object is counted under what its `Ready` condition says now, and no longer under what it said.
    pub(crate) fn moved(&self, kind: &'static str, from: Option<&'static str>, to: Option<&'static str>) {
        if from == to {
            return;
        }
        let gauge = |ready| self.objects.get_or_create_owned(&Readiness { kind, ready });
        if let Some(from) = from {
            gauge(from).dec();
        }
        if let Some(to) = to {
            gauge(to).inc();
        }
    }

    pub(crate) fn wrote_status(&self, kind: &'static str) {
        self.writes.get_or_create(&Kind { kind }).inc();
    }

    pub(crate) fn panicked(&self, kind: &'static str) {
        self.panics.get_or_create(&Kind { kind }).inc();
    }

    pub(crate) fn watch_failed(&self, resource: &str) {
        self.watch_errors.get_or_create(&Watched { resource: resource.to_owned() }).inc();
    }

    pub(crate) fn leads(&self, job: &str, leads: bool) {
        self.leading.get_or_create(&Job { job: job.to_owned() }).set(leads.into());
    }
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 9))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What a `Ready` condition says, in a word.
pub(crate) fn word(ready: Option<bool>) -> &'static str {
    match ready {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_once_under_what_they_say_now() {
        let metrics = Metrics::new();
        metrics.moved("DNSRecord", None, Some(word(None)));
        metrics.moved("DNSRecord", Some(word(None)), Some(word(Some(true))));
        metrics.moved("DNSRecord", Some(word(Some(true))), Some(word(Some(true))));

        let text = metrics.render();

        assert!(text.contains(r#"portolan_objects{kind="DNSRecord",ready="True"} 1"#), "{text}");
        assert!(text.contains(r#"portolan_objects{kind="DNSRecord",ready="Unknown"} 0"#), "{text}");
    }

    #[test]
    fn passes_are_counted_by_result_and_reason() {
        let metrics = Metrics::new();
        metrics.passed("DNSRecord", "transient", "APIError", Duration::from_millis(3));

        let text = metrics.render();

        let line = r#"portolan_reconciles_total{kind="DNSRecord",result="transient",reason="APIError"} 1"#;
        assert!(text.contains(line), "{text}");
        assert!(text.contains(r#"portolan_reconcile_duration_seconds_count{kind="DNSRecord"} 1"#), "{text}");
    }
}
