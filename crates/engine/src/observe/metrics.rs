//! Measurements for Prometheus. Labels are kinds, results and reasons: never names of objects.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use portolan_core::Metric;
use portolan_core::metric::Alert;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::jobs::drift::Passed;
use crate::observe::collected::CollectedGauge;

/// What the engine measures.
pub const METRICS: &[Metric] = &[
    BUILD,
    LEADING,
    RESTARTS,
    PASSES,
    DURATIONS,
    WAITS,
    DEPTH,
    AGE,
    RUNNING,
    OBJECTS,
    SCANNED,
    WRITES,
    PANICS,
    WATCH_ERRORS,
    DRIFT_PASSES,
    DRIFT_FOUND,
    DRIFT_UNREADABLE,
    HELD,
];

const BUILD: Metric = Metric::gauge(
    "portolan_build_info",
    &["version", "role"],
    "1, with the version of this process and the role it has",
)
.panel("Processes by version and role", "short", "sum by (version, role) (portolan_build_info)");
const LEADING: Metric = Metric::gauge(
    "portolan_leader",
    &["controller"],
    "1 where this process runs the job, 0 where it stands by",
)
.panel("Who leads", "short", "sum by (controller, pod) (portolan_leader)")
.alert(Alert {
    name: "PortolanNoLeader",
    lasts: "5m",
    when: "sum by (controller, role) (portolan_leader * on (instance) group_left (role) portolan_build_info) < 1",
    says: "No process runs the job {{ $labels.controller }} as {{ $labels.role }}: look at the pods' logs and at the \
                   Lease in the operator's namespace",
});
const RESTARTS: Metric = Metric::counter(
    "portolan_job_restarts",
    &["controller"],
    "Times that a job was started again after one of its tasks broke",
)
.alert(Alert {
    name: "PortolanJobBroke",
    lasts: "0m",
    when: "increase(portolan_job_restarts_total[15m]) > 0",
    says: "The job {{ $labels.controller }} broke and was started again: its log has the panic, which is a bug to report",
});
const PASSES: Metric =
    Metric::counter("portolan_reconciles", &["kind", "result", "reason"], "Passes over objects by how they ended")
        .panel("Passes by result", "ops", "sum by (kind, result) (rate(portolan_reconciles_total[5m]))");
const DURATIONS: Metric = Metric::histogram("portolan_reconcile_duration_seconds", &["kind"], "How long passes took")
    .panel(
        "Duration of passes (95 %)",
        "s",
        "histogram_quantile(0.95, sum by (kind, le) (rate(portolan_reconcile_duration_seconds_bucket[5m])))",
    );
const WAITS: Metric =
    Metric::histogram("portolan_queue_wait_seconds", &["kind"], "How long objects waited beyond their time").panel(
        "Wait for a pass (95 %)",
        "s",
        "histogram_quantile(0.95, sum by (kind, le) (rate(portolan_queue_wait_seconds_bucket[5m])))",
    );
const DEPTH: Metric =
    Metric::gauge("portolan_queue_depth", &["kind"], "Objects in line, those among them that wait for a time to come")
        .panel("Objects in line", "short", "sum by (kind) (portolan_queue_depth)");
const AGE: Metric = Metric::gauge(
    "portolan_queue_age_seconds",
    &["kind"],
    "How long the first in line has waited though its time has come",
)
.panel("Age of the queue", "s", "max by (kind) (portolan_queue_age_seconds)")
.alert(Alert {
    name: "PortolanQueueStands",
    lasts: "10m",
    when: "max by (kind) (portolan_queue_age_seconds) > 300",
    says: "Objects of kind {{ $labels.kind }} wait for more than five minutes: what is written to or the API server is slow, or \
           the budget of requests is used up",
});
const RUNNING: Metric = Metric::gauge("portolan_reconciles_running", &["kind"], "Passes at work");
const OBJECTS: Metric = Metric::gauge(
    "portolan_objects",
    &["kind", "ready"],
    "Objects by what their Ready condition says",
)
.panel("Objects that are not Ready", "short", "sum by (kind) (portolan_objects{ready=\"False\"})")
.alert(Alert {
    name: "PortolanObjectsNotReady",
    lasts: "15m",
    when: "max by (kind) (portolan_objects{ready=\"False\"}) > 0",
    says: "{{ $value }} objects of kind {{ $labels.kind }} are not Ready: their conditions say why, and the page on \
                   troubleshooting what to do",
});
const SCANNED: Metric = Metric::counter(
    "portolan_objects_scanned",
    &["kind"],
    "Objects that were looked at one by one, because something else changed or to be counted",
);
const WRITES: Metric = Metric::counter("portolan_status_writes", &["kind"], "Statuses written");
const PANICS: Metric =
    Metric::counter("portolan_reconcile_panics", &["kind"], "Passes that ended in a panic").alert(Alert {
        name: "PortolanPassPanicked",
        lasts: "0m",
        when: "increase(portolan_reconcile_panics_total[15m]) > 0",
        says: "A pass over a {{ $labels.kind }} ended in a panic: the log names the object; please report it",
    });
