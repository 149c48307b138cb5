//! What each role of the job may do in a cluster, as tables: for the installation, the chart, the security page and `doctor`.

use portolan_core::job::JobRole;
use portolan_core::rights::{LOOK, RoleRule, union};
use portolan_zerotrust_model::GROUP as OURS;

const GATEWAY: &str = "gateway.networking.k8s.io";
const LEASES: &str = "coordination.k8s.io";
const EVENTS: &str = "events.k8s.io";

/// The job's roles: one process, or three of them with rights of their own.
pub(crate) const ROLES: &[JobRole] = &[
    JobRole::whole("all", || union([MANAGER, KUBE_WORKER, CLOUDFLARE_WORKER])),
    JobRole { name: "manager", component: JobRole::OPERATOR, rules: || MANAGER.to_vec() },
    JobRole { name: "kube_worker", component: "kube-worker", rules: || KUBE_WORKER.to_vec() },
    JobRole { name: "cloudflare_worker", component: "cloudflare-worker", rules: || CLOUDFLARE_WORKER.to_vec() },
];

const WHO_OWNS: RoleRule = RoleRule::cluster(
    "",
    &["namespaces"],
    &["get"],
    "the cluster's own id, by which objects at Cloudflare are known as ours",
)
.only(&["kube-system"]);
const LEASE_MADE: RoleRule = RoleRule::own(LEASES, &["leases"], &["create"], "one process leads");

const MANAGER: &[RoleRule] = &[
    RoleRule::own(OURS, &["cloudflarezerotrustoperatorconfigs"], LOOK, "how the operator is to run"),
    RoleRule::own(OURS, &["cloudflarezerotrustoperatorconfigs/status"], &["patch"], "what became of a configuration"),
    RoleRule::own(
        "apps",
        &["deployments"],
        &["get", "list", "watch", "create", "patch", "update"],
        "the operator's own Deployment and those of its workers",
    ),
    RoleRule::own("apps", &["replicasets"], &["get"], "from the own pod to the own Deployment"),
    RoleRule::own("", &["pods"], LOOK, "the own pod, and the image that it runs"),
    RoleRule::own(EVENTS, &["events"], &["create"], "what was changed, told on the configuration"),
    LEASE_MADE,
    RoleRule::own(LEASES, &["leases"], &["get", "list", "watch", "update"], "one process leads")
        .only(&["cloudflare-zero-trust-manager"]),
];

