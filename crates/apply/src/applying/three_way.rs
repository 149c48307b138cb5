//! What `kubectl apply` sends for a kind that it does not know by heart: what was applied last, the file and the live object
//! → a JSON merge patch. Pure.
//!
//! Fields that the file has and the live object has otherwise are set; fields that were applied last and that the file no
//! longer has are taken away; everything else stays. Lists are one value. So does
//! k8s.io/apimachinery/pkg/util/jsonmergepatch `CreateThreeWayJSONMergePatch`, which kubectl and Argo CD use.

use serde_json::{Map, Value};

/// The patch.
pub(crate) fn patch(last: &Value, file: &Value, live: &Value) -> Value {
    let mut patch = gone(last, file).unwrap_or_default();
    for (name, value) in changed(live, file).unwrap_or_default() {
        merge(patch.entry(name).or_insert(Value::Null), value);
    }
    Value::Object(patch)
}

/// Fields of `file` that `live` lacks or has otherwise.
fn changed(live: &Value, file: &Value) -> Option<Map<String, Value>> {
    let (live, file) = (live.as_object()?, file.as_object()?);
    let differing = file.iter().filter(|(_, value)| !value.is_null()).filter_map(|(name, value)| {
        let there = live.get(name);
        if there == Some(value) {
            return None;
        }
        match there.and_then(|there| changed(there, value)) {
            Some(below) if below.is_empty() => None,
            Some(below) => Some((name.clone(), Value::Object(below))),
            None => Some((name.clone(), value.clone())),
        }
    });
    Some(differing.collect())
}

/// Fields of `last` that `file` lacks, each as null.
fn gone(last: &Value, file: &Value) -> Option<Map<String, Value>> {
    let (last, file) = (last.as_object()?, file.as_object()?);
    let lacking = last.iter().filter_map(|(name, value)| match file.get(name) {
        None | Some(Value::Null) => Some((name.clone(), Value::Null)),
        Some(still) => {
            gone(value, still).filter(|below| !below.is_empty()).map(|below| (name.clone(), Value::Object(below)))
        }
    });
    Some(lacking.collect())
}

fn merge(into: &mut Value, value: Value) {
    match (into, value) {
        (Value::Object(into), Value::Object(value)) => {
            for (name, value) in value {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_applied_and_is_no_longer_in_the_file_goes_and_what_others_wrote_stays() {
        let last = json!({"metadata": {"annotations": {"a": "1", "b": "1"}}, "spec": {"x": 1, "list": [1]}});
        let file = json!({"metadata": {"annotations": {"a": "2"}}, "spec": {"x": 1, "list": [1, 2]}});
        let live = json!({"metadata": {"annotations": {"a": "1", "b": "9", "theirs": "1"}}, "spec": {"x": 1, "list": [1], "y": 2}});

        let patch = patch(&last, &file, &live);

        assert_eq!(patch, json!({"metadata": {"annotations": {"a": "2", "b": null}}, "spec": {"list": [1, 2]}}));
    }

    #[test]
    fn a_map_that_leaves_the_file_goes_as_a_whole() {
        let last = json!({"metadata": {"annotations": {"a": "1"}}, "spec": {}});

        assert_eq!(
            patch(&last, &json!({"metadata": {}, "spec": {}}), &last),
            json!({"metadata": {"annotations": null}})
        );
    }

    #[test]
    fn a_value_that_somebody_changed_is_put_back() {
        let (last, live) = (json!({"spec": {"x": 1}}), json!({"spec": {"x": 2}}));

        assert_eq!(patch(&last, &last, &live), json!({"spec": {"x": 1}}));
    }

    #[test]
    fn what_was_a_map_and_is_none_is_replaced() {
        let file = json!({"a": 1});

        assert_eq!(patch(&json!({"a": {"b": 1}}), &file, &json!({"a": {"b": 1}})), json!({"a": 1}));
    }
}
