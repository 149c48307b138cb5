//! What the worker measures: where tasks stand, how attempts at them end, how long they take, and whose claims are taken
//! over.

use std::time::Duration;

use portolan_core::Metric;
use portolan_core::metric::Alert;
use portolan_engine::{CollectedFrom, CollectedGauge, Handle, LabelledCounts};
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{CloudflareTask, Phase};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::projection::TaskProjection;

const PHASES: [Phase; 4] = [Phase::Pending, Phase::InProgress, Phase::Completed, Phase::Failed];

/// What the worker measures.
pub const METRICS: &[Metric] = &[TASKS, ATTEMPTS, DURATIONS, TAKEN_OVER];

const TASKS: Metric = Metric::gauge(
    "portolan_zerotrust_tasks",
    &["phase"],
    "Tasks by where they stand; every worker sees all of them",
)
.panel("Tasks by phase", "short", "max by (phase) (portolan_zerotrust_tasks)")
.alert(Alert {
    name: "PortolanTasksFail",
    lasts: "30m",
    when: "max(portolan_zerotrust_tasks{phase=\"Failed\"}) > 0",
    says: "{{ $value }} tasks stand at Failed: `kubectl get cloudflaretasks -A` shows them, and their messages say why",
});
const ATTEMPTS: Metric = Metric::counter(
    "portolan_zerotrust_attempts",
    &["action", "result", "reason"],
    "Attempts at tasks by how they ended: `completed`, `failed` with the reason, `given_back` because the worker stops, or \
     `lost` to another worker or to a newer wish",
)
.panel(
    "Attempts at tasks by result",
    "ops",
    "sum by (action, result) (rate(portolan_zerotrust_attempts_total[5m]))",
);
const DURATIONS: Metric = Metric::histogram(
    "portolan_zerotrust_attempt_duration_seconds",
    &["action"],
    "How long attempts took, from the first look at Cloudflare to the written result",
)
.panel(
    "Duration of attempts (95 %)",
    "s",
    "histogram_quantile(0.95, sum by (action, le) (rate(portolan_zerotrust_attempt_duration_seconds_bucket[5m])))",
);
const TAKEN_OVER: Metric = Metric::counter(
    "portolan_zerotrust_claims_taken_over",
    &["from"],
    "Claims that were left behind and taken over: from `another` worker that died, or from an earlier life of `this` one",
)
.panel("Claims taken over", "short", "sum by (from) (increase(portolan_zerotrust_claims_taken_over_total[1h]))");

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    action: &'static str,
    result: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Did {
    action: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeftLabel {
    from: &'static str,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Completed,
    Failed(&'static str),
    GivenBack,
    Lost,
}

impl Came {
    fn labels(self) -> (&'static str, &'static str) {
        match self {
            Self::Completed => ("completed", ""),
            Self::Failed(reason) => ("failed", reason),
            Self::GivenBack => ("given_back", ""),
            Self::Lost => ("lost", ""),
        }
    }
}

/// What the worker measures; clones count together.
#[derive(Clone)]
pub(crate) struct Metrics {
    tasks: CollectedGauge,
    attempts: Family<Attempt, Counter>,
    durations: Family<Did, Histogram, fn() -> Histogram>,
    taken_over: Family<LeftLabel, Counter>,
}

impl Metrics {
    /// Part of the process's metrics.
    pub(crate) fn registered(all: &portolan_engine::Metrics) -> Self {
        let metrics = Self {
            tasks: all.counted(&TASKS),
            attempts: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.05, 2.0, 14))),
            taken_over: Family::default(),
        };
        all.register(|registry| {
            ATTEMPTS.register(registry, metrics.attempts.clone());
            DURATIONS.register(registry, metrics.durations.clone());
            TAKEN_OVER.register(registry, metrics.taken_over.clone());
        });
        metrics
    }

    /// From now on these tasks are counted.
    pub(crate) fn count(&self, tasks: Handle<TaskProjection>) -> CollectedFrom {
        self.tasks.source(move || by_phase(&tasks))
    }

    /// An attempt ended, with how long it took where it was begun at all.
    pub(crate) fn ended(&self, task: &CloudflareTask, came: Came, took: Option<Duration>) {
        let action = action(task);
        let (result, reason) = came.labels();
        self.attempts.get_or_create(&Attempt { action, result, reason }).inc();
        if let Some(took) = took {
            self.durations.get_or_create(&Did { action }).observe(took.as_secs_f64());
        }
    }

    /// A task was claimed that somebody had claimed before, as it was seen.
    pub(crate) fn claimed(&self, seen: &CloudflareTask, worker: &str) {
        if seen.phase() != Phase::InProgress {
            return;
        }
        let before = seen.status.as_ref().and_then(|status| status.worker_pod.as_deref());
        let from = if before == Some(worker) { "this" } else { "another" };
        self.taken_over.get_or_create(&LeftLabel { from }).inc();
    }
}

fn action(task: &CloudflareTask) -> &'static str {
    match task.spec.action() {
        TaskAction::Reconcile => "reconcile",
        TaskAction::Delete => "delete",
    }
}

/// How many tasks stand where; phases without a task are told too.
fn by_phase(tasks: &Handle<TaskProjection>) -> LabelledCounts {
    let label = |phase: Phase| vec![phase.as_str().to_owned()];
    let mut counts: LabelledCounts = PHASES.into_iter().map(|phase| (label(phase), 0)).collect();
    tasks.read(|store| {
        for (_, task) in store.projections() {
            *counts.entry(label(task.phase)).or_default() += 1;
        }
    });
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_is_told_also_where_there_is_no_task_and_none_when_nothing_runs() {
        let all = portolan_engine::Metrics::new();
        let counting = Metrics::registered(&all).count(Handle::new());

        let text = all.render();
        assert!(text.contains(r#"portolan_zerotrust_tasks{phase="InProgress"} 0"#), "{text}");
        assert!(text.contains(r#"portolan_zerotrust_tasks{phase="Failed"} 0"#), "{text}");
        drop(counting);

        assert!(!all.render().contains("phase="));
        for metric in METRICS {
            assert!(text.contains(&format!("# TYPE {} {}\n", metric.name, metric.shape.as_str())), "{text}");
        }
    }
}
