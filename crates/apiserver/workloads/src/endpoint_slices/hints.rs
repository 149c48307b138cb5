//! `spec.trafficDistribution` → hints of endpoints: which zone or node they are meant for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::draft::{Draft, SliceChanges};
use crate::common::object::{annotation, list, text};

/// What traffic shall stay close to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Close {
    /// Nothing: no hints.
    Anywhere,
    Zone,
    Node,
}

/// Hints for all that is written; unchanged slices whose hints are wrong are written, too.
pub(super) fn add(service: &Value, there: &[Arc<Value>], changes: &mut SliceChanges) {
    let close = match text(service, "/spec/trafficDistribution") {
        _ if is_by_topology(service) => Close::Anywhere,
        "PreferClose" | "PreferSameZone" => Close::Zone,
        "PreferSameNode" => Close::Node,
        _ => Close::Anywhere,
    };
    let unchanged: Vec<&Arc<Value>> = there.iter().filter(|slice| !changes.touches(slice)).collect();
    let wrong = unchanged.into_iter().filter(|slice| list(slice, "/endpoints").iter().any(|one| is_wrong(one, close)));
    let wrong: Vec<Draft> = wrong.cloned().map(Draft::changing).collect();
    changes.update.extend(wrong);
    for draft in changes.create.iter_mut().chain(&mut changes.update) {
        for endpoint in &mut draft.endpoints {
            set(endpoint, close);
        }
    }
}

/// Whether the service asks for hints by the share of each zone, which go before those by distance.
fn is_by_topology(service: &Value) -> bool {
    let mode = annotation(service, "service.kubernetes.io/topology-aware-hints")
        .or_else(|| annotation(service, "service.kubernetes.io/topology-mode"));
    matches!(mode, Some("Auto" | "auto"))
}

/// What hints an endpoint shall have; none are decided for one that is not ready.
fn wanted(endpoint: &Value, close: Close) -> Value {
    let mut hints = json!({});
    if let (Some(zone), true) = (endpoint["zone"].as_str(), close != Close::Anywhere) {
        hints["forZones"] = json!([{"name": zone}]);
    }
    if let (Some(node), true) = (endpoint["nodeName"].as_str(), close == Close::Node) {
        hints["forNodes"] = json!([{"name": node}]);
    }
    if hints == json!({}) { Value::Null } else { hints }
}

fn is_decided(endpoint: &Value, close: Close) -> bool {
    close == Close::Anywhere || endpoint["conditions"]["ready"] == true
}

fn is_wrong(endpoint: &Value, close: Close) -> bool {
    is_decided(endpoint, close) && endpoint.get("hints").unwrap_or(&Value::Null) != &wanted(endpoint, close)
}

fn set(endpoint: &mut Value, close: Close) {
    if !is_decided(endpoint, close) {
        return;
    }
    let hints = wanted(endpoint, close);
    let Some(fields) = endpoint.as_object_mut() else { return };
    if hints.is_null() {
        fields.remove("hints");
    } else {
        fields.insert("hints".to_owned(), hints);
    }
}
