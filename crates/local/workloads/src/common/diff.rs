//! Two values → the JSON merge patch between them.

use serde_json::{Map, Value};

/// What a merge patch must say to make `new` of `old`; `None` where they are equal. Neither has nulls that matter.
pub(crate) fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        let change = before.get(key).map_or_else(|| Some(value.clone()), |old| merge_patch(old, value));
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merge_patch;

    #[test]
    fn only_what_differs_is_in_the_patch() {
        let (old, new) =
            (json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}), json!({"b": {"c": 1, "d": 3}, "e": [1, 2]}));

        assert_eq!(merge_patch(&old, &new), Some(json!({"a": null, "b": {"d": 3}, "e": [1, 2]})));
        assert_eq!(merge_patch(&new, &new), None);
    }
}
