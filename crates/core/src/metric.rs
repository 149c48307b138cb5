//! A metric as data: what it is called, what it says, how it is read. The same tables register metrics, document them,
//! and make the dashboard and the alerts.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// A metric as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without the `_total` of counters.
    pub name: &'static str,
    /// How it is counted.
    pub shape: MetricKind,
    /// Its labels, all of them bounded.
    pub labels: &'static [&'static str],
    /// What it says, in a sentence without its full stop.
    pub help: &'static str,
    /// How it is shown.
    pub panel: Option<Panel>,
    /// When somebody should be told.
    pub alert: Option<Alert>,
}

/// Metrics that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricGroup {
    /// What they are about, as a heading.
    pub title: &'static str,
    /// Who has them, in a sentence.
    pub about: &'static str,
    /// The metrics.
    pub metrics: &'static [Metric],
}

/// How a metric is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It is what it is now.
    Gauge,
    /// Values by size.
    Histogram,
}

/// A query worth looking at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// What is shown.
    pub title: &'static str,
    /// The unit, as Grafana names it.
    pub unit: &'static str,
    /// `PromQL`.
    pub query: &'static str,
}

/// A condition that somebody should be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// How long the condition holds before it is told, as Prometheus writes it.
    pub lasts: &'static str,
    /// `PromQL` that has a result while something is wrong.
    pub when: &'static str,
    /// What is wrong and what to do.
    pub says: &'static str,
}

impl Metric {
    /// A metric that only grows.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, shape: MetricKind::Counter, labels, help, panel: None, alert: None }
    }

    /// A metric that is what it is now.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { shape: MetricKind::Gauge, ..Self::counter(name, labels, help) }
    }

    /// Values by size.
    pub const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { shape: MetricKind::Histogram, ..Self::counter(name, labels, help) }
    }

    /// The same with a query worth looking at.
    #[must_use]
    pub const fn panel(self, title: &'static str, unit: &'static str, query: &'static str) -> Self {
        Self { panel: Some(Panel { title, unit, query }), ..self }
    }

    /// The same with a condition that somebody should be told of.
    #[must_use]
    pub const fn alert(self, alert: Alert) -> Self {
        Self { alert: Some(alert), ..self }
    }

    /// The name that queries use.
    pub fn exposed(&self) -> String {
        match self.shape {
            MetricKind::Counter => format!("{}_total", self.name),
            MetricKind::Gauge | MetricKind::Histogram => self.name.to_owned(),
        }
    }

    /// Shows what is counted under this metric's name.
    pub fn register(&self, registry: &mut Registry, counted: impl prometheus_client::registry::Metric) {
        registry.register(self.name, self.help, Described(counted));
    }
}

impl MetricKind {
    /// The word that Prometheus has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Described also where nothing was counted yet, so that everything that may be counted is known from the start.
#[derive(Debug)]
struct Described<M>(M);

impl<M: EncodeMetric> EncodeMetric for Described<M> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.0.metric_type()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;

    use super::*;

    #[test]
    fn a_metric_is_described_before_anything_is_counted() {
        let metric = Metric::counter("ships", &["port"], "Ships that came");
        let (mut registry, ships) = (Registry::default(), Family::<Vec<(String, String)>, Counter>::default());
        metric.register(&mut registry, ships.clone());
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };

        assert_eq!(text(), "# HELP ships Ships that came.\n# TYPE ships counter\n# EOF\n");
        ships.get_or_create(&vec![("port".to_owned(), "Genoa".to_owned())]).inc();
        assert!(text().contains(&format!("{}{{port=\"Genoa\"}} 1", metric.exposed())), "{}", text());
    }
}
