//! Two values → the JSON merge patch between them.

use serde_json::{Map, Value};

/// What a merge patch must say to make `new` of `old`; `None` where it has nothing to say. No object is as good as an
/// empty one. Neither has nulls that matter.
pub(crate) fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let nothing = Map::new();
    let (before, after) = match (old, new) {
        (Value::Object(before), Value::Object(after)) => (before, after),
        (Value::Null, Value::Object(after)) => (&nothing, after),
        _ => return Some(new.clone()),
    };
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in after {
        let change = before.get(key).map_or_else(|| Some(value.clone()), |old| merge_patch(old, value));
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The same for a map that is not kept empty: where all of it goes, so does the map.
pub(crate) fn map_patch(old: &Value, new: &Value) -> Option<Value> {
    match new {
        Value::Object(after) if after.is_empty() => {
            old.as_object().is_some_and(|before| !before.is_empty()).then_some(Value::Null)
        }
        _ => merge_patch(old, new),
    }
}

/// A list as a merge patch says it: an empty one is taken away.
pub(crate) fn or_null(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { Value::Array(list) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{map_patch, merge_patch};

    #[test]
    fn only_what_differs_is_in_the_patch() {
        let (old, new) =
            (json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}), json!({"b": {"c": 1, "d": 3}, "e": [1, 2]}));

        assert_eq!(merge_patch(&old, &new), Some(json!({"a": null, "b": {"d": 3}, "e": [1, 2]})));
        assert_eq!(merge_patch(&new, &new), None);
    }

    #[test]
    fn a_map_goes_with_its_last_part() {
        assert_eq!(map_patch(&json!({"a": "1", "c": "3"}), &json!({"a": "1"})), Some(json!({"c": null})));
        assert_eq!(map_patch(&json!({"a": "1"}), &json!({})), Some(Value::Null));
        assert_eq!(map_patch(&Value::Null, &json!({})), None);
        assert_eq!(map_patch(&json!({}), &json!({})), None);
    }

    #[test]
    fn nothing_becomes_something_but_not_an_empty_object() {
        assert_eq!(merge_patch(&Value::Null, &json!({"a": {}})), Some(json!({"a": {}})));
        assert_eq!(merge_patch(&Value::Null, &json!({})), None);
    }
}
