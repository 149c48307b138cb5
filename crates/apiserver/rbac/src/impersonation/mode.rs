//! The modes of impersonation, and the rights that each of them needs.

use portolan_schema::go::quote;
use portolan_schema::names::dns1123_subdomain;

use crate::attributes::{AccessTarget, Attributes, Denial, ResourceTarget};
use crate::policy::Policy;
use crate::request::AskedFor;
use crate::text::aggregate;
use crate::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, NODES, UNAUTHENTICATED, User, account_groups, split_account, split_node,
};

/// From so many names on, the right to all of them is asked for first.
const MANY: usize = 4;
const AUTHENTICATION: &str = "authentication.k8s.io";
/// Where a pod's token says on which node the pod is.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// How someone acts as someone else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpersonationMode {
    /// A pod as the node that it is on.
    AssociatedNode,
    /// Anyone as any node.
    ArbitraryNode,
    /// Anyone as a service account.
    ServiceAccount,
    /// Anyone as any other user.
    UserInfo,
    /// Without saying for which requests.
    Legacy,
}

const MODES: [ImpersonationMode; 5] = [
    ImpersonationMode::AssociatedNode,
    ImpersonationMode::ArbitraryNode,
    ImpersonationMode::ServiceAccount,
    ImpersonationMode::UserInfo,
    ImpersonationMode::Legacy,
];

impl ImpersonationMode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn verb(self) -> String {
        match self {
            Self::Legacy => "impersonate".to_owned(),
            constrained => format!("impersonate:{}", constrained.name()),
        }
    }

    /// Whether a user can be acted as in this mode at all.
    fn serves(self, wanted: &User, requestor: &User) -> bool {
        let name_only = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (split_node(&wanted.name), split_account(&wanted.name).is_some());
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME).map(Vec::as_slice);
                let is_own = matches!((own, node), (Some([own]), Some(node)) if own == node);
                name_only && is_own && split_account(&requestor.name).is_some()
            }
            Self::ArbitraryNode => name_only && node.is_some(),
            Self::ServiceAccount => name_only && account,
            Self::UserInfo => node.is_none() && !account,
            Self::Legacy => true,
        }
    }
}

/// The user that a request acts as, and the mode that allowed it. `last` is the mode that the requestor used before.
///
/// # Errors
/// The first refusal.
pub fn act_as(
    policy: &Policy,
    requestor: &User,
    wanted: &User,
    asked: &AskedFor,
    last: Option<ImpersonationMode>,
) -> Result<(User, ImpersonationMode), Denial> {
    let mut first = None;
    for mode in last.into_iter().chain(MODES.into_iter().filter(|mode| Some(*mode) != last)) {
        if !mode.serves(wanted, requestor) {
            continue;
        }
        let check = ModeCheck { policy, requestor, mode };
        match check.request(asked).and_then(|()| check.user(wanted)) {
            Ok(user) => return Ok((user, mode)),
            Err(denial) => first = first.or(Some(denial)),
        }
    }
    Err(first.expect("the old mode serves everyone, and was refused"))
}

struct ModeCheck<'a> {
    policy: &'a Policy,
    requestor: &'a User,
    mode: ImpersonationMode,
}

