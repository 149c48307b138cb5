//! What each role may do in a cluster: the one table behind the installation, the chart, the security page and `doctor`.
//!
//! A rule stands here because a request of that role needs it, and says which. There are no wildcards.

pub mod cloudflare;

use serde_json::{Value, json};

/// The duties of a `ServiceAccount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Everything in one process.
    All,
    /// Keeps the operator's own Deployments in shape.
    Manager,
    /// Turns routes into tasks and collects results.
    KubeWorker,
    /// Carries tasks out at Cloudflare.
    CloudflareWorker,
}

impl Tier {
    /// The tiers that have rules of their own.
    pub const APART: [Self; 3] = [Self::Manager, Self::KubeWorker, Self::CloudflareWorker];

    /// The role as `--role` names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Manager => "manager",
            Self::KubeWorker => "kube_worker",
            Self::CloudflareWorker => "cloudflare_worker",
        }
    }
}

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
    /// Resources and subresources, as `cloudflaretasks/status`.
    pub resources: &'static [&'static str],
    /// The only objects it holds for; all where empty.
    pub names: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// What it is needed for.
    pub why: &'static str,
}

const OURS: &str = "cfzt.cloudflare.com";
const GATEWAY: &str = "gateway.networking.k8s.io";
const LEASES: &str = "coordination.k8s.io";
const EVENTS: &str = "events.k8s.io";

const LOOK: &[&str] = &["get", "list", "watch"];
const ALL_NAMES: &[&str] = &[];

const fn cluster(
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    why: &'static str,
) -> RoleRule {
    RoleRule { reach: Reach::Cluster, group, resources, names: ALL_NAMES, verbs, why }
}

const fn own(
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    why: &'static str,
) -> RoleRule {
    RoleRule { reach: Reach::OperatorNamespace, group, resources, names: ALL_NAMES, verbs, why }
}

impl RoleRule {
    const fn only(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }
}

const WHO_OWNS: RoleRule =
    cluster("", &["namespaces"], &["get"], "the cluster's own id, by which objects at Cloudflare are known as ours")
        .only(&["kube-system"]);
const LEASE_MADE: RoleRule = own(LEASES, &["leases"], &["create"], "one process leads");

const MANAGER: &[RoleRule] = &[
    own(OURS, &["cloudflarezerotrustoperatorconfigs"], LOOK, "how the operator is to run"),
    own(OURS, &["cloudflarezerotrustoperatorconfigs/status"], &["patch"], "what became of a configuration"),
    own(
        "apps",
        &["deployments"],
        &["get", "list", "watch", "create", "patch", "update"],
        "the operator's own Deployment and those of its workers",
    ),
    own("apps", &["replicasets"], &["get"], "from the own pod to the own Deployment"),
    own("", &["pods"], LOOK, "the own pod, and the image that it runs"),
    own(EVENTS, &["events"], &["create"], "what was changed, told on the configuration"),
    LEASE_MADE,
    own(LEASES, &["leases"], &["get", "list", "watch", "update"], "one process leads")
        .only(&["cloudflare-zero-trust-manager"]),
];

