//! `portolan up`: files in, published names out, in one process.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;

use crate::support::process::{Process, eventually, http_get, up};
use crate::support::{Run, example, portolan};
use serde_json::Value;

fn once(data: &Path, path: &str, more: &[&str]) -> Run {
    up(data).args(["--once", path]).args(more).output().unwrap().into()
}

fn urls(data: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data.join("urls.json")).unwrap()).unwrap()
}

fn record(name: &str, content: &str) -> String {
    format!(
        "apiVersion: networking.cloudflare-operator.io/v1alpha2\nkind: DNSRecord\nmetadata:\n  name: {name}\n  namespace: default\n\
         spec:\n  name: {name}.example.com\n  type: A\n  content: {content}\n  cloudflare: {{}}\n"
    )
}

/// Credentials and a zone, in one file.
fn account(folder: &Path) {
    for file in ["1-credentials.yaml", "2-domain.yaml"] {
        std::fs::copy(format!("{}/{file}", example("quickstart")), folder.join(file)).unwrap();
    }
}

#[test]
fn the_quickstart_is_published_and_the_summary_says_what_and_at_which_cost() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");

    let said = once(&data, &example("quickstart"), &[]).succeeded();

    let www = said.lines().find(|line| line.contains("www.example.com") && line.trim().starts_with("A ")).unwrap();
    assert!(www.contains("→ 192.0.2.10") && www.contains("(proxied)"), "{said}");
    assert!(said.contains("8 of 8 objects Ready"), "{said}");
    assert!(said.contains("API calls"), "{said}");
    assert!(said.contains("portolan plan") && said.contains("kubectl --kubeconfig"), "{said}");
    assert!(!data.join("urls.json").exists(), "nothing answers there any more");
}

#[test]
fn a_second_start_on_the_same_data_changes_nothing_at_cloudflare() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    once(&data, &example("quickstart"), &[]).succeeded();

    let said = once(&data, &example("quickstart"), &[]).succeeded();

    assert!(said.contains("8 of 8 objects Ready"), "{said}");
    for verb in ["POST", "PUT", "PATCH", "DELETE"] {
        assert!(!said.contains(verb), "{said}");
    }
}

#[test]
fn what_does_not_become_ready_is_named_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    account(folder.path());
    std::fs::write(
        folder.path().join("lost.yaml"),
        record("lost", "192.0.2.1").replace("lost.example.com", "lost.example.net"),
    )
    .unwrap();

    let error = once(&folder.path().join("data"), &folder.path().display().to_string(), &["--timeout", "3s"]).failed();

    assert!(error.contains("DNSRecord default/lost"), "{error}");
    assert!(error.contains("example.net"), "{error}");
    assert!(error.contains("next:"), "{error}");
}

