//! Field selectors: which fields of a kind can be selected by, and an object's value there.

use serde_json::Value;

use crate::Kind;
use crate::value::{text, text_at};

const NAMED: &[&str] = &["metadata.name", "metadata.namespace"];
const POD: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
const CORE_EVENT: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
    "metadata.namespace",
    "metadata.name",
];
const EVENT: &[&str] = &[
    "reason",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reportingController",
    "type",
    "metadata.namespace",
    "metadata.name",
];

/// The fields that a selector may name; any other is an error: `field label not supported: …`.
pub fn selectable(kind: &Kind) -> &'static [&'static str] {
    match (kind.group, kind.kind) {
        ("", "Pod") => POD,
        ("", "Node") => &["metadata.name", "spec.unschedulable"],
        ("", "Event") => CORE_EVENT,
        ("events.k8s.io", "Event") => EVENT,
        ("", "Namespace") => &["status.phase", "metadata.name"],
        ("", "Secret") => &["type", "metadata.namespace", "metadata.name"],
        ("", "Service") => &["metadata.namespace", "metadata.name", "spec.clusterIP", "spec.type"],
        ("batch", "Job") => &["metadata.name", "metadata.namespace", "status.successful"],
        _ => NAMED,
    }
}

/// The old name of a field that is still understood: `spec.host` of pods.
pub fn alias<'a>(kind: &Kind, field: &'a str) -> &'a str {
    if kind.kind == "Pod" && field == "spec.host" { "spec.nodeName" } else { field }
}

/// An object's value of a selectable field, as selectors compare it.
pub fn field_value(kind: &Kind, object: &Value, field: &str) -> String {
    match (kind.kind, field) {
        ("Pod", "status.podIP") => text_at(object, "/status/podIPs/0/ip").to_owned(),
        ("Pod", "spec.hostNetwork") | ("Node", "spec.unschedulable") => {
            plain(object, field).unwrap_or_else(|| "false".to_owned())
        }
        ("Job", "status.successful") => plain(object, "status.succeeded").unwrap_or_else(|| "0".to_owned()),
        ("Event", "source") => match text_at(object, "/source/component") {
            "" => text(object, "reportingComponent").to_owned(),
            component => component.to_owned(),
        },
        _ => plain(object, field).unwrap_or_default(),
    }
}

fn plain(object: &Value, field: &str) -> Option<String> {
    match object.pointer(&format!("/{}", field.replace('.', "/")))? {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::find;

    #[test]
    fn every_selectable_field_has_a_value_even_where_absent() {
        let pod = find("", "v1", "Pod").unwrap();

        assert_eq!(field_value(pod, &json!({}), "spec.hostNetwork"), "false");
        assert_eq!(field_value(pod, &json!({}), "spec.nodeName"), "");
        assert_eq!(field_value(pod, &json!({"status": {"podIPs": [{"ip": "10.0.0.1"}]}}), "status.podIP"), "10.0.0.1");
    }

    #[test]
    fn a_job_is_selected_by_the_number_of_its_successes() {
        let job = find("batch", "v1", "Job").unwrap();

        assert_eq!(field_value(job, &json!({"status": {"succeeded": 2}}), "status.successful"), "2");
        assert_eq!(field_value(job, &json!({}), "status.successful"), "0");
    }

    #[test]
    fn the_source_of_an_event_falls_back_to_its_reporter() {
        let event = find("", "v1", "Event").unwrap();

        assert_eq!(field_value(event, &json!({"reportingComponent": "k"}), "source"), "k");
    }
}