const KUBE_WORKER: &[RoleRule] = &[
    cluster(GATEWAY, &["httproutes"], &["get", "list", "watch", "patch"], "routes; their finalizer and annotations"),
    cluster(
        OURS,
        &["cloudflarezerotrusttenants"],
        &["get", "list", "watch", "patch"],
        "tenants; their finalizer, and annotations that release held deletions",
    ),
    cluster(OURS, &["cloudflarezerotrusttemplates"], LOOK, "templates"),
    cluster(
        OURS,
        &["cloudflarezerotrusttenants/status", "cloudflarezerotrusttemplates/status"],
        &["patch"],
        "how tenants and templates stand",
    ),
    cluster(
        GATEWAY,
        &["referencegrants"],
        &["list"],
        "whether a namespace permits routes of others to lead to its Services",
    ),
    cluster("", &["services"], LOOK, "addresses of load balancers, and of the API server"),
    cluster(
        "",
        &["secrets"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "API tokens that tenants name, and Secrets with service tokens in the routes' namespaces",
    ),
    cluster(
        "",
        &["namespaces"],
        &["get"],
        "whether a namespace is there or going; and kube-system, for the cluster's own id",
    ),
    cluster(EVENTS, &["events"], &["create"], "what became of routes, tenants and templates"),
    own(OURS, &["cloudflaretasks"], &["list", "watch", "create", "update", "delete"], "work for the Cloudflare side"),
    own(OURS, &["cloudflaretasks/status"], &["update"], "tasks that are queued again"),
    own(
        "",
        &["configmaps"],
        &["list", "watch", "create", "update", "patch", "delete"],
        "states, and the ledger of deletions",
    ),
    LEASE_MADE,
    own(LEASES, &["leases"], &["get", "list", "watch", "update"], "one process leads")
        .only(&["cloudflare-zero-trust-operator"]),
];

const CLOUDFLARE_WORKER: &[RoleRule] = &[
    WHO_OWNS,
    cluster("", &["secrets"], &["get"], "the API token that a task names"),
    cluster(OURS, &["cloudflarezerotrusttenants"], &["list", "watch"], "how much is logged about a tenant's work"),
    own(OURS, &["cloudflaretasks"], LOOK, "what is to be done"),
    own(OURS, &["cloudflaretasks/status"], &["update"], "claims, progress and results"),
    own("", &["secrets"], &["create", "patch"], "new service tokens, handed over to the route side"),
    own("", &["configmaps"], &["list"], "whether another route has a name or a token that is to be deleted"),
    own(
        LEASES,
        &["leases"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "which workers live, and who writes a tunnel's configuration",
    ),
];

/// What a tier may do. [`Tier::All`] may do what the others may together.
pub fn rules(tier: Tier) -> Vec<RoleRule> {
    match tier {
        Tier::Manager => MANAGER.to_vec(),
        Tier::KubeWorker => KUBE_WORKER.to_vec(),
        Tier::CloudflareWorker => CLOUDFLARE_WORKER.to_vec(),
        Tier::All => union(),
    }
}

/// What a tier may do within a reach, as the rules of a `Role` or `ClusterRole`.
pub fn written(tier: Tier, reach: Reach) -> Vec<Value> {
    rules(tier).into_iter().filter(|rule| rule.reach == reach).map(RoleRule::written).collect()
}

impl RoleRule {
    pub(crate) fn written(self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

/// The rules of all tiers, each once.
fn union() -> Vec<RoleRule> {
    let mut all: Vec<RoleRule> = Vec::new();
    for rule in Tier::APART.into_iter().flat_map(rules) {
        if !all.contains(&rule) {
            all.push(rule);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(tier: Tier, verb: &str, group: &str, resource: &str) -> bool {
        rules(tier)
            .iter()
            .any(|rule| rule.group == group && rule.resources.contains(&resource) && rule.verbs.contains(&verb))
    }

    #[test]
    fn there_are_no_wildcards_and_every_rule_says_why() {
        for rule in rules(Tier::All) {
            let words = rule.resources.iter().chain(rule.verbs).chain(rule.names).chain([&rule.group]);
            assert!(words.into_iter().all(|word| !word.contains('*')), "{rule:?}");
            assert!(!rule.why.is_empty() && !rule.verbs.is_empty() && !rule.resources.is_empty(), "{rule:?}");
        }
    }

    #[test]
    fn the_side_at_cloudflare_cannot_touch_routes_and_reads_secrets_one_by_one() {
        let worker = Tier::CloudflareWorker;

        assert!(rules(worker).iter().all(|rule| rule.group != GATEWAY));
        assert!(may(worker, "get", "", "secrets") && !may(worker, "list", "", "secrets"));
        assert!(!may(worker, "update", OURS, "cloudflaretasks") && !may(worker, "delete", OURS, "cloudflaretasks"));
    }

    #[test]
    fn the_route_side_cannot_touch_deployments_and_the_manager_cannot_read_secrets() {
        assert!(rules(Tier::KubeWorker).iter().all(|rule| rule.group != "apps"));
        assert!(rules(Tier::Manager).iter().all(|rule| !rule.resources.contains(&"secrets")));
        assert!(rules(Tier::Manager).iter().all(|rule| rule.reach == Reach::OperatorNamespace));
    }

    #[test]
    fn one_process_may_do_what_the_three_may_together() {
        let all = rules(Tier::All);

        for rule in Tier::APART.into_iter().flat_map(rules) {
            assert_eq!(all.iter().filter(|other| **other == rule).count(), 1, "{rule:?}");
        }
    }

    #[test]
    fn what_can_be_kept_to_the_operators_namespace_is() {
        for resource in ["configmaps", "leases", "pods", "deployments", "cloudflaretasks"] {
            let mut found = rules(Tier::All).into_iter().filter(|rule| rule.resources.contains(&resource));
            assert!(found.all(|rule| rule.reach == Reach::OperatorNamespace), "{resource}");
        }
    }
}