#[test]
fn an_object_that_its_definition_refuses_fails_the_run_and_the_rest_is_published() {
    let folder = tempfile::tempdir().unwrap();
    account(folder.path());
    std::fs::write(folder.path().join("good.yaml"), record("good", "192.0.2.1")).unwrap();
    std::fs::write(folder.path().join("bad.yaml"), record("bad", "192.0.2.1").replace("type: A", "type: NOPE"))
        .unwrap();

    let run = once(&folder.path().join("data"), &folder.path().display().to_string(), &[]);

    assert!(run.stdout.contains("good.example.com"), "{run}");
    let error = run.failed();
    assert!(error.contains("bad.yaml, document 1") && error.contains("NOPE"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_stops_everything_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::write(folder.path().join("bad.yaml"), "spec: [unclosed").unwrap();

    let error = once(&data, &folder.path().display().to_string(), &[]).failed();

    assert!(error.contains("bad.yaml, document 1") && error.contains("not valid YAML"), "{error}");
    assert!(!data.exists(), "nothing was started");
}

#[test]
fn an_address_that_is_taken_is_named_with_the_flag_that_chooses_another() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let mut command = portolan();
    command.args(["up", "--once", "--listen", "127.0.0.1:0", "--sim-listen", &address, "--data-dir"]);

    let error = Run::from(command.arg(folder.path().join("data")).output().unwrap()).failed();

    assert!(error.contains(&address) && error.contains("--sim-listen"), "{error}");
}

#[test]
fn files_are_applied_again_when_they_change_and_urls_lead_to_both_apis() {
    let folder = tempfile::tempdir().unwrap();
    let (data, files) = (folder.path().join("data"), folder.path().join("files"));
    std::fs::create_dir(&files).unwrap();
    account(&files);
    std::fs::write(files.join("web.yaml"), record("web", "192.0.2.1")).unwrap();
    let mut process = Process::start(up(&data).arg(&files));
    process.line_with("objects Ready");
    let state = || http_get(&urls(&data)["cloudflare"].as_str().unwrap().replace("/client/v4", "/admin/state"));
    assert!(state().contains("192.0.2.1\""), "{}", state());

    std::fs::write(files.join("web.yaml"), record("web", "192.0.2.77")).unwrap();

    process.line_with("dnsrecord.networking.cloudflare-operator.io/web configured");
    eventually("the new address is at Cloudflare", || state().contains("192.0.2.77").then_some(()));
    assert_eq!(process.terminate(), Some(0));
}

#[test]
fn a_mistake_in_a_changed_file_is_told_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (data, files) = (folder.path().join("data"), folder.path().join("files"));
    std::fs::create_dir(&files).unwrap();
    account(&files);
    std::fs::write(files.join("web.yaml"), record("web", "192.0.2.1")).unwrap();
    let log = folder.path().join("log");
    let mut process = Process::start(up(&data).arg(&files).stderr(std::fs::File::create(&log).unwrap()));
    process.line_with("objects Ready");

    std::fs::write(files.join("web.yaml"), "spec: [unclosed").unwrap();
    eventually("the mistake is told", || {
        std::fs::read_to_string(&log).unwrap().contains("not valid YAML").then_some(())
    });
    std::fs::write(files.join("web.yaml"), record("web", "192.0.2.2")).unwrap();

    process.line_with("dnsrecord.networking.cloudflare-operator.io/web configured");
}

#[test]
fn credentials_that_come_later_find_their_account_in_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut process = Process::start(&mut up(&data));
    process.line_with("Stop with Ctrl-C");
    let kubeconfig = data.join("kubeconfig");
    let run = |arguments: &[&str]| -> Run {
        portolan().env("KUBECONFIG", &kubeconfig).args(arguments).output().unwrap().into()
    };

    run(&["apply", "-f", &example("quickstart")]).succeeded();

    eventually("everything is Ready", || {
        let status: Value = serde_json::from_str(&run(&["status", "-o", "json"]).succeeded()).unwrap();
        (status["summary"]["ready"] == 8).then_some(())
    });
}

#[test]
fn everything_is_applied_before_the_controllers_begin_so_that_they_write_it_in_few_calls() {
    let folder = tempfile::tempdir().unwrap();
    let (data, files) = (folder.path().join("data"), folder.path().join("files"));
    std::fs::create_dir(&files).unwrap();
    account(&files);
    let records = (0..1000).map(|n| record(&format!("r{n}"), &format!("10.0.{}.{}", n >> 8, n & 255)));
    std::fs::write(files.join("records.yaml"), records.collect::<Vec<_>>().join("---\n")).unwrap();

    let mut process = Process::start(up(&data).arg(&files));
    process.line_with("1002 of 1002 objects Ready");

    let get = ["get", "dnsrecords", "-n", "default", "-o", "json"];
    let said = Run::from(portolan().env("KUBECONFIG", data.join("kubeconfig")).args(get).output().unwrap()).succeeded();
    let all: Value = serde_json::from_str(&said).unwrap();
    let times = |pointer: &str| -> Vec<String> {
        let found = all["items"].as_array().unwrap().iter().filter_map(|one| one.pointer(pointer)?.as_str());
        found.map(str::to_owned).collect()
    };
    let (applied, seen) = (times("/metadata/creationTimestamp"), times("/status/conditions/0/lastTransitionTime"));
    assert_eq!((applied.len(), seen.len()), (1000, 1000));
    assert!(applied.iter().max() <= seen.iter().min(), "{:?} {:?}", applied.iter().max(), seen.iter().min());
}
