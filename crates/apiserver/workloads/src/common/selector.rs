//! A `LabelSelector` → whether labels match it.

use serde_json::{Map, Value};

use super::object::{labels, list};

/// A selector that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    /// Reads a selector; `None` for an unknown operator or none at all.
    pub(crate) fn parse(selector: &Value) -> Option<Self> {
        selector.as_object()?;
        let equal = selector["matchLabels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| Some(Requirement::In(key.clone(), vec![value.as_str()?.to_owned()])));
        let expressions = list(selector, "/matchExpressions").iter().map(requirement);
        Some(Self { requirements: equal.chain(expressions).collect::<Option<_>>()? })
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        let value = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => value(key).is_some_and(|found| values.iter().any(|v| v == found)),
            Requirement::NotIn(key, values) => value(key).is_none_or(|found| values.iter().all(|v| v != found)),
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Absent(key) => value(key).is_none(),
        })
    }
}

/// Whether the selector of an owner selects an object; one that cannot be read selects nothing.
pub(crate) fn selects(owner: &Value, object: &Value) -> bool {
    Selector::parse(&owner["spec"]["selector"]).is_some_and(|selector| selector.matches(labels(object)))
}

fn requirement(expression: &Value) -> Option<Requirement> {
    let key = expression["key"].as_str()?.to_owned();
    let values = list(expression, "/values").iter().filter_map(Value::as_str).map(str::to_owned);
    match expression["operator"].as_str()? {
        "In" => Some(Requirement::In(key, values.collect())),
        "NotIn" => Some(Requirement::NotIn(key, values.collect())),
        "Exists" => Some(Requirement::Exists(key)),
        "DoesNotExist" => Some(Requirement::Absent(key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Selector;

    fn matches(selector: serde_json::Value, labels: serde_json::Value) -> bool {
        Selector::parse(&selector).unwrap().matches(labels.as_object())
    }

    #[test]
    fn every_requirement_must_hold() {
        let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "NotIn", "values": ["x"]}, {"key": "c", "operator": "DoesNotExist"}]});

        assert!(matches(selector.clone(), json!({"a": "1"})));
        assert!(matches(selector.clone(), json!({"a": "1", "b": "y"})));
        assert!(!matches(selector.clone(), json!({"a": "1", "b": "x"})));
        assert!(!matches(selector, json!({"a": "1", "c": ""})));
    }

    #[test]
    fn an_unknown_operator_is_no_selector() {
        assert_eq!(Selector::parse(&json!({"matchExpressions": [{"key": "a", "operator": "Gt"}]})), None);
    }
}
