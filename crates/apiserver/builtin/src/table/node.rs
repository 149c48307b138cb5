//! Rows of nodes and of events.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, or};
use crate::Kind;
use crate::family::event::to_core_v1;
use crate::value::{entries, flag_at, list_at, number, number_at, text, text_at};

/// Cells of a node.
pub(crate) fn cells(node: &Value, name: Value, age: Value) -> Vec<Value> {
    let ready = list_at(node, "/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    let mut status = match ready {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if flag_at(node, "/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let info = |field: &str| text(&node["status"]["nodeInfo"], field);
    let mut kernel = or(info("kernelVersion"), "<unknown>").to_owned();
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    vec![
        name,
        json!(status),
        json!(or(&roles(node), "<none>")),
        age,
        json!(info("kubeletVersion")),
        json!(address(node, "InternalIP")),
        json!(address(node, "ExternalIP")),
        json!(or(info("osImage"), "<unknown>")),
        json!(kernel),
        json!(or(info("containerRuntimeVersion"), "<unknown>")),
    ]
}

fn roles(node: &Value) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in entries(&node["metadata"]["labels"]) {
        let value = value.as_str().unwrap_or_default();
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => {
                roles.insert(role);
            }
            None if key == "kubernetes.io/role" && !value.is_empty() => {
                roles.insert(value);
            }
            _ => {}
        }
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let addresses = list_at(node, "/status/addresses");
    addresses.iter().find(|address| address["type"] == kind).map_or("<none>", |address| text(address, "address"))
}

/// Cells of an event in either shape.
pub(crate) fn event_cells(kind: &Kind, event: &Value, name: Value, now: Timestamp) -> Vec<Value> {
    let converted;
    let event = if kind.group.is_empty() {
        event
    } else {
        converted = to_core_v1(event.clone());
        &converted
    };
    let first = match &event["firstTimestamp"] {
        Value::Null => age(&event["eventTime"], now),
        time => age(time, now),
    };
    let series = &event["series"];
    let last = match (&event["lastTimestamp"], series) {
        (Value::Null, Value::Null) => first.clone(),
        (time, Value::Null) => age(time, now),
        (_, series) => age(&series["lastObservedTime"], now),
    };
    let count = match series {
        Value::Null => number(event, "count").filter(|count| *count != 0).unwrap_or(1),
        series => number_at(series, "/count").unwrap_or(0),
    };
    vec![
        json!(last),
        json!(text(event, "type")),
        json!(text(event, "reason")),
        json!(target(&event["involvedObject"])),
        json!(text_at(event, "/involvedObject/fieldPath")),
        json!(source(event)),
        json!(text(event, "message").trim()),
        json!(first),
        json!(count),
        name,
    ]
}

fn target(object: &Value) -> String {
    let kind = text(object, "kind").to_lowercase();
    match text(object, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let component = or(text_at(event, "/source/component"), text(event, "reportingComponent"));
    match or(text_at(event, "/source/host"), text(event, "reportingInstance")) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}