impl ModeCheck<'_> {
    fn constrained(&self) -> bool {
        self.mode != ImpersonationMode::Legacy
    }

    /// The right to do this very request in this mode.
    fn request(&self, asked: &AskedFor) -> Result<(), Denial> {
        if !self.constrained() {
            return Ok(());
        }
        let verb = format!("impersonate-on:{}:{}", self.mode.name(), asked.verb);
        self.allowed(&Attributes { user: self.requestor, verb, target: asked.target.clone() })
    }

    /// The rights to be that user.
    fn user(&self, wanted: &User) -> Result<User, Denial> {
        let mut user = wanted.clone();
        self.name(wanted, &mut user)?;
        if !wanted.uid.is_empty() {
            self.may_be(AUTHENTICATION, "uids", "", &wanted.uid)?;
        }
        self.groups(&wanted.groups)?;
        self.extra(wanted)?;
        if user.name == ANONYMOUS {
            user.join(UNAUTHENTICATED);
        } else if !user.is_in(UNAUTHENTICATED) {
            user.join(AUTHENTICATED);
        }
        Ok(user)
    }

    fn name(&self, wanted: &User, user: &mut User) -> Result<(), Denial> {
        let (mut resource, mut namespace, mut name) = ("users", "", wanted.name.as_str());
        if let Some(node) = split_node(&wanted.name).filter(|_| self.constrained()) {
            (resource, name) = ("nodes", if self.mode == ImpersonationMode::AssociatedNode { "*" } else { node });
            user.groups = vec![NODES.to_owned()];
        }
        if let Some(account) = split_account(&wanted.name) {
            resource = "serviceaccounts";
            (namespace, name) = account;
            if wanted.groups.is_empty() {
                user.groups = account_groups(namespace);
            }
        }
        self.allowed(&self.being(self.home(), resource, "", namespace, name))
    }

    fn groups(&self, groups: &[String]) -> Result<(), Denial> {
        if groups.is_empty() {
            return Ok(());
        }
        let attributes = |name: &str| self.being(self.home(), "groups", "", "", name);
        if self.constrained() {
            if groups.iter().any(String::is_empty) {
                return Err(attributes("").denied("impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == MASTERS) {
                return Err(attributes(MASTERS).denied("impersonating the system:masters group is not allowed"));
            }
            if groups.len() >= MANY && self.allowed(&attributes("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.allowed(&attributes(group)))
    }

    fn extra(&self, wanted: &User) -> Result<(), Denial> {
        let extra = &wanted.extra;
        if extra.is_empty() {
            return Ok(());
        }
        if self.constrained() {
            if let Some(error) = extra.iter().find_map(|(key, values)| wrong_extra(key, values)) {
                return Err(self.being(AUTHENTICATION, "userextras", "", "", "").denied(&error));
            }
            let large = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if large && self.may_be(AUTHENTICATION, "userextras", "*", "*").is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.may_be(AUTHENTICATION, "userextras", key, value)?;
            }
        }
        Ok(())
    }

    /// The group in which users and groups are looked for.
    fn home(&self) -> &'static str {
        if self.constrained() { AUTHENTICATION } else { "" }
    }

    fn may_be(&self, group: &str, resource: &str, subresource: &str, name: &str) -> Result<(), Denial> {
        self.allowed(&self.being(group, resource, subresource, "", name))
    }

    fn being(&self, group: &str, resource: &str, subresource: &str, namespace: &str, name: &str) -> Attributes<'_> {
        let target = ResourceTarget {
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        Attributes { user: self.requestor, verb: self.mode.verb(), target: AccessTarget::Resource(target) }
    }

    fn allowed(&self, attributes: &Attributes<'_>) -> Result<(), Denial> {
        let decision = self.policy.decide(attributes);
        if decision.allowed { Ok(()) } else { Err(attributes.denied(&decision.reason)) }
    }
}

/// What a constrained mode does not take as extra.
fn wrong_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    if let Some(error) = wrong_key(key) {
        return Some(format!("impersonating an invalid key in extra is not allowed: {error}"));
    }
    if key.to_lowercase() != key {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", quote(key)));
    }
    values
        .iter()
        .any(String::is_empty)
        .then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// Keys are `domain/path`.
fn wrong_key(key: &str) -> Option<String> {
    let invalid = |value: &str, detail: &str| format!("extra.key: Invalid value: {}: {detail}", quote(value));
    let Some((domain, path)) = key.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        return Some(invalid(key, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    };
    let mut errors: Vec<String> = dns1123_subdomain(domain).iter().map(|error| invalid(domain, error)).collect();
    if !path.chars().all(|c| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c)) {
        let regex = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
        errors.push(invalid(path, &format!("Invalid path (regex used for validation is '{regex}')")));
    }
    (!errors.is_empty()).then(|| aggregate(&errors))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::tests::policy;

    fn allowed_to(rules: Value) -> Policy {
        policy(json!({ "role": rules }), json!({"b": ["ClusterRole/role", [{"kind": "User", "name": "alice"}]]}))
    }

    fn list_pods() -> AskedFor {
        let target = ResourceTarget { resource: "pods".into(), namespace: "web".into(), ..ResourceTarget::default() };
        AskedFor { verb: "list".into(), target: AccessTarget::Resource(target) }
    }

    fn act(policy: &Policy, wanted: &User) -> Result<(User, ImpersonationMode), Denial> {
        act_as(policy, &User::new("alice", ["system:authenticated"]), wanted, &list_pods(), None)
    }

    #[test]
    fn without_rights_the_first_mode_refuses() {
        let denial = act(&Policy::default(), &User::new("bob", Vec::<String>::new())).unwrap_err();

        assert_eq!(
            denial.why,
            r#"User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "web""#
        );
        assert_eq!((denial.resource.as_str(), denial.name.as_str()), ("pods", ""));
    }

    #[test]
    fn the_old_right_is_enough() {
        let policy = allowed_to(json!([{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]}]));

        let (user, mode) = act(&policy, &User::new("bob", Vec::<String>::new())).unwrap();

        assert_eq!(mode, ImpersonationMode::Legacy);
        assert_eq!(user.groups, ["system:authenticated"]);
        assert!(act(&policy, &User::new("bob", ["staff"])).is_err());
    }

    #[test]
    fn a_constrained_right_is_for_some_requests() {
        let policy = allowed_to(json!([
            {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users", "groups"]},
            {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]},
        ]));
        let get = AskedFor { verb: "get".into(), ..list_pods() };
        let (alice, bob) = (User::new("alice", ["x"]), User::new("bob", ["staff"]));

        assert_eq!(act(&policy, &bob).unwrap().1, ImpersonationMode::UserInfo);
        assert!(act_as(&policy, &alice, &bob, &get, None).is_err());
        assert!(act(&policy, &User::new("bob", ["system:masters"])).is_err());
    }

    #[test]
    fn a_service_account_comes_with_its_groups() {
        let everything = allowed_to(json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]));
        let account = User::new("system:serviceaccount:web:builder", Vec::<String>::new());

        let (user, mode) = act(&everything, &account).unwrap();

        assert_eq!(mode, ImpersonationMode::ServiceAccount);
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated"]);
    }

    #[test]
    fn nodes_are_nodes_only_in_constrained_modes() {
        let everything = allowed_to(json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]));

        let (user, mode) = act(&everything, &User::new("system:node:n", Vec::<String>::new())).unwrap();

        assert_eq!((mode, user.groups[0].as_str()), (ImpersonationMode::ArbitraryNode, "system:nodes"));
    }
}
