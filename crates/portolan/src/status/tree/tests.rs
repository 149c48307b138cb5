use serde_json::{Value, json};

use super::*;

fn seen(kind: &str, name: &str, spec: Value, status: Value) -> HealthView {
    let namespace = (kind == "DNSRecord").then_some("apps");
    let mut object = json!({"metadata": {"name": name, "generation": 1}, "spec": spec, "status": status});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    HealthView { kind: kind.to_owned(), object }
}

fn ready() -> Value {
    json!([{"type": "Ready", "status": "True", "reason": "Synced", "message": "", "observedGeneration": 1}])
}

fn failed(message: &str) -> Value {
    json!([{"type": "Ready", "status": "False", "reason": "ConflictError", "message": message, "observedGeneration": 1}])
}

fn world() -> Vec<HealthView> {
    vec![
        seen(
            "CloudflareCredentials",
            "main",
            json!({"accountId": "acc", "isDefault": true}),
            json!({"conditions": ready()}),
        ),
        seen(
            "CloudflareDomain",
            "example",
            json!({"domain": "example.com"}),
            json!({"zoneId": "z1", "conditions": ready()}),
        ),
        seen(
            "CloudflareDomain",
            "sub",
            json!({"domain": "sub.example.com"}),
            json!({"zoneId": "z2", "conditions": ready()}),
        ),
        seen("VirtualNetwork", "corp", json!({}), json!({"virtualNetworkId": "v1", "conditions": ready()})),
        seen(
            "NetworkRoute",
            "ten",
            json!({"network": "10.0.0.0/8", "tunnelRef": {"name": "home"}, "virtualNetworkRef": {"name": "corp"}}),
            json!({}),
        ),
        seen(
            "DNSRecord",
            "www",
            json!({"name": "www.example.com", "type": "A"}),
            json!({"state": "Active", "conditions": ready()}),
        ),
        seen(
            "DNSRecord",
            "deep",
            json!({"name": "a.sub.Example.com.", "type": "A"}),
            json!({"conditions": failed("taken")}),
        ),
        seen("DNSRecord", "lost", json!({"name": "www.example.org", "type": "A"}), json!({})),
    ]
}

#[test]
fn records_hang_on_the_longest_zone_that_holds_their_name() {
    let tree = build("https://here", &world(), true);

    let domains = &tree.credentials[0].branch.domains;
    assert_eq!((domains[0].records.total, domains[1].records.total), (1, 1));
    assert_eq!(domains[1].records.unwell[0].state.why.as_deref(), Some("ConflictError: taken"));
    assert_eq!(tree.credentials[0].branch.records.total, 1, "a record without a zone hangs on the account");
}

#[test]
fn routes_hang_on_their_network() {
    let tree = build("https://here", &world(), true);

    assert_eq!(tree.credentials[0].branch.networks[0].routes[0].about, "10.0.0.0/8 through home");
}

#[test]
fn the_summary_counts_every_object_once() {
    let summary = build("https://here", &world(), true).summary;

    assert_eq!(summary, Summary { objects: 8, ready: 5, pending: 2, deleting: 0, not_ready: 1 });
}

#[test]
fn objects_of_unknown_credentials_are_unassigned() {
    let stray = seen("VirtualNetwork", "corp", json!({"cloudflare": {"credentialsRef": {"name": "gone"}}}), json!({}));

    let tree = build("https://here", &[stray], true);

    assert_eq!(tree.unassigned.networks.len(), 1);
}

#[test]
fn held_deletions_come_with_the_command_that_releases_them() {
    let message = "3 deletions are held: a, b, c. To let them go, set the annotation portolan.dev/release-deletions: \"ab12\" here";
    let conditions =
        json!([{"type": "Stalled", "status": "True", "reason": "DeletionBudgetExceeded", "message": message}]);
    let domain =
        seen("CloudflareDomain", "example", json!({"domain": "example.com"}), json!({"conditions": conditions}));

    let held = held(&domain).unwrap();

    assert_eq!(
        held.release,
        "kubectl annotate cloudflaredomain example portolan.dev/release-deletions=ab12 --overwrite"
    );
}

#[test]
fn a_tenant_shows_its_held_deletions_in_its_namespace() {
    let message = "12 deletions are held: … set the annotation portolan.dev/release-deletions: \"cd34\"";
    let conditions =
        json!([{"type": "Stalled", "status": "True", "reason": "DeletionBudgetExceeded", "message": message}]);
    let mut tenant = seen("CloudflareZeroTrustTenant", "prod", json!({}), json!({"conditions": conditions}));
    tenant.object["metadata"]["namespace"] = json!("shop");

    assert_eq!(
        held(&tenant).unwrap().release,
        "kubectl annotate cloudflarezerotrusttenant prod -n shop portolan.dev/release-deletions=cd34 --overwrite"
    );
}