const WATCH_ERRORS: Metric = Metric::counter(
    "portolan_watch_errors",
    &["resource"],
    "Lists and watches of the API server that failed",
)
.panel("Failing watches", "ops", "sum by (resource) (rate(portolan_watch_errors_total[5m]))")
.alert(Alert {
    name: "PortolanCannotWatch",
    lasts: "10m",
    when: "sum by (resource) (increase(portolan_watch_errors_total[5m])) > 3",
    says: "{{ $labels.resource }} cannot be listed or watched: the API server is away, a permission is missing, or the \
                   definition is not installed; `portolan doctor` says which",
});
const DRIFT_PASSES: Metric = Metric::counter(
    "portolan_drift_passes",
    &["controller"],
    "Times that what stands was compared with what is wanted, though nothing had changed",
);
const DRIFT_FOUND: Metric = Metric::counter(
    "portolan_drift_found",
    &["controller"],
    "Objects that did not stand as they were left, found by such a comparison",
)
.panel("Drift found", "short", "sum by (controller) (increase(portolan_drift_found_total[1h]))");
const DRIFT_UNREADABLE: Metric = Metric::counter(
    "portolan_drift_unreadable",
    &["controller"],
    "Remote collections and documents that such a comparison could not read",
);
const HELD: Metric =
    Metric::gauge("portolan_held_deletions", &["collection"], "Deletions that the budget holds until a user releases them")
        .panel("Held deletions", "short", "max by (collection) (portolan_held_deletions)")
        .alert(Alert {
            name: "PortolanDeletionsHeld",
            lasts: "0m",
            when: "max by (collection) (portolan_held_deletions) > 0",
            says: "{{ $value }} deletions in {{ $labels.collection }} wait for somebody's word: look at the list in the ConfigMap \
                   portolan-held-… and release it, or put the objects back",
        });

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
    role: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    kind: &'static str,
    result: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Readiness {
    kind: &'static str,
    ready: &'static str,
}

/// A job, by the name that `--controllers` has for it: Prometheus means something else by `job`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabel {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Watched {
    resource: String,
}

type Durations = Family<KindLabel, Histogram, fn() -> Histogram>;

