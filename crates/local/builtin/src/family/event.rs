//! `Event` of the core group and of `events.k8s.io`: one object in two shapes.

use serde_json::Value;

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
    let moved: Vec<(&str, Value)> = names
        .filter_map(|(from, to)| Some((to, fields.remove(from)?)))
        .collect();
    fields.extend(moved.into_iter().map(|(name, value)| (name.to_owned(), value)));
    // The core shape writes an empty reporter, the newer one leaves it out.
    for name in ["reportingController", "reportingInstance"] {
        if api_version != "v1" && fields.get(name).is_some_and(|value| value == "") {
            fields.remove(name);
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
