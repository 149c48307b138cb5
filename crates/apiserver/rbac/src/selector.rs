//! Label selectors of aggregation rules.

use serde_json::Value;

use crate::text::texts;

/// Whether a `LabelSelector` selects labels; an empty one selects everything.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object();
    wanted.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|expression| holds(expression, labels))
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let found = expression["key"].as_str().and_then(|key| labels.get(key)).and_then(Value::as_str);
    let listed = |found: &str| texts(&expression["values"]).iter().any(|value| value == found);
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => found.is_some_and(listed),
        "NotIn" => !found.is_some_and(listed),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::selects;

    #[test]
    fn all_parts_of_a_selector_must_hold() {
        let labels = json!({"a": "1", "b": "2"});

        assert!(selects(&json!({}), &labels));
        assert!(selects(&json!({"matchLabels": {"a": "1"}}), &labels));
        assert!(!selects(&json!({"matchLabels": {"a": "1", "c": "3"}}), &labels));
        let one = |operator: &str, key: &str| json!({"matchExpressions": [{"key": key, "operator": operator, "values": ["1"]}]});
        assert!(selects(&one("In", "a"), &labels));
        assert!(!selects(&one("In", "c"), &labels));
        assert!(selects(&one("NotIn", "c"), &labels));
        assert!(selects(&one("Exists", "b"), &labels));
        assert!(!selects(&one("DoesNotExist", "b"), &labels));
    }
}
