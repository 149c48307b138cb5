use serde_json::{Value, json};

use super::*;
use crate::testing::JOBS;

fn release() -> Release {
    Release { name: "edge".to_owned(), namespace: "cloudflare-zero-trust".to_owned(), version: "1.2.3".to_owned() }
}

fn made(yaml: &str) -> Vec<Value> {
    objects(&Values::parse(JOBS, &[yaml], &[]).unwrap(), &release(), JOBS).unwrap()
}

fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<&Value> = objects.iter().filter(|object| object["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind}");
    found[0]
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn the_default_is_one_process_with_all_rights_and_no_dummy_tenant() {
    let objects = made("");

    let wanted = [
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
    ];
    assert_eq!(kinds(&objects), wanted);
    let deployment = one(&objects, "Deployment");
    assert_eq!(deployment["metadata"]["name"], "cloudflare-zero-trust-operator");
    assert_eq!(variable(deployment, "ROLE")["value"], "all");
    assert_eq!(one(&objects, "CustomResourceDefinition")["metadata"]["annotations"][KEEP.0], KEEP.1);
}

fn variable<'a>(deployment: &'a Value, name: &str) -> &'a Value {
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let found = container["env"].as_array().unwrap().iter().find(|variable| variable["name"] == name);
    found.unwrap_or(&Value::Null)
}

#[test]
fn roles_have_an_account_each_and_the_manager_names_them() {
    let objects = made("operator: {mode: roles}\nserviceAccount: {name: sailor}");

    let accounts = objects.iter().filter(|object| object["kind"] == "ServiceAccount");
    let names: Vec<&str> = accounts.map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sailor", "sailor-kube-worker", "sailor-cloudflare-worker"]);
    let deployment = one(&objects, "Deployment");
    assert_eq!(variable(deployment, "ROLE")["value"], "manager");
    assert_eq!(variable(deployment, "KUBE_WORKER_SERVICE_ACCOUNT")["value"], "sailor-kube-worker");
    assert_eq!(kinds(&objects).iter().filter(|kind| **kind == "PodDisruptionBudget").count(), 3);
}

#[test]
fn pods_are_found_by_three_labels_so_that_no_selector_overlaps_a_workers() {
    let objects = made("podLabels: {team: sea}");
    let deployment = one(&objects, "Deployment");

    let selector = &deployment["spec"]["selector"]["matchLabels"];
    let wanted = json!({NAME_LABEL: NAME, INSTANCE_LABEL: "edge", COMPONENT_LABEL: "operator"});
    assert_eq!(selector, &wanted);
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["team"], "sea");
}

#[test]
fn pods_are_hardened_and_probed() {
    let objects = made("");
    let pod = &one(&objects, "Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];

    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["runAsUser"], 1000);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/tmp");
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz"), ("startupProbe", "/livez")] {
        assert_eq!(container[probe]["httpGet"]["path"], path);
    }
}

#[test]
fn an_image_is_named_by_digest_tag_or_version() {
    let image = |yaml: &str| {
        let objects = made(yaml);
        let pod = &one(&objects, "Deployment")["spec"]["template"]["spec"];
        pod["containers"][0]["image"].as_str().unwrap().to_owned()
    };
    let digest = format!("sha256:{}", "a".repeat(64));

    assert_eq!(image(""), "portolan-dev/portolan:1.2.3");
    assert_eq!(image("image: {registry: '', repository: mine, tag: v9}"), "mine:v9");
    assert_eq!(image(&format!("image: {{tag: v9, digest: '{digest}'}}")), format!("portolan-dev/portolan@{digest}"));
}

#[test]
fn the_job_cloudflare_brings_its_definitions_and_rights() {
    let objects = made("controllers: [cloudflare]");

    assert_eq!(
        one(&objects, "CustomResourceDefinition")["metadata"]["name"],
        "dnsrecords.networking.cloudflare-operator.io"
    );
    let rules = one(&objects, "ClusterRole")["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["resources"] == json!(["dnsrecords/status"])));
    assert!(!rules.iter().any(|rule| rule["apiGroups"] == json!(["cfzt.cloudflare.com"])));
}

#[test]
fn a_tenants_token_is_in_its_secret_alone() {
    let objects = made(
        "tenant: {create: true, namespace: apps, accountId: 0123456789abcdef0123456789abcdef, \
         tunnelId: 11111111-2222-3333-4444-555555555555, apiToken: canary}",
    );

    assert_eq!(one(&objects, "Secret")["data"], json!({"token": "Y2FuYXJ5"}));
    let tenant = one(&objects, "CloudflareZeroTrustTenant");
    assert_eq!(tenant["metadata"]["namespace"], "apps");
    assert_eq!(tenant["spec"]["credentialRef"], json!({"name": "default-cloudflare-api-token", "key": "token"}));
    assert!(tenant["spec"].get("zoneId").is_none() && !tenant.to_string().contains("Y2FuYXJ5"));
}

#[test]
fn without_metrics_nobody_may_reach_the_pods() {
    let objects = made("metrics: {enabled: false}\nnetworkPolicy: {egressPorts: []}");
    let policy = &one(&objects, "NetworkPolicy")["spec"];

    assert_eq!(policy["ingress"], json!([]));
    assert_eq!(policy["egress"].as_array().unwrap().len(), 1, "no rule without ports, which would allow all");
    assert!(!kinds(&objects).contains(&"Service"));
    assert_eq!(variable(one(&objects, "Deployment"), "METRICS_ADDR")["value"], "0");
}

#[test]
fn a_release_or_namespace_that_no_cluster_takes_is_refused() {
    for (name, namespace) in [("Edge", "a"), ("edge", "A_b"), ("", "a"), ("edge", "-a")] {
        let release = Release { name: name.to_owned(), namespace: namespace.to_owned(), ..release() };
        assert!(objects(&Values::default(), &release, JOBS).is_err(), "{name} {namespace}");
    }
}
