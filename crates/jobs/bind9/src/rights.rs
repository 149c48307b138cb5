//! What the job may do in a cluster, as a table: for the installation, the chart, the security page and `doctor`.

use portolan_bind9_model::GROUP as OURS;
use portolan_core::job::JobRole;
use portolan_core::rights::{LOOK, RoleRule};

use crate::definition::LEASE;

/// The job's roles: one process does everything.
pub(crate) const ROLES: &[JobRole] = &[JobRole::whole(portolan_bind9_model::JOB, rules)];

const WRITE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

fn rules() -> Vec<RoleRule> {
    let mut all = RULES.to_vec();
    all.extend([
        RoleRule::own("coordination.k8s.io", &["leases"], &["create"], "one process leads"),
        RoleRule::own("coordination.k8s.io", &["leases"], &["get", "list", "watch", "update"], "one process leads")
            .only(&[LEASE]),
    ]);
    all
}

const RULES: &[RoleRule] = &[
    RoleRule::cluster(
        OURS,
        &["clusterbind9providers", "dnszones"],
        &["get", "list", "watch", "patch"],
        "providers and zones; their finalizers",
    ),
    RoleRule::cluster(
        OURS,
        &["bind9clusters", "bind9instances"],
        WRITE,
        "clusters of providers, and instances of clusters; their finalizers",
    ),
    RoleRule::cluster(
        OURS,
        &["clusterbind9providers/status", "bind9clusters/status", "bind9instances/status", "dnszones/status"],
        &["patch"],
        "how they stand",
    ),
    RoleRule::cluster(
        "",
        &["secrets"],
        &["get", "list", "watch", "create", "patch"],
        "keys of servers, and those that users name",
    ),
    RoleRule::cluster(
        "",
        &["configmaps"],
        &["get", "list", "watch", "create", "patch"],
        "configuration of servers, and files that users name",
    ),
    RoleRule::cluster("", &["services"], &["get", "list", "watch", "create", "patch"], "where servers are reached"),
    RoleRule::cluster("", &["serviceaccounts"], &["get", "create", "patch"], "whom servers run as"),
    RoleRule::cluster("", &["pods"], LOOK, "how servers are"),
    RoleRule::cluster("apps", &["deployments", "statefulsets"], WRITE, "servers, with or without disks"),
    RoleRule::cluster(
        "policy",
        &["poddisruptionbudgets"],
        &["get", "create", "patch"],
        "not all servers are taken down at once",
    ),
    RoleRule::cluster("events.k8s.io", &["events"], &["create"], "what became of clusters and instances"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_wildcards_and_every_rule_says_why() {
        for rule in rules() {
            let words = rule.resources.iter().chain(rule.verbs).chain(rule.names).chain([&rule.group]);
            assert!(words.into_iter().all(|word| !word.contains('*')), "{rule:?}");
            assert!(!rule.why.is_empty() && !rule.verbs.is_empty() && !rule.resources.is_empty(), "{rule:?}");
        }
    }
}