const KUBE_WORKER: &[RoleRule] = &[
    RoleRule::cluster(
        GATEWAY,
        &["httproutes"],
        &["get", "list", "watch", "patch"],
        "routes; their finalizer and annotations",
    ),
    RoleRule::cluster(
        OURS,
        &["cloudflarezerotrusttenants"],
        &["get", "list", "watch", "patch"],
        "tenants; their finalizer, and annotations that release held deletions",
    ),
    RoleRule::cluster(OURS, &["cloudflarezerotrusttemplates"], LOOK, "templates"),
    RoleRule::cluster(
        OURS,
        &["cloudflarezerotrusttenants/status", "cloudflarezerotrusttemplates/status"],
        &["patch"],
        "how tenants and templates stand",
    ),
    RoleRule::cluster(
        GATEWAY,
        &["referencegrants"],
        &["list"],
        "whether a namespace permits routes of others to lead to its Services",
    ),
    RoleRule::cluster("", &["services"], LOOK, "addresses of load balancers, and of the API server"),
    RoleRule::cluster(
        "",
        &["secrets"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "API tokens that tenants name, and Secrets with service tokens in the routes' namespaces",
    ),
    RoleRule::cluster(
        "",
        &["namespaces"],
        &["get"],
        "whether a namespace is there or going; and kube-system, for the cluster's own id",
    ),
    RoleRule::cluster(EVENTS, &["events"], &["create"], "what became of routes, tenants and templates"),
    RoleRule::own(
        OURS,
        &["cloudflaretasks"],
        &["list", "watch", "create", "update", "delete"],
        "work for the Cloudflare side",
    ),
    RoleRule::own(OURS, &["cloudflaretasks/status"], &["update"], "tasks that are queued again"),
    RoleRule::own(
        "",
        &["configmaps"],
        &["list", "watch", "create", "update", "patch", "delete"],
        "states, and the ledger of deletions",
    ),
    LEASE_MADE,
    RoleRule::own(LEASES, &["leases"], &["get", "list", "watch", "update"], "one process leads")
        .only(&["cloudflare-zero-trust-operator"]),
];

const CLOUDFLARE_WORKER: &[RoleRule] = &[
    WHO_OWNS,
    RoleRule::cluster("", &["secrets"], &["get"], "the API token that a task names"),
    RoleRule::cluster(
        OURS,
        &["cloudflarezerotrusttenants"],
        &["list", "watch"],
        "how much is logged about a tenant's work",
    ),
    RoleRule::own(OURS, &["cloudflaretasks"], LOOK, "what is to be done"),
    RoleRule::own(OURS, &["cloudflaretasks/status"], &["update"], "claims, progress and results"),
    RoleRule::own("", &["secrets"], &["create", "patch"], "new service tokens, handed over to the route side"),
    RoleRule::own("", &["configmaps"], &["list"], "whether another route has a name or a token that is to be deleted"),
    RoleRule::own(
        LEASES,
        &["leases"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "which workers live, and who writes a tunnel's configuration",
    ),
];

#[cfg(test)]
mod tests {
    use portolan_core::rights::Reach;

    use super::*;

    fn rules(role: &str) -> Vec<RoleRule> {
        let found = ROLES.iter().find(|known| known.name == role);
        found.map(|role| (role.rules)()).unwrap_or_default()
    }

    fn may(role: &str, verb: &str, group: &str, resource: &str) -> bool {
        rules(role)
            .iter()
            .any(|rule| rule.group == group && rule.resources.contains(&resource) && rule.verbs.contains(&verb))
    }

    #[test]
    fn there_are_no_wildcards_and_every_rule_says_why() {
        for rule in rules("all") {
            let words = rule.resources.iter().chain(rule.verbs).chain(rule.names).chain([&rule.group]);
            assert!(words.into_iter().all(|word| !word.contains('*')), "{rule:?}");
            assert!(!rule.why.is_empty() && !rule.verbs.is_empty() && !rule.resources.is_empty(), "{rule:?}");
        }
    }

    #[test]
    fn the_side_at_cloudflare_cannot_touch_routes_and_reads_secrets_one_by_one() {
        let worker = "cloudflare_worker";

        assert!(rules(worker).iter().all(|rule| rule.group != GATEWAY));
        assert!(may(worker, "get", "", "secrets") && !may(worker, "list", "", "secrets"));
        assert!(!may(worker, "update", OURS, "cloudflaretasks") && !may(worker, "delete", OURS, "cloudflaretasks"));
    }

    #[test]
    fn the_route_side_cannot_touch_deployments_and_the_manager_cannot_read_secrets() {
        assert!(rules("kube_worker").iter().all(|rule| rule.group != "apps"));
        assert!(rules("manager").iter().all(|rule| !rule.resources.contains(&"secrets")));
        assert!(rules("manager").iter().all(|rule| rule.reach == Reach::OperatorNamespace));
    }

    #[test]
    fn one_process_may_do_what_the_three_may_together() {
        let all = rules("all");

        for rule in ROLES[1..].iter().flat_map(|role| (role.rules)()) {
            assert_eq!(all.iter().filter(|other| **other == rule).count(), 1, "{rule:?}");
        }
    }

    #[test]
    fn what_can_be_kept_to_the_operators_namespace_is() {
        for resource in ["configmaps", "leases", "pods", "deployments", "cloudflaretasks"] {
            let mut found = rules("all").into_iter().filter(|rule| rule.resources.contains(&resource));
            assert!(found.all(|rule| rule.reach == Reach::OperatorNamespace), "{resource}");
        }
    }
}
