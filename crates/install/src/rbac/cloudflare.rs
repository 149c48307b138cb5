//! What the job `cloudflare` may do: its kinds come from their definitions, the rest stands here.

use serde_json::{Value, json};

use super::Reach;
use crate::values::InstalledJob;

/// The lease by which one process leads, under the older operator's name.
const LEASE: &str = "9f193cf8.cloudflare-operator.io";

/// Its rules within a reach, as those of a `Role` or `ClusterRole`.
pub fn written(definitions: &[Value], reach: Reach) -> Vec<Value> {
    match reach {
        Reach::Cluster => of_cluster(definitions),
        Reach::OperatorNamespace => vec![
            rule("", &["configmaps"], &["list", "watch", "create", "patch"]),
            rule("coordination.k8s.io", &["leases"], &["create"]),
            json!({
                "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE],
                "verbs": ["get", "list", "watch", "update"],
            }),
        ],
    }
}

fn of_cluster(definitions: &[Value]) -> Vec<Value> {
    let group = InstalledJob::Cloudflare.group();
    let ours = definitions.iter().map(|one| &one["spec"]).filter(|spec| spec["group"] == group);
    let plurals: Vec<&str> = ours.filter_map(|spec| spec["names"]["plural"].as_str()).collect();
    let statuses: Vec<String> = plurals.iter().map(|plural| format!("{plural}/status")).collect();
    let statuses: Vec<&str> = statuses.iter().map(String::as_str).collect();
    vec![
        rule(group, &plurals, &["get", "list", "watch", "patch"]),
        // A record whose source is gone deletes itself; nothing else of ours is ever deleted in the cluster.
        rule(group, &["dnsrecords"], &["delete"]),
        rule(group, &statuses, &["patch"]),
        // Credentials are read; a finalizer keeps them while something stands that was made with them.
        rule("", &["secrets"], &["get", "list", "watch", "patch"]),
        rule("", &["namespaces"], &["get"]),
        rule("", &["services", "nodes"], &["get", "list", "watch"]),
        rule("networking.k8s.io", &["ingresses"], &["get", "list", "watch"]),
        rule("gateway.networking.k8s.io", &["httproutes", "gateways"], &["get", "list", "watch"]),
        rule("gateway.networking.k8s.io", &["referencegrants"], &["list"]),
        rule("events.k8s.io", &["events"], &["create"]),
    ]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_11_records_may_delete_themselves_and_nothing_else_may_be_deleted() {
        let definitions: Vec<Value> = ["dnsrecords", "virtualnetworks"]
            .iter()
            .map(|plural| json!({"spec": {"group": InstalledJob::Cloudflare.group(), "names": {"plural": plural}}}))
            .collect();
        let rules = [written(&definitions, Reach::Cluster), written(&definitions, Reach::OperatorNamespace)].concat();
        let says = |rule: &&Value| rule["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("delete")));

        let deleting: Vec<&Value> = rules.iter().filter(says).map(|rule| &rule["resources"]).collect();

        assert_eq!(deleting, [&json!(["dnsrecords"])]);
    }
}
