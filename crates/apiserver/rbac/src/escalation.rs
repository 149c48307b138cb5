//! Nobody hands on more than they have: roles and bindings that would are refused with what is missing.

use std::collections::{BTreeMap, BTreeSet};

use portolan_schema::go::quote;

use crate::attributes::{AccessTarget, Attributes, ResourceTarget};
use crate::binding::RoleReference;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::text::quoted_list;
use crate::user::User;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The rules of `wanted` that `owned` do not cover, one verb, group, resource and name each.
pub fn uncovered(owned: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let singles = wanted.iter().flat_map(Rule::broken_down);
    singles.filter(|single| !owned.iter().any(|rule| rule.covers(single))).collect()
}

/// Every right there is, which only few can hand on.
pub fn full_authority() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule { verbs: all(), groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), urls: all(), ..Rule::default() },
    ]
}

impl Policy {
    /// Refuses rules that a user does not have in a namespace.
    ///
    /// # Errors
    /// The sentence that names what is missing.
    pub fn confirm_no_escalation(&self, user: &User, namespace: &str, wanted: &[Rule]) -> Result<(), String> {
        let owned = self.rules_for(user, namespace);
        let missing = uncovered(&owned.rules, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let shown: BTreeSet<String> = compact(missing).iter().map(Rule::compact).collect();
        let shown: Vec<String> = shown.into_iter().collect();
        let mut message = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quote(&user.name),
            quoted_list(&user.groups),
            shown.join("\n")
        );
        if !owned.unresolved.is_empty() {
            message.push_str("; resolution errors: [");
            message.push_str(&owned.unresolved);
            message.push(']');
        }
        Err(message)
    }

    /// Whether a user may write any rules into roles (`resource` is `roles` or `clusterroles`).
    pub fn may_escalate(&self, user: &User, resource: &str, namespace: &str, name: &str) -> bool {
        self.may(user, "escalate", resource, namespace, name)
    }

    /// Whether a user may bind a role without having its rights.
    pub fn may_bind(&self, user: &User, role: &RoleReference, namespace: &str) -> bool {
        let resource = match role.kind.as_str() {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => return false,
        };
        self.may(user, "bind", resource, namespace, &role.name)
    }

    fn may(&self, user: &User, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let target = ResourceTarget {
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: resource.to_owned(),
            subresource: String::new(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.decide(&Attributes { user, verb: verb.to_owned(), target: AccessTarget::Resource(target) }).allowed
    }
}

/// Rules of one resource become one rule with all their verbs.
fn compact(rules: Vec<Rule>) -> Vec<Rule> {
    let mut simple: BTreeMap<(String, String, Option<String>), Rule> = BTreeMap::new();
    let mut compacted = Vec::new();
    for rule in rules {
        match simple_key(&rule) {
            None => compacted.push(rule),
            Some(key) => match simple.get_mut(&key) {
                Some(known) => known.verbs.extend(rule.verbs),
                None => {
                    simple.insert(key, rule);
                }
            },
        }
    }
    compacted.extend(simple.into_values());
    compacted
}

fn simple_key(rule: &Rule) -> Option<(String, String, Option<String>)> {
    match (rule.groups.as_slice(), rule.resources.as_slice(), rule.names.as_slice(), rule.urls.as_slice()) {
        ([group], [resource], names @ ([] | [_]), []) => {
            Some((group.clone(), resource.clone(), names.first().cloned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::tests::policy;

    fn rule(value: serde_json::Value) -> Rule {
        Rule::parse(&value)
    }

    fn reader() -> Policy {
        policy(
            json!({"reader": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/status"]}]}),
            json!({"b": ["ClusterRole/reader", [{"kind": "User", "name": "bob"}]]}),
        )
    }

    #[test]
    fn what_is_missing_is_named_by_resource() {
        let wanted = [rule(json!({"verbs": ["get", "delete", "create"], "apiGroups": [""], "resources": ["pods"]}))];

        let error = reader().confirm_no_escalation(&User::new("bob", ["a", "b"]), "", &wanted).unwrap_err();

        assert_eq!(
            error,
            "user \"bob\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"create\"]}"
        );
    }

    #[test]
    fn what_one_has_can_be_handed_on() {
        let wanted = [rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes/status"],
                                  "resourceNames": ["a"]}))];

        assert_eq!(reader().confirm_no_escalation(&User::new("bob", ["a"]), "", &wanted), Ok(()));
    }

    #[test]
    fn full_authority_is_covered_by_nothing_less() {
        let almost = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));

        assert_eq!(uncovered(&[almost], &full_authority()).len(), 1);
        assert_eq!(uncovered(&full_authority(), &full_authority()), []);
    }

    #[test]
    fn bind_and_escalate_are_verbs_on_roles() {
        let allowed = policy(
            json!({"binder": [{"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"],
                               "resourceNames": ["view"]}]}),
            json!({"b": ["ClusterRole/binder", [{"kind": "User", "name": "bob"}]]}),
        );
        let bob = User::new("bob", ["x"]);
        let role = |name: &str| RoleReference { group: GROUP.into(), kind: "ClusterRole".into(), name: name.into() };

        assert!(allowed.may_bind(&bob, &role("view"), "web"));
        assert!(!allowed.may_bind(&bob, &role("admin"), "web"));
        assert!(!allowed.may_escalate(&bob, "clusterroles", "", "view"));
    }
}
