//! Tables of metrics → a dashboard for Grafana.

use portolan_core::job::JobSheet;
use portolan_core::metric::{MetricGroup, Panel};
use serde_json::{Value, json};

use crate::metrics::{groups, pretty};

/// Panels in a row of the dashboard, which is 24 units wide.
const COLUMNS: usize = 3;
const WIDTH: usize = 24 / COLUMNS;
const HEIGHT: usize = 8;

/// Restricts every metric to the namespaces that are chosen on the dashboard.
const CHOSEN: &str = "namespace=~\"$namespace\"";

/// The dashboard.
pub(crate) fn dashboard(jobs: &[&JobSheet]) -> String {
    let mut panels = Vec::new();
    let mut top = 0;
    for group in groups(jobs) {
        top = add_group(&mut panels, &group, top);
    }
    pretty(&json!({
        "title": "Portolan", "uid": "portolan", "tags": ["portolan"], "editable": true, "schemaVersion": 39,
        "timezone": "browser", "refresh": "30s", "time": { "from": "now-6h", "to": "now" },
        "templating": { "list": [datasource(), namespace()] },
        "panels": panels,
    }))
}

/// Adds a heading and its panels below what is there; answers where the next group begins.
fn add_group(panels: &mut Vec<Value>, group: &MetricGroup, top: usize) -> usize {
    let heading = json!({
        "id": panels.len() + 1, "type": "row", "title": group.title, "collapsed": false, "panels": [],
        "gridPos": { "x": 0, "y": top, "w": 24, "h": 1 },
    });
    panels.push(heading);
    let shown: Vec<Panel> = group.metrics.iter().filter_map(|metric| metric.panel).collect();
    for (place, one) in shown.iter().enumerate() {
        let (x, y) = (place % COLUMNS * WIDTH, top + 1 + place / COLUMNS * HEIGHT);
        panels.push(panel(one, panels.len() + 1, x, y));
    }
    top + 1 + shown.len().div_ceil(COLUMNS) * HEIGHT
}

fn panel(shown: &Panel, id: usize, x: usize, y: usize) -> Value {
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    json!({
        "id": id, "type": "timeseries", "title": shown.title, "datasource": source,
        "gridPos": { "x": x, "y": y, "w": WIDTH, "h": HEIGHT },
        "fieldConfig": { "defaults": { "unit": shown.unit, "min": 0 }, "overrides": [] },
        "options": { "legend": { "displayMode": "list", "placement": "bottom" }, "tooltip": { "mode": "multi" } },
        "targets": [{ "refId": "A", "datasource": source, "expr": within(shown.query), "legendFormat": "__auto" }],
    })
}

fn datasource() -> Value {
    json!({ "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus" })
}

fn namespace() -> Value {
    json!({
        "name": "namespace", "label": "Namespace", "type": "query", "includeAll": true, "multi": true, "allValue": ".*",
        "datasource": { "type": "prometheus", "uid": "${datasource}" }, "refresh": 2,
        "query": "label_values(portolan_build_info, namespace)", "current": { "text": "All", "value": "$__all" },
    })
}

/// The same query, of the chosen namespaces alone.
fn within(query: &str) -> String {
    let mut rest = query;
    let mut text = String::new();
    while let Some(start) = rest.find("portolan_") {
        let length = rest[start..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let end = length.map_or(rest.len(), |length| start + length);
        text.push_str(&rest[..end]);
        rest = &rest[end..];
        match rest.strip_prefix('{') {
            Some(further) => {
                text.extend(["{", CHOSEN, ","]);
                rest = further;
            }
            None => text.extend(["{", CHOSEN, "}"]),
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::all;

    #[test]
    fn every_metric_of_a_query_is_of_the_chosen_namespaces() {
        assert_eq!(
            within("sum(portolan_a_total{x=\"1\"}) / rate(portolan_b[5m])"),
            "sum(portolan_a_total{namespace=~\"$namespace\",x=\"1\"}) / rate(portolan_b{namespace=~\"$namespace\"}[5m])"
        );
        assert_eq!(within("max(portolan_c)"), "max(portolan_c{namespace=~\"$namespace\"})");
    }

    #[test]
    fn every_panel_of_the_tables_has_a_place_of_its_own() {
        let dashboard: Value = serde_json::from_str(&dashboard(&all())).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let places: BTreeSet<String> = panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
        let shown =
            groups(&all()).iter().flat_map(|group| group.metrics).filter(|metric| metric.panel.is_some()).count();

        assert_eq!((panels.len(), places.len()), (shown + groups(&all()).len(), shown + groups(&all()).len()));
        assert!(panels.iter().all(|panel| panel["gridPos"]["x"].as_u64().unwrap() <= 16));
    }
}
