//! `portolan install`: what it prints, what it applies to the embedded API server, and what wrong values are told.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use crate::support::{Run, Server, portolan};
use serde_json::Value;

fn install(arguments: &[&str]) -> Run {
    portolan().arg("install").args(arguments).output().unwrap().into()
}

fn objects(text: &str) -> Vec<Value> {
    let documents = text.split("---\n").filter(|document| !document.trim().is_empty());
    documents.map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn the_namespace_comes_first_and_can_be_left_out() {
    let all = objects(&install(&["--namespace", "sea"]).succeeded());
    let rest = objects(&install(&["--namespace", "sea", "--no-namespace"]).succeeded());

    assert_eq!((&all[0]["kind"], &all[0]["metadata"]["name"]), (&"Namespace".into(), &"sea".into()));
    assert_eq!(all[1..], rest[..]);
    assert!(rest.iter().all(|object| object["metadata"]["namespace"] != "cloudflare-zero-trust"));
}

#[test]
fn only_the_kinds_of_the_jobs_that_run_are_installed() {
    let zerotrust = objects(&install(&[]).succeeded());
    let both = objects(&install(&["--set", "controllers={zerotrust,cloudflare}"]).succeeded());
    let definitions =
        |objects: &[Value]| kinds(objects).iter().filter(|kind| **kind == "CustomResourceDefinition").count();

    assert_eq!(definitions(&zerotrust), 4);
    assert!(definitions(&both) > 4);
    assert!(definitions(&objects(&install(&["--set", "crds.install=false"]).succeeded())) == 0);
}

#[test]
fn applying_it_again_changes_nothing() {
    let server = Server::start();
    let arguments = ["install", "--apply", "--set", "operator.mode=roles", "--set", "exampleTemplates.install=true"];

    let first = server.run(&arguments).succeeded();
    assert!(first.contains("deployment.apps/cloudflare-zero-trust-operator created"), "{first}");
    assert!(first.contains("cloudflarezerotrusttemplate.cfzt.cloudflare.com/example-access created"), "{first}");
    assert!(first.contains("does not know HTTPRoute: install the Gateway API"), "{first}");

    let second = server.run(&arguments).succeeded();
    let told: Vec<&str> = second.lines().take_while(|line| !line.is_empty()).collect();
    assert!(told.len() > 20 && told.iter().all(|line| line.ends_with(" unchanged")), "{second}");
}

#[test]
fn waiting_ends_with_how_many_pods_are_ready() {
    let server = Server::start();

    let waited = server.run(&["install", "--apply", "--wait", "--timeout", "1s"]).failed();

    assert!(
        waited.contains("0 of 1 pods are ready of Deployment cloudflare-zero-trust/cloudflare-zero-trust-operator"),
        "{waited}"
    );
    assert!(waited.contains("next: kubectl -n cloudflare-zero-trust describe"), "{waited}");
}

#[test]
fn wrong_values_are_told_with_their_place_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("good.yaml"), folder.path().join("bad.yaml"));
    std::fs::write(&good, "replicaCount: 2\n").unwrap();
    std::fs::write(&bad, "replicaCount: [\n").unwrap();
    let (good, bad) = (good.display().to_string(), bad.display().to_string());

    let unknown = install(&["--set", "replicas=2"]).failed();
    assert!(unknown.contains("replicas: there is no such value"), "{unknown}");
    assert!(unknown.contains("next: correct the value"), "{unknown}");
    let broken = install(&["--values", &good, "--values", &bad]).failed();
    assert!(broken.contains("bad.yaml: values: this is no YAML") && !broken.contains("good.yaml"), "{broken}");
    let missing = install(&["--values", "nowhere.yaml"]).failed();
    assert!(missing.contains("nowhere.yaml cannot be read") && missing.contains("--values"), "{missing}");
    let named = install(&["--release", "My_Release"]).failed();
    assert!(named.contains("release: its name is of small letters"), "{named}");
}

#[test]
fn a_token_that_is_given_is_printed_in_its_secret_alone() {
    let printed = install(&[
        "--set",
        "tenant.create=true,tenant.accountId=0123456789abcdef0123456789abcdef",
        "--set",
        "tenant.tunnelId=11111111-2222-3333-4444-555555555555,tenant.apiToken=canary",
    ])
    .succeeded();

    assert_eq!(printed.matches("Y2FuYXJ5").count(), 1);
    assert!(!printed.contains("canary"));
}
