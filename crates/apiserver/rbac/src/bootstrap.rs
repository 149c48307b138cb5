//! The roles and bindings that every cluster has: expected objects and those that exist → what to write.
//!
//! `data/bootstrap.json` is what the real server makes, without the roles of its own components. Rights that were
//! taken away come back; rights that were added stay; an object that says `autoupdate: "false"` is left alone.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::escalation::uncovered;
use crate::rule::Rule;

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What to do about one of them.
#[derive(Clone, Debug, PartialEq)]
pub enum BootstrapStep {
    /// It is as it should be, or not ours to change.
    Nothing,
    /// It is not there.
    Create,
    /// It is to become this.
    Update(Value),
    /// It binds another role: it is to be deleted and made anew.
    Recreate,
}

/// Every expected object, with its kind.
pub fn objects() -> &'static [Value] {
    static OBJECTS: LazyLock<Vec<Value>> =
        LazyLock::new(|| serde_json::from_str(include_str!("../data/bootstrap.json")).expect("committed data is JSON"));
    &OBJECTS
}

/// What makes an object as expected.
pub fn reconcile(existing: Option<&Value>, expected: &Value) -> BootstrapStep {
    let Some(existing) = existing else { return BootstrapStep::Create };
    if existing["metadata"]["annotations"][AUTOUPDATE] == "false" {
        return BootstrapStep::Nothing;
    }
    let mut new = existing.clone();
    for field in ["annotations", "labels"] {
        complete(&mut new, expected, field);
    }
    if expected["roleRef"].is_null() {
        complete_rules(&mut new, existing, expected);
        complete_aggregation(&mut new, expected);
    } else if existing["roleRef"] == expected["roleRef"] {
        complete_list(&mut new, expected, "/subjects");
    } else {
        return BootstrapStep::Recreate;
    }
    if new == *existing { BootstrapStep::Nothing } else { BootstrapStep::Update(new) }
}

/// Labels or annotations that are missing; those that are there keep their values.
fn complete(new: &mut Value, expected: &Value, field: &str) {
    let Some(wanted) = expected["metadata"][field].as_object() else { return };
    if !new["metadata"][field].is_object() {
        new["metadata"][field] = Value::Object(Map::new());
    }
    let Some(found) = new["metadata"][field].as_object_mut() else { return };
    for (key, value) in wanted {
        found.entry(key).or_insert_with(|| value.clone());
    }
}

fn complete_rules(new: &mut Value, existing: &Value, expected: &Value) {
    let missing = uncovered(&Rule::parse_all(existing), &Rule::parse_all(expected));
    if !missing.is_empty() {
        push_all(&mut new["rules"], missing.iter().map(Rule::to_json));
    }
}

fn complete_aggregation(new: &mut Value, expected: &Value) {
    if expected["aggregationRule"].is_null() {
        if let Some(fields) = new.as_object_mut() {
            fields.remove("aggregationRule");
        }
        return;
    }
    if new["aggregationRule"].is_null() {
        new["aggregationRule"] = json!({});
    }
    complete_list(new, expected, "/aggregationRule/clusterRoleSelectors");
}

/// Items of a list that are missing.
fn complete_list(new: &mut Value, expected: &Value, pointer: &str) {
    let list = |value: &Value| value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let found = list(new);
    let missing: Vec<Value> = list(expected).into_iter().filter(|item| !found.contains(item)).collect();
    if missing.is_empty() {
        return;
    }
    let (parent, field) = pointer.rsplit_once('/').expect("pointers begin with a slash");
    if let Some(parent) = new.pointer_mut(parent) {
        push_all(&mut parent[field], missing.into_iter());
    }
}

fn push_all(list: &mut Value, items: impl Iterator<Item = Value>) {
    match list {
        Value::Array(found) => found.extend(items),
        other => *other = items.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kind: &str, name: &str) -> Value {
        let found = objects().iter().find(|o| o["kind"] == kind && o["metadata"]["name"] == name);
        found.cloned().unwrap()
    }

    #[test]
    fn what_is_as_expected_is_left_alone() {
        for expected in objects() {
            assert_eq!(reconcile(Some(expected), expected), BootstrapStep::Nothing, "{}", expected["metadata"]["name"]);
            assert_eq!(reconcile(None, expected), BootstrapStep::Create);
        }
    }

    #[test]
    fn rights_come_back_and_additions_stay() {
        let expected = named("ClusterRole", "system:basic-user");
        let mut changed = expected.clone();
        changed["rules"] = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);

        let BootstrapStep::Update(new) = reconcile(Some(&changed), &expected) else { panic!("an update") };

        assert_eq!(new["rules"][0], changed["rules"][0]);
        assert!(uncovered(&Rule::parse_all(&new), &Rule::parse_all(&expected)).is_empty());
    }

    #[test]
    fn whoever_says_so_is_left_alone() {
        let expected = named("ClusterRole", "view");
        let mut own = expected.clone();
        own["metadata"]["annotations"][AUTOUPDATE] = json!("false");
        own["aggregationRule"] = json!({"clusterRoleSelectors": []});

        assert_eq!(reconcile(Some(&own), &expected), BootstrapStep::Nothing);
    }

    #[test]
    fn a_binding_of_another_role_is_made_anew() {
        let expected = named("ClusterRoleBinding", "cluster-admin");
        let mut other = expected.clone();
        other["roleRef"]["name"] = json!("view");
        let mut fewer = expected.clone();
        fewer["subjects"] = json!([]);

        assert_eq!(reconcile(Some(&other), &expected), BootstrapStep::Recreate);
        assert_eq!(reconcile(Some(&fewer), &expected), BootstrapStep::Update(expected.clone()));
    }
}
