//! A request as authorization sees it, and the sentence that denies it.

use portolan_schema::go::quote;

use crate::user::User;

/// Who wants to do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a User,
    /// Such as `list`; empty where a method means none.
    pub verb: String,
    /// What is asked for.
    pub target: AccessTarget,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// A resource of an API.
    Resource(ResourceTarget),
    /// Any other path.
    Path(String),
}

/// A collection, an object or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceTarget {
    /// The API group, empty for the core.
    pub group: String,
    /// The API version; roles do not look at it.
    pub version: String,
    /// The plural.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty at the scope of the cluster.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
}

/// A refused request: what a 403 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The group that was asked for.
    pub group: String,
    /// The resource; empty for a path.
    pub resource: String,
    /// The object; empty for a collection.
    pub name: String,
    /// What comes after `is forbidden: `.
    pub why: String,
}

impl ResourceTarget {
    /// `pods` or `pods/log`.
    pub(crate) fn combined(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

impl Attributes<'_> {
    /// The namespace whose bindings count.
    pub fn namespace(&self) -> &str {
        match &self.target {
            AccessTarget::Resource(target) => &target.namespace,
            AccessTarget::Path(_) => "",
        }
    }

    /// The refusal of this request, for a reason or for none.
    pub fn denied(&self, reason: &str) -> Denial {
        let sentence = escape_html(&self.cannot());
        let why = if reason.is_empty() { sentence } else { format!("{sentence}: {reason}") };
        let (group, resource, name) = match &self.target {
            AccessTarget::Resource(target) => (target.group.clone(), target.resource.clone(), target.name.clone()),
            AccessTarget::Path(_) => Default::default(),
        };
        Denial { group, resource, name, why }
    }

    fn cannot(&self) -> String {
        let (user, verb) = (quote(&self.user.name), &self.verb);
        match &self.target {
            AccessTarget::Path(path) => format!("User {user} cannot {verb} path {}", quote(path)),
            AccessTarget::Resource(target) => {
                let (resource, group) = (quote(&target.combined()), quote(&target.group));
                let place = match target.namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", quote(namespace)),
                };
                format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
            }
        }
    }
}

/// A message must not look like a page.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(target: AccessTarget) -> String {
        let user = User::new("b<o>b", ["x"]);
        Attributes { user: &user, verb: "get".into(), target }.denied("").why
    }

    #[test]
    fn a_denial_names_user_verb_resource_and_place() {
        let log = ResourceTarget { resource: "pods".into(), subresource: "log".into(), ..ResourceTarget::default() };
        let placed = ResourceTarget { namespace: "web".into(), ..log.clone() };

        assert_eq!(
            denied(AccessTarget::Resource(log)),
            r#"User "b&lt;o&gt;b" cannot get resource "pods/log" in API group "" at the cluster scope"#
        );
        assert!(denied(AccessTarget::Resource(placed)).ends_with(r#"in API group "" in the namespace "web""#));
        assert_eq!(denied(AccessTarget::Path("/metrics".into())), r#"User "b&lt;o&gt;b" cannot get path "/metrics""#);
    }
}
