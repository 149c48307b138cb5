//! `portolan plan`: what would change, and the exit code that says whether anything would.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;
use std::process::Command;

use crate::support::process::{Process, eventually, http_get, simulator, up};
use crate::support::{Run, example, portolan};
use serde_json::Value;

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

    /// One that was started with files.
    fn on(files: &[&Path]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start(up(&folder.path().join("data")).args(files));
        process.line_with("Stop with Ctrl-C");
        Self { _process: process, folder }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    fn kubectl(&self, arguments: &[&str]) -> Run {
        let kubeconfig = self.folder.path().join("data/kubeconfig");
        Command::new("kubectl").arg("--kubeconfig").arg(kubeconfig).args(arguments).output().unwrap().into()
    }

    fn annotation(&self, name: &str) -> Value {
        let route = self.run(&["get", "httproute", "admin-panel", "-o", "json"]).succeeded();
        let route: Value = serde_json::from_str(&route).unwrap();
        route["metadata"]["annotations"][name].clone()
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
    assert_eq!((after.code, after.stdout.lines().nth(1)), (Some(0), Some("No changes.")), "{after}");
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

    assert_eq!((same.code, same.stdout.lines().nth(1)), (Some(0), Some("No changes.")), "{same}");
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

    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("the files are planned alone"), "{run}");
    assert!(run.stderr.contains("1 object could not be planned: DependencyError"), "{run}");
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

    let first = "Planning the files alone with the Cloudflare API at http://127.0.0.1:9/client/v4\nNot planned:\n";
    assert!(run.stdout.starts_with(first) && !run.stdout.contains("No changes."), "{run}");
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

/// The example of a protected name, and the same without what protects it.
fn protected() -> (String, String) {
    let route = std::fs::read_to_string(format!("{}/emails/route.yaml", example("zero-trust"))).unwrap();
    let protects = |line: &&str| ["accessApp", "allowEmails", "sessionDuration"].iter().any(|key| line.contains(key));
    let open: Vec<&str> = route.lines().filter(|line| !protects(line)).collect();
    assert_eq!(open.len() + 3, route.lines().count());
    (route.clone(), open.join("\n") + "\n")
}

fn tenant() -> String {
    format!("{}/tenant.yaml", example("zero-trust"))
}

/// A plan tells loudly that the file opens the name.
fn assert_tells(up: &Up, open: &str, way: &str) {
    let plan = up.run(&["plan", "-f", open]);
    assert_eq!(plan.code, Some(2), "{way}: {plan}");
    let second = plan.stdout.lines().nth(1).unwrap_or_default();
    assert!(second.starts_with("! admin.example.com becomes PUBLIC"), "{way}: {plan}");
    assert!(plan.stdout.contains("- delete Access application admin.example.com"), "{way}: {plan}");
    let json = up.run(&["plan", "-f", open, "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["becomingPublic"], serde_json::json!(["admin.example.com"]), "{way}");
}

#[test]
fn ux_c1_a_file_without_its_access_lines_is_told_to_make_the_name_public_after_up() {
    let (route, open) = protected();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("route.yaml");
    std::fs::write(&file, &route).unwrap();
    let up = Up::on(&[Path::new(&tenant()), &file]);
    up.settle(2);

    let open = up.write("open.yaml", &open);

    assert_tells(&up, &open, "up");
    let same = up.run(&["plan", "-f", &file.display().to_string()]);
    assert_eq!((same.code, same.stdout.lines().nth(1)), (Some(0), Some("No changes.")), "{same}");
    assert!(same.stdout.starts_with("Planning https://127.0.0.1:"), "{same}");
    assert!(same.stdout.contains("with the simulated Cloudflare API at http://127.0.0.1:"), "{same}");
}

#[test]
fn ux_c1_kubectl_itself_takes_away_what_the_plan_said_in_both_of_its_ways() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return eprintln!("skipped: there is no kubectl here");
    }
    let (route, open) = protected();
    for flags in [&[][..], &["--server-side"]] {
        let up = Up::start();
        let (route, open) = (up.write("route.yaml", &route), up.write("open.yaml", &open));
        let apply = |file: &str| up.kubectl(&[&["apply", "-f", file], flags].concat()).succeeded();
        apply(&tenant());
        apply(&route);
        up.settle(2);

        assert_tells(&up, &open, &format!("kubectl apply {flags:?}"));
        apply(&open);
        assert_eq!(up.annotation("cfzt.cloudflare.com/accessApp"), Value::Null);
        eventually("it is as planned", || (up.run(&["plan", "-f", &open]).code == Some(0)).then_some(()));
    }
}

#[test]
fn ux_m16_what_up_applied_can_be_applied_without_conflict_and_without_losing_removals() {
    let (route, open) = protected();
    let up = Up::start();
    let (route, open) = (up.write("route.yaml", &route), up.write("open.yaml", &open));
    // As an earlier `portolan up` did it.
    for file in [&tenant(), &route] {
        up.run(&["apply", "-f", file, "--field-manager", "portolan-up"]).succeeded();
    }
    up.settle(2);

    assert_tells(&up, &open, "portolan-up");
    up.run(&["apply", "-f", &tenant(), "-f", &route]).succeeded();
    up.run(&["apply", "-f", &open]).succeeded();

    assert_eq!(up.annotation("cfzt.cloudflare.com/accessApp"), Value::Null);
    let route = up.run(&["get", "httproute", "admin-panel", "-o", "json", "--show-managed-fields"]).succeeded();
    assert!(!route.contains("portolan-up"), "{route}");
}

#[test]
fn ux_m13_a_route_that_cannot_be_planned_is_an_error_with_its_reason() {
    let (route, _) = protected();
    let up = Up::start();
    let broken = up.write("broken.yaml", &route.replace("sessionDuration: 8h", "sessionDuration: soon"));

    let plan = up.run(&["plan", "-f", &tenant(), "-f", &broken]);

    assert_eq!(plan.code, Some(1), "{plan}");
    assert_eq!(plan.stdout.lines().nth(1), Some("Not planned:"), "{plan}");
    assert!(plan.stderr.contains("1 object could not be planned: InvalidAnnotation"), "{plan}");
}
