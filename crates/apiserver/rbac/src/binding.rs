//! `RoleBinding` and `ClusterRoleBinding`: who has which role.

use serde_json::Value;

use portolan_schema::go::quote;

use crate::text::text;
use crate::user::{User, is_account};

/// A binding of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Empty for a `ClusterRoleBinding`.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What its subjects may do.
    pub role: RoleReference,
    /// Who may.
    pub subjects: Vec<Subject>,
}

/// A role by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleReference {
    /// The group of the role's kind.
    pub group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Whom a binding names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// Its name.
    pub name: String,
    /// A service account's namespace; empty for the binding's own.
    pub namespace: String,
}

/// What a subject is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// A user by name.
    User,
    /// Everyone in a group.
    Group,
    /// A service account.
    ServiceAccount,
    /// Anything else, which nobody is.
    Other(String),
}

impl RoleReference {
    /// Reads a `roleRef`.
    pub fn parse(reference: &Value) -> Self {
        Self { group: text(&reference["apiGroup"]), kind: text(&reference["kind"]), name: text(&reference["name"]) }
    }
}

impl Subject {
    fn parse(subject: &Value) -> Self {
        let kind = match subject["kind"].as_str().unwrap_or_default() {
            "User" => SubjectKind::User,
            "Group" => SubjectKind::Group,
            "ServiceAccount" => SubjectKind::ServiceAccount,
            other => SubjectKind::Other(other.to_owned()),
        };
        Self { kind, name: text(&subject["name"]), namespace: text(&subject["namespace"]) }
    }

    fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind {
            SubjectKind::User => user.name == self.name,
            SubjectKind::Group => user.is_in(&self.name),
            SubjectKind::ServiceAccount => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                !namespace.is_empty() && is_account(&user.name, namespace, &self.name)
            }
            SubjectKind::Other(_) => false,
        }
    }

    fn describe(&self, namespace: &str) -> String {
        let kind = match &self.kind {
            SubjectKind::User => "User",
            SubjectKind::Group => "Group",
            SubjectKind::ServiceAccount => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                return format!("ServiceAccount {}", quote(&format!("{}/{namespace}", self.name)));
            }
            SubjectKind::Other(kind) => kind,
        };
        format!("{kind} {}", quote(&self.name))
    }
}

impl Binding {
    /// Reads a binding; one without a namespace is a `ClusterRoleBinding`.
    pub fn parse(binding: &Value) -> Self {
        let metadata = &binding["metadata"];
        Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            role: RoleReference::parse(&binding["roleRef"]),
            subjects: binding["subjects"].as_array().into_iter().flatten().map(Subject::parse).collect(),
        }
    }

    /// The first subject that a user is.
    pub(crate) fn subject_of(&self, user: &User) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.is(user, &self.namespace))
    }

    /// How reasons name it.
    pub(crate) fn describe(&self, subject: &Subject) -> String {
        let (kind, name) = match self.namespace.as_str() {
            "" => ("ClusterRoleBinding", quote(&self.name)),
            namespace => ("RoleBinding", quote(&format!("{}/{namespace}", self.name))),
        };
        let role = format!("{} {}", self.role.kind, quote(&self.role.name));
        format!("{kind} {name} of {role} to {}", subject.describe(&self.namespace))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bound(namespace: &str, subject: Value) -> Binding {
        Binding::parse(&json!({
            "metadata": {"name": "b", "namespace": namespace},
            "roleRef": {"kind": "Role", "name": "r"}, "subjects": [subject],
        }))
    }

    #[test]
    fn an_account_without_a_namespace_is_one_of_the_bindings_own() {
        let user = User::service_account("web", "builder", "");
        let subject = json!({"kind": "ServiceAccount", "name": "builder"});

        let own = bound("web", subject.clone());
        let subject = own.subject_of(&user).cloned().unwrap();

        assert_eq!(own.describe(&subject), r#"RoleBinding "b/web" of Role "r" to ServiceAccount "builder/web""#);
        assert!(bound("other", json!({"kind": "ServiceAccount", "name": "builder"})).subject_of(&user).is_none());
        assert!(bound("", json!({"kind": "ServiceAccount", "name": "builder"})).subject_of(&user).is_none());
    }

    #[test]
    fn groups_and_users_are_told_apart() {
        let user = User::new("admins", ["staff"]);

        assert!(bound("", json!({"kind": "User", "name": "admins"})).subject_of(&user).is_some());
        assert!(bound("", json!({"kind": "Group", "name": "admins"})).subject_of(&user).is_none());
        assert!(bound("", json!({"kind": "Group", "name": "staff"})).subject_of(&user).is_some());
    }
}
