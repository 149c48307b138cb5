//! A gauge that is counted when somebody asks: sources → their sums by label. A source counts as long as it lives, so that
//! what no longer runs is no longer told.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use portolan_core::Metric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio_util::sync::CancellationToken;

use crate::jobs::task::Task;

/// Values by the values of the labels, in the order of the metric's table.
pub type LabelledCounts = BTreeMap<Vec<String>, i64>;

type Count = dyn Fn() -> LabelledCounts + Send + Sync;

/// A gauge that is counted when somebody asks. Clones are the same gauge.
#[derive(Clone)]
pub struct CollectedGauge {
    metric: &'static Metric,
    sources: Arc<Mutex<Vec<Weak<Count>>>>,
}

/// What is counted, while it lives.
#[must_use = "what is dropped is not counted"]
pub struct CollectedFrom {
    _count: Arc<Count>,
}

impl CollectedGauge {
    pub(crate) fn new(metric: &'static Metric) -> Self {
        Self { metric, sources: Arc::default() }
    }

    /// From now on this is counted too.
    pub fn source(&self, count: impl Fn() -> LabelledCounts + Send + Sync + 'static) -> CollectedFrom {
        let count: Arc<Count> = Arc::new(count);
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| source.strong_count() > 0);
        sources.push(Arc::downgrade(&count));
        CollectedFrom { _count: count }
    }

    fn counts(&self) -> LabelledCounts {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut sums = LabelledCounts::new();
        for count in sources.iter().filter_map(Weak::upgrade) {
            for (labels, value) in count() {
                *sums.entry(labels).or_default() += value;
            }
        }
        sums
    }
}

/// The task that keeps sources counted until it is told to stop, or dropped.
pub fn counting(sources: impl IntoIterator<Item = CollectedFrom>, shutdown: CancellationToken) -> Task {
    let sources: Vec<CollectedFrom> = sources.into_iter().collect();
    let run = async move {
        let _counted = sources;
        shutdown.cancelled().await;
    };
    Task::new("metrics", || 0, run)
}

impl fmt::Debug for CollectedGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.metric.name).field(&self.counts()).finish()
    }
}

impl Collector for CollectedGauge {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = format!("{}.", self.metric.help);
        let mut family = encoder.encode_descriptor(self.metric.name, &help, None, MetricType::Gauge)?;
        for (values, count) in self.counts() {
            let labels: Vec<(&str, String)> = self.metric.labels.iter().copied().zip(values).collect();
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::Metrics;

    static SHIPS: Metric = Metric::gauge("ships", &["port"], "Ships in port");

    #[test]
    fn sources_add_up_while_they_live_and_the_gauge_is_described_without_any() {
        let metrics = Metrics::new();
        let ships = metrics.counted(&SHIPS);
        let in_genoa = |count: i64| move || LabelledCounts::from([(vec!["Genoa".to_owned()], count)]);

        let first = ships.source(in_genoa(2));
        let second = ships.source(in_genoa(3));
        assert!(metrics.render().contains("ships{port=\"Genoa\"} 5"), "{}", metrics.render());
        drop(first);
        assert!(metrics.render().contains("ships{port=\"Genoa\"} 3"), "{}", metrics.render());
        drop(second);

        let text = metrics.render();
        assert!(text.contains("# HELP ships Ships in port.\n") && !text.contains("Genoa"), "{text}");
    }
}