/// The registry, and what the engine measures.
pub struct Metrics {
    registry: Mutex<Registry>,
    build: Family<Build, Gauge>,
    leading: Family<JobLabel, Gauge>,
    restarts: Family<JobLabel, Counter>,
    passes: Family<PassLabels, Counter>,
    durations: Durations,
    waits: Durations,
    depth: Family<KindLabel, Gauge>,
    age: Family<KindLabel, Gauge<f64, AtomicU64>>,
    running: Family<KindLabel, Gauge>,
    objects: Family<Readiness, Gauge>,
    scanned: Family<KindLabel, Counter>,
    writes: Family<KindLabel, Counter>,
    panics: Family<KindLabel, Counter>,
    watch_errors: Family<Watched, Counter>,
    drift_passes: Family<JobLabel, Counter>,
    drift_found: Family<JobLabel, Counter>,
    drift_unreadable: Family<JobLabel, Counter>,
    held: CollectedGauge,
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
            registry: Mutex::default(),
            build: Family::default(),
            leading: Family::default(),
            restarts: Family::default(),
            passes: Family::default(),
            durations: Family::new_with_constructor(seconds),
            waits: Family::new_with_constructor(seconds),
            depth: Family::default(),
            age: Family::default(),
            running: Family::default(),
            objects: Family::default(),
            scanned: Family::default(),
            writes: Family::default(),
            panics: Family::default(),
            watch_errors: Family::default(),
            drift_passes: Family::default(),
            drift_found: Family::default(),
            drift_unreadable: Family::default(),
            held: CollectedGauge::new(&HELD),
        };
        metrics.register(|registry| metrics.show(registry));
        metrics
    }

    fn show(&self, registry: &mut Registry) {
        BUILD.register(registry, self.build.clone());
        LEADING.register(registry, self.leading.clone());
        RESTARTS.register(registry, self.restarts.clone());
        PASSES.register(registry, self.passes.clone());
        DURATIONS.register(registry, self.durations.clone());
        WAITS.register(registry, self.waits.clone());
        DEPTH.register(registry, self.depth.clone());
        AGE.register(registry, self.age.clone());
        RUNNING.register(registry, self.running.clone());
        OBJECTS.register(registry, self.objects.clone());
        SCANNED.register(registry, self.scanned.clone());
        WRITES.register(registry, self.writes.clone());
        PANICS.register(registry, self.panics.clone());
        WATCH_ERRORS.register(registry, self.watch_errors.clone());
        DRIFT_PASSES.register(registry, self.drift_passes.clone());
        DRIFT_FOUND.register(registry, self.drift_found.clone());
        DRIFT_UNREADABLE.register(registry, self.drift_unreadable.clone());
        registry.register_collector(Box::new(self.held.clone()));
    }

    /// Adds metrics of others.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().expect("nothing panics while metrics are registered"));
    }

    /// Adds a gauge that is counted when somebody asks.
    pub fn counted(&self, metric: &'static Metric) -> CollectedGauge {
        let counted = CollectedGauge::new(metric);
        self.register(|registry| registry.register_collector(Box::new(counted.clone())));
        counted
    }

    /// Says which program this is, and what part of it this process is.
    pub fn built(&self, version: &'static str, role: &'static str) {
        self.build.get_or_create(&Build { version, role }).set(1);
    }

    /// A job looked for drift.
    pub fn passed_for_drift(&self, controller: &str, passed: Passed) {
        let job = JobLabel { controller: controller.to_owned() };
        self.drift_passes.get_or_create(&job).inc();
        self.drift_found.get_or_create(&job).inc_by(passed.drifted as u64);
        self.drift_unreadable.get_or_create(&job).inc_by(passed.failed as u64);
    }

    /// The text that Prometheus reads.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().expect("nothing panics while metrics are registered");
        encode(&mut text, &registry).expect("text is written to memory");
        text
    }

    pub(crate) fn passed(&self, kind: &'static str, result: &'static str, reason: &'static str, took: Duration) {
        self.passes.get_or_create(&PassLabels { kind, result, reason }).inc();
        self.durations.get_or_create(&KindLabel { kind }).observe(took.as_secs_f64());
    }

    pub(crate) fn waited(&self, kind: &'static str, wait: Duration) {
        self.waits.get_or_create(&KindLabel { kind }).observe(wait.as_secs_f64());
    }

    pub(crate) fn queued(&self, kind: &'static str, in_line: usize, running: usize, age: Duration) {
        self.depth.get_or_create(&KindLabel { kind }).set(count(in_line));
        self.running.get_or_create(&KindLabel { kind }).set(count(running));
        self.age.get_or_create(&KindLabel { kind }).set(age.as_secs_f64());
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

    /// Counts the objects of a kind that are looked at one by one.
    pub fn scans(&self, kind: &'static str) -> Counter {
        self.scanned.get_or_create_owned(&KindLabel { kind })
    }

    pub(crate) fn wrote_status(&self, kind: &'static str) {
        self.writes.get_or_create(&KindLabel { kind }).inc();
    }

    pub(crate) fn panicked(&self, kind: &'static str) {
        self.panics.get_or_create(&KindLabel { kind }).inc();
    }

    pub(crate) fn watch_failed(&self, resource: &str) {
        self.watch_errors.get_or_create(&Watched { resource: resource.to_owned() }).inc();
    }

    pub(crate) fn leads(&self, job: &str, leads: bool) {
        self.leading.get_or_create(&JobLabel { controller: job.to_owned() }).set(leads.into());
    }

    pub(crate) fn broke(&self, job: &str) {
        self.restarts.get_or_create(&JobLabel { controller: job.to_owned() }).inc();
    }

    /// Where held deletions are counted.
    pub(crate) fn held(&self) -> &CollectedGauge {
        &self.held
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
    fn what_the_engine_measures_is_told_by_the_names_of_its_table() {
        let metrics = Metrics::new();
        metrics.built("1.2.3", "all");
        metrics.leads("harbour", true);
        metrics.broke("harbour");
        metrics.passed_for_drift("harbour", Passed { scopes: 3, failed: 1, drifted: 2 });
        metrics.passed_for_drift("harbour", Passed::default());

        let text = metrics.render();

        for line in [
            r#"portolan_build_info{version="1.2.3",role="all"} 1"#,
            r#"portolan_leader{controller="harbour"} 1"#,
            r#"portolan_job_restarts_total{controller="harbour"} 1"#,
            r#"portolan_drift_passes_total{controller="harbour"} 2"#,
            r#"portolan_drift_found_total{controller="harbour"} 2"#,
            r#"portolan_drift_unreadable_total{controller="harbour"} 1"#,
        ] {
            assert!(text.contains(line), "no {line} in\n{text}");
        }
        for metric in METRICS {
            let described = format!("# TYPE {} {}\n", metric.name, metric.shape.as_str());
            assert!(text.contains(&described), "no {described} in\n{text}");
        }
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
