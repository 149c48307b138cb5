//! Labels of an object + a selector → whether it is selected.

use std::collections::BTreeMap;

use portolan_core::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which objects are meant, by their labels. All parts must hold; one without parts means every object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct LabelSelector {
    /// Labels that an object must have, with these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// What else must hold of its labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub match_expressions: Option<Vec<LabelExpression>>,
}

/// One condition on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct LabelExpression {
    /// The label's name.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[schemars(extend("enum" = ["In", "NotIn", "Exists", "DoesNotExist"]))]
    pub operator: String,
    /// Its values, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(max = 63)))]
    pub values: Option<Vec<String>>,
}

/// Objects that are taken by their labels: records of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordSource {
    /// Which records.
    pub selector: LabelSelector,
}

/// Servers that are taken by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSource {
    /// Which instances.
    pub selector: LabelSelector,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |(name, value): (&String, &String)| labels.get(name) == Some(value);
        self.match_labels.iter().flatten().all(has)
            && self.match_expressions.iter().flatten().all(|expression| expression.holds(labels))
    }

    /// A sentence where an operator is none: such an expression selects nothing, and nobody should have to guess why.
    pub fn complaint(&self) -> Option<String> {
        let known = |expression: &&LabelExpression| {
            !matches!(expression.operator.as_str(), "In" | "NotIn" | "Exists" | "DoesNotExist")
        };
        let unknown = self.match_expressions.iter().flatten().find(known)?;
        let LabelExpression { key, operator, .. } = unknown;
        Some(format!("operator {operator:?} on label {key} is none; write In, NotIn, Exists or DoesNotExist"))
    }
}

impl LabelExpression {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = || value.is_some_and(|value| self.values.iter().flatten().any(|one| one == value));
        match self.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selects(selector: Value, labels: &[(&str, &str)]) -> bool {
        let selector: LabelSelector = serde_json::from_value(selector).unwrap();
        selector.selects(&labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn expression(operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]})
    }

    #[test]
    fn everything_a_selector_says_must_hold() {
        let both = json!({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]});

        assert!(selects(both.clone(), &[("a", "1"), ("b", "")]));
        assert!(!selects(both.clone(), &[("a", "1")]) && !selects(both, &[("a", "2"), ("b", "")]));
        assert!(selects(json!({}), &[]), "one without parts means every object");
    }

    #[test]
    fn operators_mean_what_they_mean_everywhere() {
        let web = [("tier", "web")];

        assert!(selects(expression("In", &["web", "db"]), &web) && !selects(expression("In", &["db"]), &web));
        assert!(!selects(expression("NotIn", &["web"]), &web) && selects(expression("NotIn", &["web"]), &[]));
        assert!(!selects(expression("In", &["web"]), &[]));
        assert!(selects(expression("DoesNotExist", &[]), &[]) && !selects(expression("DoesNotExist", &[]), &web));
    }

    #[test]
    fn an_operator_that_is_none_selects_nothing_and_is_told() {
        assert!(!selects(expression("Near", &["web"]), &[("tier", "web")]));

        let selector: LabelSelector = serde_json::from_value(expression("Near", &[])).unwrap();
        assert!(selector.complaint().unwrap().contains("write In, NotIn"));
    }
}
