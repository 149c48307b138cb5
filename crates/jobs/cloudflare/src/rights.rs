//! What the job may do in a cluster: its kinds come from their table, the rest stands here.

use std::sync::LazyLock;

use portolan_core::job::JobRole;
use portolan_core::rights::{LOOK, RoleRule};

use crate::job::{GROUP, LEASE, NAME};
use crate::kinds;

/// One process does everything.
pub(crate) const ROLES: &[JobRole] = &[JobRole::whole(NAME, rules)];

static PLURALS: LazyLock<Vec<&'static str>> = LazyLock::new(|| kinds::table().iter().map(|row| row.plural).collect());
static STATUS_NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| PLURALS.iter().map(|plural| format!("{plural}/status")).collect());
static STATUSES: LazyLock<Vec<&'static str>> = LazyLock::new(|| STATUS_NAMES.iter().map(String::as_str).collect());

fn rules() -> Vec<RoleRule> {
    let cluster = |group, resources, verbs| RoleRule::cluster(group, resources, verbs, "");
    let own = |group, resources, verbs| RoleRule::own(group, resources, verbs, "");
    vec![
        cluster(GROUP, &PLURALS, &["get", "list", "watch", "patch"]),
        // A record whose source is gone deletes itself; nothing else of ours is ever deleted in the cluster.
        cluster(GROUP, &["dnsrecords"], &["delete"]),
        cluster(GROUP, &STATUSES, &["patch"]),
        // Credentials are read; a finalizer keeps them while something stands that was made with them.
        cluster("", &["secrets"], &["get", "list", "watch", "patch"]),
        cluster("", &["namespaces"], &["get"]),
        cluster("", &["services", "nodes"], LOOK),
        cluster("networking.k8s.io", &["ingresses"], LOOK),
        cluster("gateway.networking.k8s.io", &["httproutes", "gateways"], LOOK),
        cluster("gateway.networking.k8s.io", &["referencegrants"], &["list"]),
        cluster("events.k8s.io", &["events"], &["create"]),
        own("", &["configmaps"], &["list", "watch", "create", "patch"]),
        own("coordination.k8s.io", &["leases"], &["create"]),
        own("coordination.k8s.io", &["leases"], &["get", "list", "watch", "update"]).only(&[LEASE]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_11_records_may_delete_themselves_and_nothing_else_may_be_deleted() {
        let deleting = rules().into_iter().filter(|rule| rule.verbs.contains(&"delete"));

        let resources: Vec<&str> = deleting.flat_map(|rule| rule.resources).copied().collect();

        assert_eq!(resources, ["dnsrecords"]);
    }
}
