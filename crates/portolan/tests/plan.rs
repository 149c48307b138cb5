//! `portolan plan`: what would change, and the exit code that says whether anything would.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod support;

use std::path::Path;

use serde_json::Value;
use support::process::{Process, eventually, http_get, simulator, up};
use support::{Run, example, portolan};

struct Up {
    _process: Process,
    folder: tempfile::TempDir,
}

impl Up {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start(&mut up(&folder.path().join("data")));
        process.line_with("Stop with Ctrl-C");
        Self { _process: process, folder }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        portolan()
            .env("KUBECONFIG", self.folder.path().join("data/kubeconfig"))
            .args(arguments)
            .output()
            .unwrap()
            .into()
    }

    fn settle(&self, count: u64) {
        eventually("everything is Ready", || {
            let status: Value = serde_json::from_str(&self.run(&["status", "-o", "json"]).succeeded()).unwrap();
            (status["summary"]["ready"] == count && status["summary"]["objects"] == count).then_some(())
        });
    }

    fn requests(&self) -> usize {
        let urls = std::fs::read_to_string(self.folder.path().join("data/urls.json")).unwrap();
        let urls: Value = serde_json::from_str(&urls).unwrap();
        let log = http_get(&urls["cloudflare"].as_str().unwrap().replace("/client/v4", "/admin/requests"));
        ["POST", "PUT", "PATCH", "DELETE"].iter().map(|verb| log.matches(&format!("\"{verb}\"")).count()).sum()
    }
}

fn changed_records(folder: &Path) -> String {
    let text = std::fs::read_to_string(format!("{}/3-records.yaml", example("quickstart"))).unwrap();
    let file = folder.join("changed.yaml");
    std::fs::write(&file, text.replace("192.0.2.10", "192.0.2.11")).unwrap();
    file.display().to_string()
}

#[test]
fn a_plan_has_changes_before_the_apply_and_none_after() {
    let up = Up::start();
    let quickstart = example("quickstart");

    let before = up.run(&["plan", "-f", &quickstart]);
    assert_eq!(before.code, Some(2), "{before}");
    assert!(before.stdout.contains("+ create DNS record A www.example.com"), "{before}");
    assert!(before.stdout.contains("Plan: 6 to create, 0 to update, 0 to delete."), "{before}");
    assert_eq!(up.requests(), 0, "planning writes nothing");
    assert!(up.run(&["get", "dnsrecords"]).stdout.is_empty(), "nor in the cluster");

    up.run(&["apply", "-f", &quickstart]).succeeded();
    up.settle(8);

    let after = up.run(&["plan", "-f", &quickstart]);
    assert_eq!((after.code, after.stdout.as_str()), (Some(0), "No changes.\n"), "{after}");
    assert_eq!(up.run(&["plan"]).code, Some(0), "the cluster alone");

    let changed = up.run(&["plan", "-f", &changed_records(up.folder.path())]);
    assert_eq!(changed.code, Some(2), "{changed}");
    assert!(changed.stdout.contains("content: \"192.0.2.10\" → \"192.0.2.11\""), "{changed}");
    assert!(changed.stdout.contains("Plan: 0 to create, 1 to update, 0 to delete."), "{changed}");
}

#[test]
fn after_up_once_a_plan_has_no_changes_though_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let quickstart = example("quickstart");
    Run::from(up(&data).args(["--once", &quickstart]).output().unwrap()).succeeded();
    let plan = |file: &str| -> Run {
        portolan().env("KUBECONFIG", data.join("kubeconfig")).args(["plan", "-f", file]).output().unwrap().into()
    };

    let same = plan(&quickstart);
    let changed = plan(&changed_records(folder.path()));

    assert_eq!((same.code, same.stdout.as_str()), (Some(0), "No changes.\n"), "{same}");
    assert!(same.stderr.contains("what is stored there"), "{same}");
    assert_eq!(changed.code, Some(2), "{changed}");
    assert!(changed.stdout.contains("0 to create, 1 to update, 0 to delete"), "{changed}");
}

#[test]
fn a_plan_as_json_lists_changes_their_sum_and_what_could_not_be_planned() {
    let (_simulator, url) = simulator(&[]);
    let folder = tempfile::tempdir().unwrap();
    let lost = "apiVersion: networking.cloudflare-operator.io/v1alpha2\nkind: DNSRecord\nmetadata: {name: lost, namespace: default}\n\
        spec: {name: lost.example.net, type: A, content: 192.0.2.1, cloudflare: {}}\n";
    std::fs::write(folder.path().join("lost.yaml"), lost).unwrap();
    let mut command = portolan();
    command.current_dir(folder.path()).env("CLOUDFLARE_API_BASE_URL", &url);
    command.args(["plan", "-o", "json", "-f", &example("quickstart"), "-f", "lost.yaml"]);

    let run = Run::from(command.output().unwrap());

    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("the files are planned alone"), "{run}");
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(plan["summary"]["create"], 6, "{run}");
    assert_eq!(plan["changes"].as_array().unwrap().len(), 6);
    assert_eq!(plan["unplanned"][0]["object"], "DNSRecord/default/lost", "{run}");
}

#[test]
fn a_cloudflare_that_does_not_answer_is_an_error_not_an_empty_plan() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = portolan();
    command.current_dir(folder.path()).args([
        "plan",
        "-f",
        &example("quickstart"),
        "--cloudflare",
        "http://127.0.0.1:9/client/v4",
    ]);

    let run = Run::from(command.output().unwrap());

    assert!(run.stdout.contains("Not planned:"), "{run}");
    assert!(run.failed().contains("could not be planned"));
}

#[test]
fn without_a_cluster_and_without_files_there_is_nothing_to_plan() {
    let folder = tempfile::tempdir().unwrap();

    let error = Run::from(portolan().current_dir(folder.path()).arg("plan").output().unwrap()).failed();

    assert!(error.contains("no server to talk to") && error.contains("next:"), "{error}");
}

#[test]
fn an_object_that_would_be_refused_is_refused_by_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "apiVersion: networking.cloudflare-operator.io/v1alpha2\nkind: DNSRecord\nmetadata: {name: bad, namespace: default}\n\
        spec: {name: bad.example.com, type: NOPE, content: x, cloudflare: {}}\n";
    std::fs::write(folder.path().join("bad.yaml"), bad).unwrap();

    let error =
        Run::from(portolan().current_dir(folder.path()).args(["plan", "-f", "bad.yaml"]).output().unwrap()).failed();

    assert!(error.contains("bad.yaml, document 1") && error.contains("NOPE"), "{error}");
}
