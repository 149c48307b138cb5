//! `Event` of the core group and of `events.k8s.io`: one object in two shapes.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::Kind;
use crate::check::{Errors, required};
use crate::meta::invalid;
use crate::names;
use crate::value::{is_empty, text, text_at};

/// Fields of the core shape and their names in `events.k8s.io`.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
];

/// A core event in the shape of `events.k8s.io/v1`.
pub fn to_events_v1(event: Value) -> Value {
    rename(event, "events.k8s.io/v1", RENAMED.iter().copied())
}

/// An `events.k8s.io/v1` event in the shape of the core group.
pub fn to_core_v1(event: Value) -> Value {
    rename(event, "v1", RENAMED.iter().map(|&(core, events)| (events, core)))
}

fn rename(event: Value, api_version: &str, names: impl Iterator<Item = (&'static str, &'static str)>) -> Value {
    let Value::Object(mut fields) = event else { return event };
    fields.insert("apiVersion".to_owned(), api_version.into());
    let moved: Vec<(&str, Value)> = names.filter_map(|(from, to)| Some((to, fields.remove(from)?))).collect();
    fields.extend(moved.into_iter().map(|(name, value)| (name.to_owned(), value)));
    // The core shape writes an empty reporter, the newer one leaves it out.
    for name in ["reportingController", "reportingInstance"] {
        if api_version != "v1" && fields.get(name).is_some_and(|value| value == "") {
            fields.remove(name);
        }
    }
    Value::Object(fields)
}

/// Namespaces of the event and its object; the newer group asks for more.
pub(crate) fn validate(kind: &Kind, event: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let newer = kind.group == "events.k8s.io";
    let object = if newer { "regarding" } else { "involvedObject" };
    let namespace = text_at(event, "/metadata/namespace");
    let its_namespace = text(&event[object], "namespace");
    if !its_namespace.is_empty() && its_namespace != namespace {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid(
            &root.field("involvedObject").field("namespace"),
            &json!(its_namespace),
            detail,
        ));
    }
    if newer && old.is_none() {
        validate_newer(event, &root, errors);
    }
}

fn validate_newer(event: &Value, root: &Path<'_>, errors: &mut Errors) {
    if is_empty(&event["eventTime"]) {
        errors.push(FieldError::required(&root.field("eventTime"), ""));
    } else {
        let reporter = text(event, "reportingController");
        let path = root.field("reportingController");
        if reporter.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else {
            invalid(errors, &path, reporter, names::qualified_name(reporter));
        }
        if required(errors, event, "reportingInstance", root) {
            at_most(event, "reportingInstance", "reportingInstance", 128, root, errors);
        }
        if required(errors, event, "action", root) {
            at_most(event, "action", "action", 128, root, errors);
        }
        if required(errors, event, "reason", root) {
            at_most(event, "reason", "reason", 128, root, errors);
        }
        at_most(event, "note", "message", 1024, root, errors);
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid(&root.field("type"), &json!(""), detail));
    }
}

fn at_most(event: &Value, field: &str, shown: &str, limit: usize, root: &Path<'_>, errors: &mut Errors) {
    if text(event, field).len() > limit {
        let detail = format!("can have at most {limit} characters");
        errors.push(FieldError::invalid(&root.field(shown), &json!(""), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_keeps_its_content_in_both_shapes() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "m", "count": 2,
            "involvedObject": {"kind": "Pod"}, "source": {"component": "k"}, "reportingComponent": "k"});

        let newer = to_events_v1(core.clone());

        assert_eq!(newer["note"], json!("m"));
        assert_eq!(newer["regarding"], json!({"kind": "Pod"}));
        assert_eq!(newer["deprecatedCount"], json!(2));
        assert_eq!(to_core_v1(newer), core);
    }
}
