//! `ClusterRole`s whose rules are gathered from others by their labels.

use serde_json::{Value, json};

use crate::selector::selects;

/// The rules that an aggregated role should have, if they are not those that it has. `roles` are all of the cluster,
/// by name.
pub fn aggregated_rules<'a>(role: &Value, roles: impl Iterator<Item = &'a Value> + Clone) -> Option<Value> {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    if role["aggregationRule"].is_null() {
        return None;
    }
    let mut rules: Vec<&Value> = Vec::new();
    for selector in selectors.into_iter().flatten() {
        let selected = roles.clone().filter(|other| {
            other["metadata"]["name"] != role["metadata"]["name"] && selects(selector, &other["metadata"]["labels"])
        });
        for rule in selected.flat_map(|other| other["rules"].as_array().into_iter().flatten()) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    let old: Vec<&Value> = role["rules"].as_array().into_iter().flatten().collect();
    (old != rules).then(|| json!(rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, label: &str, verb: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {label: "true"}}, "rules": [{"verbs": [verb]}]})
    }

    fn sum(rules: Value) -> Value {
        json!({
            "metadata": {"name": "sum", "labels": {"x": "true"}}, "rules": rules,
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "true"}}, {"matchLabels": {"y": "true"}}]},
        })
    }

    #[test]
    fn rules_come_from_all_selected_roles_but_itself_once() {
        let roles =
            [part("a", "y", "get"), part("b", "x", "list"), part("c", "x", "get"), part("d", "z", "x"), sum(json!([]))];

        let rules = aggregated_rules(&sum(json!([])), roles.iter());

        assert_eq!(rules, Some(json!([{"verbs": ["list"]}, {"verbs": ["get"]}])));
    }

    #[test]
    fn a_role_that_is_as_it_should_be_is_left_alone() {
        let roles = [part("a", "x", "get")];

        assert_eq!(aggregated_rules(&sum(json!([{"verbs": ["get"]}])), roles.iter()), None);
        assert_eq!(aggregated_rules(&part("a", "x", "get"), roles.iter()), None);
        assert_eq!(aggregated_rules(&sum(json!([{"verbs": ["get"]}])), [].iter()), Some(json!([])));
    }
}
