//! The rights of a role → the questions to an API server, and what is missing by its answers. Pure.

use std::fmt;

use portolan_core::job::JobRole;
use portolan_core::rights::Reach;
use serde_json::{Value, json};

/// One right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    name: &'static str,
    /// None for all namespaces, and for objects of the cluster.
    namespace: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in {namespace}"),
            None => f.write_str(" everywhere"),
        }
    }
}

/// Rights in words, those to the same objects together: `get/list pods in ops`.
pub(crate) fn told(rights: &[Right]) -> Vec<String> {
    let objects = |right: &Right| Right { verb: "", ..right.clone() };
    let mut groups: Vec<(Right, Vec<&str>)> = Vec::new();
    for right in rights {
        match groups.iter_mut().find(|(known, _)| *known == objects(right)) {
            Some((_, verbs)) => verbs.push(right.verb),
            None => groups.push((objects(right), vec![right.verb])),
        }
    }
    groups.iter().map(|(objects, verbs)| format!("{}{objects}", verbs.join("/"))).collect()
}

/// Every right of a role, one by one.
pub(crate) fn of(role: &JobRole, namespace: &str) -> Vec<Right> {
    let mut rights: Vec<Right> = Vec::new();
    for rule in (role.rules)() {
        let names: &[&'static str] = if rule.names.is_empty() { &[""] } else { rule.names };
        for (resource, name, verb) in product(rule.resources, names, rule.verbs) {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let namespace = match rule.reach {
                Reach::Cluster => None,
                Reach::OperatorNamespace => Some(namespace.to_owned()),
            };
            let right = Right { verb, group: rule.group, resource, subresource, name, namespace };
            if !rights.contains(&right) {
                rights.push(right);
            }
        }
    }
    rights
}

fn product<'a>(
    resources: &'a [&'static str],
    names: &'a [&'static str],
    verbs: &'a [&'static str],
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> + 'a {
    resources.iter().flat_map(move |resource| {
        names.iter().flat_map(move |name| verbs.iter().map(move |verb| (*resource, *name, *verb)))
    })
}

/// Whose rights are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RightsSubject {
    /// Of whoever asks.
    Own,
    /// Of a `ServiceAccount`, by its namespace and name.
    ServiceAccount(String, String),
}

impl RightsSubject {
    /// Where reviews are sent.
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Own => "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            Self::ServiceAccount(..) => "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        }
    }

    /// The review of one right.
    pub(crate) fn review(&self, right: &Right) -> Value {
        let attributes = json!({
            "verb": right.verb, "group": right.group, "resource": right.resource, "subresource": right.subresource,
            "name": right.name, "namespace": right.namespace.as_deref().unwrap_or_default(),
        });
        let (kind, spec) = match self {
            Self::Own => ("SelfSubjectAccessReview", json!({"resourceAttributes": attributes})),
            Self::ServiceAccount(namespace, name) => {
                let groups = json!([
                    "system:serviceaccounts",
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated"
                ]);
                let user = format!("system:serviceaccount:{namespace}:{name}");
                ("SubjectAccessReview", json!({"resourceAttributes": attributes, "user": user, "groups": groups}))
            }
        };
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
    }
}

impl fmt::Display for RightsSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("whoever asks"),
            Self::ServiceAccount(namespace, name) => write!(f, "ServiceAccount {namespace}/{name}"),
        }
    }
}

/// Whether a review's answer says yes.
pub(crate) fn is_allowed(answer: &Value) -> bool {
    answer["status"]["allowed"] == true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn role(name: &str) -> &'static JobRole {
        portolan_zerotrust::JOB.sheet.role(name).unwrap()
    }

    #[test]
    fn every_rule_of_a_role_is_asked_verb_by_verb() {
        let shown: BTreeSet<String> = of(role("kube_worker"), "ops").iter().map(Right::to_string).collect();

        assert!(shown.contains("patch httproutes.gateway.networking.k8s.io everywhere"), "{shown:#?}");
        assert!(shown.contains("update cloudflaretasks.cfzt.cloudflare.com/status in ops"), "{shown:#?}");
        assert!(of(role("all"), "ops").len() > of(role("manager"), "ops").len());
    }

    #[test]
    fn rights_to_the_same_objects_are_told_together() {
        let rights = of(role("manager"), "ops");
        let told = told(&rights);

        assert!(told.contains(&"get/list/watch pods in ops".to_owned()), "{told:#?}");
        assert!(told.len() < rights.len());
    }

    #[test]
    fn a_review_names_group_resource_and_namespace_apart() {
        let right = of(role("kube_worker"), "ops").into_iter().find(|right| right.subresource == "status").unwrap();

        let own = RightsSubject::Own.review(&right);
        let other = RightsSubject::ServiceAccount("ops".into(), "w".into()).review(&right);

        assert_eq!(own["spec"]["resourceAttributes"]["subresource"], "status");
        assert_eq!(own["spec"]["resourceAttributes"]["group"], "cfzt.cloudflare.com");
        assert_eq!(other["spec"]["user"], "system:serviceaccount:ops:w");
    }
}
