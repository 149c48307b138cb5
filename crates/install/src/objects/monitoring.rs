//! For those who watch the operator: a `ServiceMonitor` and alerts for Prometheus, a dashboard for Grafana.

use serde_json::{Value, json};

use super::Installation;
use crate::chart::{ALERTS, DASHBOARD};
use crate::values::Strings;

impl Installation<'_> {
    /// What was asked for of it.
    pub(super) fn monitoring(&self) -> Vec<Value> {
        let metrics = &self.values.metrics;
        let monitor = metrics.service_monitor.enabled.then(|| self.monitor());
        let dashboard = metrics.dashboard.enabled.then(|| self.dashboard());
        let alerts = metrics.alerts.enabled.then(|| self.alerts());
        monitor.into_iter().chain(alerts).chain(dashboard).collect()
    }

    fn monitor(&self) -> Value {
        let monitor = &self.values.metrics.service_monitor;
        let spec = json!({
            "selector": {"matchLabels": self.all_pods()},
            "endpoints": [{"port": "metrics", "interval": monitor.interval}],
        });
        let made = self.object("monitoring.coreos.com/v1", "ServiceMonitor", self.full_name(), json!({"spec": spec}));
        labelled(made, &monitor.labels)
    }

    fn alerts(&self) -> Value {
        let spec: Value = serde_json::from_str(ALERTS).expect("the generated alerts are JSON");
        let made = self.object("monitoring.coreos.com/v1", "PrometheusRule", self.full_name(), json!({"spec": spec}));
        labelled(made, &self.values.metrics.alerts.labels)
    }

    fn dashboard(&self) -> Value {
        let name = format!("{}-dashboard", self.full_name());
        let made = self.object("v1", "ConfigMap", &name, json!({"data": {"portolan.json": DASHBOARD}}));
        labelled(made, &self.values.metrics.dashboard.labels)
    }
}

fn labelled(mut object: Value, labels: &Strings) -> Value {
    for (name, value) in labels {
        object["metadata"]["labels"][name] = json!(value);
    }
    object
}
