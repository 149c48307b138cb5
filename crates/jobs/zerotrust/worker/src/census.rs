//! How many tasks stand where, counted when somebody asks: a metric.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_engine::{Handle, Metrics};
use portolan_zerotrust_model::Phase;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::projection::Projection;

const PHASES: [Phase; 4] = [Phase::Pending, Phase::InProgress, Phase::Completed, Phase::Failed];

/// Counts the tasks of whichever controller runs; clones count the same.
#[derive(Clone, Default)]
pub(crate) struct Census {
    tasks: Arc<Mutex<Option<Handle<Projection>>>>,
}

impl Census {
    /// A census that is part of the process's metrics.
    pub(crate) fn registered(metrics: &Metrics) -> Self {
        let census = Self::default();
        metrics.register(|registry| registry.register_collector(Box::new(census.clone())));
        census
    }

    /// From now on these are counted.
    pub(crate) fn count(&self, tasks: Handle<Projection>) {
        *self.tasks.lock().unwrap_or_else(PoisonError::into_inner) = Some(tasks);
    }

    fn counts(&self) -> BTreeMap<Phase, i64> {
        let mut counts: BTreeMap<Phase, i64> = PHASES.into_iter().map(|phase| (phase, 0)).collect();
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(tasks) = tasks {
            tasks.read(|store| {
                for (_, task) in store.projections() {
                    *counts.entry(task.phase).or_default() += 1;
                }
            });
        }
        counts
    }
}

impl fmt::Debug for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Census").field(&self.counts()).finish()
    }
}

impl Collector for Census {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut family =
            encoder.encode_descriptor("zerotrust_tasks", "Tasks by where they stand", None, MetricType::Gauge)?;
        for (phase, count) in self.counts() {
            ConstGauge::new(count).encode(family.encode_family(&[("phase", phase.as_str())])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_is_told_also_where_there_is_no_task() {
        let metrics = Metrics::new();
        Census::registered(&metrics).count(Handle::new());

        let text = metrics.render();

        assert!(text.contains(r#"portolan_zerotrust_tasks{phase="InProgress"} 0"#), "{text}");
        assert!(text.contains(r#"portolan_zerotrust_tasks{phase="Failed"} 0"#), "{text}");
    }
}
