//! Who asks: a name, groups and what else authentication knows.

use std::collections::BTreeMap;

use portolan_schema::names::{dns1123_label, dns1123_subdomain};

/// May do everything.
pub const MASTERS: &str = "system:masters";
/// Everyone who was authenticated.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everyone who was not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user who was not authenticated.
pub const ANONYMOUS: &str = "system:anonymous";
/// Nodes.
pub const NODES: &str = "system:nodes";
/// All service accounts.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const NODE_PREFIX: &str = "system:node:";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, as bindings name it.
    pub name: String,
    /// Tells apart users that had the same name at different times.
    pub uid: String,
    /// The groups, as bindings name them.
    pub groups: Vec<String>,
    /// What else authentication knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of some groups.
    pub fn new(name: impl Into<String>, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The user that a service account is.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let groups = account_groups(namespace);
        Self { name: account_name(namespace, name), uid: uid.to_owned(), groups, extra: BTreeMap::new() }
    }

    /// Whether nothing is ever denied to this user.
    pub fn is_privileged(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Whether this user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Adds a group unless it is there.
    pub fn join(&mut self, group: &str) {
        if !self.is_in(group) {
            self.groups.push(group.to_owned());
        }
    }
}

/// `system:serviceaccount:NAMESPACE:NAME`.
pub fn account_name(namespace: &str, name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups of every service account of a namespace.
pub fn account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// Namespace and name of the service account that a user is.
pub fn split_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let proper = !name.contains(':') && dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty();
    proper.then_some((namespace, name))
}

/// Whether a user is a service account, compared as bindings compare it.
pub(crate) fn is_account(user: &str, namespace: &str, name: &str) -> bool {
    let rest = user.strip_prefix(ACCOUNT_PREFIX).and_then(|rest| rest.strip_prefix(namespace));
    rest.and_then(|rest| rest.strip_prefix(':')) == Some(name)
}

/// The node that a user is.
pub(crate) fn split_node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| dns1123_subdomain(name).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_known_by_its_user_name() {
        assert_eq!(split_account("system:serviceaccount:web:builder"), Some(("web", "builder")));
        assert_eq!(split_account("system:serviceaccount:web:a:b"), None);
        assert_eq!(split_account("system:serviceaccount:Web:a"), None);
        assert!(is_account("system:serviceaccount:web:builder", "web", "builder"));
        assert!(!is_account("system:serviceaccount:web:builder", "we", "builder"));
    }

    #[test]
    fn a_service_account_is_in_the_groups_of_its_namespace() {
        let user = User::service_account("web", "builder", "1");

        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:web"]);
    }
}
