//! JSON values as an API server stores them: nulls, empty lists and empty objects are as good as absent.

use serde_json::{Map, Value};

/// Whether two values are stored alike.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    a.and_then(stored) == b.and_then(stored)
}

/// What is left of a value when everything empty is taken out; none where nothing is.
pub(crate) fn stored(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) => {
            let left: Map<_, _> =
                fields.iter().filter_map(|(name, field)| Some((name.clone(), stored(field)?))).collect();
            (!left.is_empty()).then_some(Value::Object(left))
        }
        Value::Array(items) => {
            // Items count by their place, so that an empty one stays.
            let left: Vec<Value> = items.iter().map(|item| stored(item).unwrap_or(Value::Null)).collect();
            (!left.is_empty()).then_some(Value::Array(left))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

/// The value at the end of a way through objects, made where it is missing or is no object.
pub(crate) fn at<'a>(value: &'a mut Value, way: &[&str]) -> &'a mut Map<String, Value> {
    let mut here = value;
    for name in way {
        here = object(here).entry((*name).to_owned()).or_insert(Value::Null);
    }
    object(here)
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made an object")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_empty_is_as_good_as_absent_at_any_depth() {
        let full = json!({"a": 1, "b": {"c": [], "d": null}, "e": {}});

        assert!(same(Some(&full), Some(&json!({"a": 1}))));
        assert!(same(Some(&json!({"e": {}})), None));
        assert!(!same(Some(&json!({"a": 0})), None));
    }

    #[test]
    fn a_way_is_made_through_whatever_stands_in_it() {
        let mut value = json!({"a": 7});

        at(&mut value, &["a", "b"]).insert("c".to_owned(), json!(1));

        assert_eq!(value, json!({"a": {"b": {"c": 1}}}));
    }
}
