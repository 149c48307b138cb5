//! The roles and bindings of a cluster: a request → whether it is allowed; a user → every rule that applies.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_schema::go::quote;

use crate::attributes::Attributes;
use crate::binding::{Binding, RoleReference};
use crate::decision::Decision;
use crate::rule::Rule;
use crate::text::aggregate;
use crate::user::User;

/// Roles and bindings. Clones share what did not change.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// By name.
    pub cluster_roles: BTreeMap<String, Arc<[Rule]>>,
    /// By namespace and name.
    pub roles: BTreeMap<(String, String), Arc<[Rule]>>,
    /// By name.
    pub cluster_bindings: BTreeMap<String, Arc<Binding>>,
    /// By namespace, then by name.
    pub bindings: BTreeMap<String, BTreeMap<String, Arc<Binding>>>,
}

/// The rules that apply to a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// In the order of the bindings.
    pub rules: Vec<Rule>,
    /// What could not be looked up; empty where everything could.
    pub unresolved: String,
}

impl Policy {
    /// Decides about a request of anyone.
    pub fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_privileged() {
            return Decision::privileged();
        }
        let mut unresolved = Vec::new();
        for binding in self.bindings_in(attributes.namespace()) {
            let Some(subject) = binding.subject_of(attributes.user) else { continue };
            match self.role(&binding.role, &binding.namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Decision::allowed_by(&binding.describe(subject));
                }
                Ok(_) => {}
                Err(error) => unresolved.push(error),
            }
        }
        if unresolved.is_empty() { Decision::denied("") } else { Decision::denied(&aggregate(&unresolved)) }
    }

    /// Every rule that applies to a user in a namespace; the empty one is the scope of the cluster.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let (mut rules, mut unresolved) = (Vec::new(), Vec::new());
        for binding in self.bindings_in(namespace).filter(|binding| binding.subject_of(user).is_some()) {
            match self.role(&binding.role, &binding.namespace) {
                Ok(found) => rules.extend(found.iter().cloned()),
                Err(error) => unresolved.push(error),
            }
        }
        let unresolved = if unresolved.is_empty() { String::new() } else { aggregate(&unresolved) };
        Rules { rules, unresolved }
    }

    /// The rules of a role that a binding in a namespace names.
    ///
    /// # Errors
    /// The sentence about a role that is not there.
    pub fn role(&self, reference: &RoleReference, namespace: &str) -> Result<&[Rule], String> {
        let name = &reference.name;
        let (found, kind) = match reference.kind.as_str() {
            "Role" => (self.roles.get(&(namespace.to_owned(), name.clone())), "role"),
            "ClusterRole" => (self.cluster_roles.get(name), "clusterrole"),
            other => return Err(format!("unsupported role reference kind: {}", quote(other))),
        };
        let missing = || format!("{kind}.rbac.authorization.k8s.io {} not found", quote(name));
        found.map(AsRef::as_ref).ok_or_else(missing)
    }

    /// The bindings of the cluster, then those of the namespace.
    fn bindings_in(&self, namespace: &str) -> impl Iterator<Item = &Binding> {
        let local = if namespace.is_empty() { None } else { self.bindings.get(namespace) };
        self.cluster_bindings.values().chain(local.into_iter().flat_map(BTreeMap::values)).map(AsRef::as_ref)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::attributes::{AccessTarget, ResourceTarget};

    /// A policy of roles (`name` or `namespace/name` → rules) and bindings (same form → role, subjects).
    pub(crate) fn policy(roles: Value, bindings: Value) -> Policy {
        let mut policy = Policy::default();
        for (key, rules) in roles.as_object().unwrap() {
            let rules: Arc<[Rule]> = Rule::parse_all(&json!({ "rules": rules })).into();
            match key.split_once('/') {
                Some((namespace, name)) => policy.roles.insert((namespace.into(), name.into()), rules),
                None => policy.cluster_roles.insert(key.clone(), rules),
            };
        }
        for (key, parts) in bindings.as_object().unwrap() {
            let (namespace, name) = key.split_once('/').unwrap_or(("", key));
            let (kind, role) = parts[0].as_str().unwrap().split_once('/').unwrap();
            let binding = Arc::new(Binding::parse(&json!({
                "metadata": {"name": name, "namespace": namespace},
                "roleRef": {"kind": kind, "name": role}, "subjects": parts[1],
            })));
            match namespace {
                "" => policy.cluster_bindings.insert(name.into(), binding),
                _ => policy.bindings.entry(namespace.into()).or_default().insert(name.into(), binding),
            };
        }
        policy
    }

    fn decide(policy: &Policy, user: &str, verb: &str, namespace: &str) -> Decision {
        let target = ResourceTarget { resource: "pods".into(), namespace: namespace.into(), ..Default::default() };
        let user = User::new(user, ["staff"]);
        policy.decide(&Attributes { user: &user, verb: verb.into(), target: AccessTarget::Resource(target) })
    }

    fn readers() -> Policy {
        let read = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let bob = json!([{"kind": "User", "name": "bob"}]);
        policy(
            json!({"reader": read, "web/reader": read}),
            json!({
                "web/local": ["Role/reader", bob],
                "broken": ["ClusterRole/gone", [{"kind": "Group", "name": "staff"}]],
                "again": ["ClusterRole/gone", [{"kind": "Group", "name": "staff"}]],
            }),
        )
    }

    #[test]
    fn the_binding_that_allows_is_named() {
        let decision = decide(&readers(), "bob", "get", "web");

        assert!(decision.allowed);
        assert_eq!(decision.reason, r#"RBAC: allowed by RoleBinding "local/web" of Role "reader" to User "bob""#);
    }

    #[test]
    fn a_role_that_is_gone_is_the_reason_once() {
        let decision = decide(&readers(), "alice", "get", "web");

        assert!(!decision.allowed);
        assert_eq!(decision.reason, r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#);
    }

    #[test]
    fn bindings_of_a_namespace_do_not_count_elsewhere() {
        assert!(!decide(&readers(), "bob", "get", "other").allowed);
        assert!(!decide(&readers(), "bob", "get", "").allowed);
        assert_eq!(readers().rules_for(&User::new("bob", ["x"]), "").rules, []);
        assert_eq!(readers().rules_for(&User::new("bob", ["x"]), "web").rules.len(), 1);
    }

    #[test]
    fn masters_need_no_rule() {
        let user = User::new("root", ["system:masters"]);
        let attributes = Attributes { user: &user, verb: "x".into(), target: AccessTarget::Path("/y".into()) };

        assert_eq!(Policy::default().decide(&attributes), Decision::privileged());
    }
}
