//! Rights in a cluster as data. A rule stands in a table because a request needs it, and says which. There are no wildcards.

use serde_json::{Value, json};

/// Where a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// In every namespace, and for objects of the cluster.
    Cluster,
    /// In the operator's own namespace.
    OperatorNamespace,
}

/// One rule of a `Role` or `ClusterRole`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRule {
    /// Where it holds.
    pub reach: Reach,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// Resources and subresources, as `deployments/status`.
    pub resources: &'static [&'static str],
    /// The only objects it holds for; all where empty.
    pub names: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// What it is needed for.
    pub why: &'static str,
}

/// To look at objects one by one, all at once, and as they change.
pub const LOOK: &[&str] = &["get", "list", "watch"];

const ALL_NAMES: &[&str] = &[];

impl RoleRule {
    /// A rule for the whole cluster.
    pub const fn cluster(
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { reach: Reach::Cluster, group, resources, names: ALL_NAMES, verbs, why }
    }

    /// A rule for the operator's own namespace.
    pub const fn own(
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { reach: Reach::OperatorNamespace, ..Self::cluster(group, resources, verbs, why) }
    }

    /// The same for these objects alone.
    #[must_use]
    pub const fn only(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    /// As a `Role` or `ClusterRole` has it.
    pub fn written(self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

/// The rules of several tables, each once.
pub fn union<'a>(tables: impl IntoIterator<Item = &'a [RoleRule]>) -> Vec<RoleRule> {
    let mut all: Vec<RoleRule> = Vec::new();
    for rule in tables.into_iter().flatten() {
        if !all.contains(rule) {
            all.push(*rule);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_objects_only_where_it_is_kept_to_some() {
        let rule = RoleRule::own("", &["secrets"], &["get"], "the token");

        assert_eq!(rule.written(), json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}));
        assert_eq!(rule.only(&["token"]).written()["resourceNames"], json!(["token"]));
    }

    #[test]
    fn a_rule_of_two_tables_is_there_once() {
        let rule = RoleRule::cluster("", &["pods"], LOOK, "pods");

        assert_eq!(union([&[rule][..], &[rule]]), [rule]);
    }
}
