//! Tables of metrics → their reference page, the alerts for Prometheus, and what a dashboard shows.

use std::fmt::Write as _;

use portolan_core::Metric;
use portolan_core::job::JobSheet;
use portolan_core::metric::{Alert, MetricGroup};
use serde_json::{Value, json};

/// What every process measures.
const SHARED: [MetricGroup; 2] = [
    MetricGroup { title: "Controllers", about: "Of every job, in every role.", metrics: portolan_engine::METRICS },
    MetricGroup {
        title: "Cloudflare's API",
        about: "Of every process that talks to Cloudflare.",
        metrics: portolan_cloudflare_api::METRICS,
    },
];

/// Everything that is measured.
pub(crate) fn groups(jobs: &[&JobSheet]) -> Vec<MetricGroup> {
    SHARED.into_iter().chain(jobs.iter().flat_map(|job| job.metrics).copied()).collect()
}

fn metrics(jobs: &[&JobSheet]) -> impl Iterator<Item = &'static Metric> + use<> {
    groups(jobs).into_iter().flat_map(|group| group.metrics)
}

/// The reference page.
pub(crate) fn page(jobs: &[&JobSheet]) -> String {
    let mut page = String::from(PREFACE);
    for group in groups(jobs) {
        add(&mut page, &format!("\n## {}\n\n{}\n", group.title, group.about));
        add(&mut page, "| metric | type | labels | meaning |\n|---|---|---|---|");
        for metric in group.metrics {
            add(&mut page, &row(metric));
        }
    }
    add(&mut page, LABELS);
    add(&mut page, "\n## Alerts\n");
    add(&mut page, ALERTS);
    add(&mut page, "| alert | after | condition | what it means |\n|---|---|---|---|");
    for Alert { name, lasts, when, says } in metrics(jobs).filter_map(|metric| metric.alert) {
        add(&mut page, &format!("| {name} | {lasts} | `{}` | {} |", cell(when), cell(&plain(says))));
    }
    add(&mut page, "\n## Queries\n\nWhat the dashboard shows:\n");
    add(&mut page, "| shown | query |\n|---|---|");
    for panel in metrics(jobs).filter_map(|metric| metric.panel) {
        add(&mut page, &format!("| {} | `{}` |", panel.title, cell(panel.query)));
    }
    page.push_str(include_str!("health.md"));
    page
}

const PREFACE: &str = "# Metrics and health\n\n\
    Generated from the tables that register the metrics by `make reference`. `portolan run` serves them at `/metrics` on \
    port 8080\n(`--metrics`, `METRICS_ADDR`), and health on port 8081 (`--health`, `HEALTH_ADDR`).\n\n\
    Every metric is described from the first scrape on, also where nothing was counted yet.\n";

const LABELS: &str = "\nLabels have few values: kinds, results, reasons, path templates. No object is named, with one exception: \
    `tenant` (`namespace/name`)\nwhere a service token ends, because whoever is told must know whose; tenants are few, and \
    routes cannot make them. `controller` is the\njob by the name that `--controllers` has for it; Prometheus means something \
    else by `job`.";

const ALERTS: &str = "The chart brings them as rules for the Prometheus operator (`metrics.alerts.enabled`); they are in \
    `charts/portolan/alerts/portolan.json`.\n";

fn row(metric: &Metric) -> String {
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let (name, shape) = (metric.exposed(), metric.shape.as_str());
    format!("| `{name}` | {shape} | {} | {} |", labels.join(", "), cell(metric.help))
}

/// A text as it stands in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// What an alert says, with the names of its labels in the place of their values.
fn plain(says: &str) -> String {
    let mut text = says.replace("{{ $value }}", "N");
    while let Some((before, rest)) = text.clone().split_once("{{ $labels.") {
        let (label, after) = rest.split_once(" }}").expect("an expression ends");
        text = format!("{before}`{label}`{after}");
    }
    text
}

/// The rules of a `PrometheusRule`, which is what Prometheus itself reads, too.
pub(crate) fn rules(jobs: &[&JobSheet]) -> String {
    let rule = |Alert { name, lasts, when, says }: Alert| {
        json!({
            "alert": name, "expr": when, "for": lasts,
            "labels": { "severity": "warning" }, "annotations": { "description": says },
        })
    };
    let rules: Vec<Value> = metrics(jobs).filter_map(|metric| metric.alert).map(rule).collect();
    pretty(&json!({ "groups": [{ "name": "portolan", "rules": rules }] }))
}

pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("values are plain JSON") + "\n"
}

fn add(page: &mut String, text: &str) {
    writeln!(page, "{text}").expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use portolan_core::metric::MetricKind;

    use super::*;
    use crate::all;

    /// Names of series that a metric has.
    fn series(metric: &Metric) -> Vec<String> {
        match metric.shape {
            MetricKind::Counter | MetricKind::Gauge => vec![metric.exposed()],
            MetricKind::Histogram => ["bucket", "sum", "count"].map(|part| format!("{}_{part}", metric.name)).into(),
        }
    }

    fn named_in(query: &str) -> impl Iterator<Item = &str> {
        query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("portolan_"))
    }

    #[test]
    fn every_query_and_alert_asks_for_metrics_that_exist() {
        let known: BTreeSet<String> = metrics(&all()).flat_map(series).collect();
        let queries =
            metrics(&all()).flat_map(|metric| [metric.panel.map(|one| one.query), metric.alert.map(|one| one.when)]);

        for query in queries.flatten() {
            assert!(named_in(query).count() > 0, "{query} asks for nothing of ours");
            for name in named_in(query) {
                assert!(known.contains(name), "{query} asks for {name}");
            }
        }
    }

    #[test]
    fn names_and_labels_follow_the_conventions_of_prometheus() {
        let mut names = BTreeSet::new();
        for metric in metrics(&all()) {
            assert!(names.insert(metric.name), "{} is there twice", metric.name);
            assert!(metric.name.starts_with("portolan_") && !metric.name.ends_with("_total"), "{}", metric.name);
            assert!(!metric.help.ends_with('.'), "the full stop is added: {}", metric.help);
            for reserved in ["job", "instance", "namespace", "pod", "container", "service", "endpoint", "le"] {
                assert!(!metric.labels.contains(&reserved), "{} would hide a label of the target", metric.name);
            }
        }
    }

    #[test]
    fn an_alert_reads_as_a_sentence_on_the_page() {
        assert_eq!(plain("{{ $value }} of {{ $labels.kind }} wait"), "N of `kind` wait");
        assert!(page(&all()).contains("| `portolan_zerotrust_tasks` | gauge | `phase` |"));
    }
}
