//! `portolan run` against `portolan apiserver` and `portolan sim`, each a process of its own.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::process::{Process, eventually, http_get, simulator};
use crate::support::zerotrust::Life;
use crate::support::{Run, Server, example, portolan};
use serde_json::Value;

/// An API server with the definitions, a simulator, and what is needed to run against them.
struct Cluster {
    server: Server,
    _simulator: Process,
    cloudflare: String,
}

impl Cluster {
    fn start(simulated: &[&str]) -> Self {
        let (simulator, cloudflare) = simulator(simulated);
        Self { server: Server::start(), _simulator: simulator, cloudflare }
    }

    fn with_definitions() -> Self {
        Self::with_definitions_and(&[])
    }

    fn with_definitions_and(simulated: &[&str]) -> Self {
        let cluster = Self::start(simulated);
        let crds = Run::from(portolan().arg("crds").output().unwrap()).succeeded();
        cluster.server.run_with_input(&["apply", "-f", "-"], &crds).succeeded();
        cluster
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.server.command(&["run", "--metrics", "127.0.0.1:0", "--health", "0"]);
        command.args(arguments).env("CLOUDFLARE_API_BASE_URL", &self.cloudflare).env("LOG_LEVEL", "warn");
        command
    }

    fn apply_quickstart(&self) {
        self.server.run(&["apply", "-f", &example("quickstart")]).succeeded();
    }

    /// The definition of `HTTPRoute`.
    fn apply_routes(&self) {
        let gateway = format!("{}/data/httproutes.yaml", env!("CARGO_MANIFEST_DIR"));
        self.server.run(&["apply", "-f", &gateway]).succeeded();
    }

    /// The namespace that an installation brings.
    fn make_namespace(&self) {
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: cloudflare-zero-trust}\n";
        self.server.run_with_input(&["apply", "-f", "-"], namespace).succeeded();
    }

    /// A process in a role, whose log is kept in a file and whose health can be asked for.
    fn role(&self, role: &str, log: &Path) -> (Process, String) {
        let health = format!("127.0.0.1:{}", free_port());
        let mut command = self.server.command(&["run"]);
        command
            .env("ROLE", role)
            .env("METRICS_ADDR", "0")
            .env("HEALTH_ADDR", &health)
            .env("CLOUDFLARE_API_BASE", &self.cloudflare)
            .env("WATCH_NAMESPACES", "")
            .env("POLL_INTERVAL_SECONDS", "")
            .stderr(std::fs::File::create(log).unwrap());
        (Process::start(&mut command), format!("http://{health}/readyz"))
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.server.run(&["status", "-o", "json"]).succeeded()).unwrap()
    }

    fn settle(&self) {
        self.settle_with(8);
    }

    fn settle_with(&self, ready: usize) {
        eventually("everything is Ready", || (self.status()["summary"]["ready"] == ready).then_some(()));
    }

    fn writes(&self) -> usize {
        let log = http_get(&self.cloudflare.replace("/client/v4", "/admin/requests"));
        ["POST", "PUT", "PATCH", "DELETE"].iter().map(|verb| log.matches(&format!("\"{verb}\"")).count()).sum()
    }
}

#[test]
fn a_cluster_without_the_definitions_is_refused_with_the_command_that_installs_them() {
    let cluster = Cluster::start(&[]);

    let error = Run::from(cluster.command(&[]).output().unwrap()).failed();

    assert!(error.contains("DNSRecord"), "{error}");
    assert!(error.contains("portolan crds | kubectl apply"), "{error}");
}

#[test]
fn definitions_are_printed_as_yaml_that_applies_without_a_warning() {
    let server = Server::start();
    let printed = Run::from(portolan().arg("crds").output().unwrap());
    assert_eq!(printed.stderr, "", "nothing else is said");

    let applied = server.run_with_input(&["apply", "-f", "-"], &printed.succeeded());

    assert_eq!(applied.stderr, "", "{applied}");
    assert_eq!(applied.succeeded().lines().filter(|line| line.ends_with(" created")).count(), 13);
}

#[test]
fn objects_are_published_and_a_stop_ends_the_process_well() {
    let cluster = Cluster::with_definitions();
    let mut run = Process::start(&mut cluster.command(&[]));
    cluster.apply_quickstart();

    cluster.settle();

    let tree = cluster.server.run(&["status"]).succeeded();
    assert!(tree.contains("credentials main (account 0123456789abcdef0123456789abcdef, default): Ready"), "{tree}");
    assert!(tree.contains("5 records: 5 Active"), "{tree}");
    assert!(tree.contains("network office: Ready"), "{tree}");
    assert_eq!(run.terminate(), Some(0));
}

#[test]
fn deleted_objects_are_taken_off_the_network_before_they_go() {
    let cluster = Cluster::with_definitions();
    let _run = Process::start(&mut cluster.command(&[]));
    cluster.apply_quickstart();
    cluster.settle();

    cluster.server.run(&["delete", "dnsrecord", "www", "docs"]).succeeded();

    let state = http_get(&cluster.cloudflare.replace("/client/v4", "/admin/state"));
    assert!(!state.contains("www.example.com\",\"proxiable"), "{state}");
    assert!(!state.contains("192.0.2.10"), "{state}");
}

#[test]
fn flags_of_the_older_operator_are_accepted() {
    let cluster = Cluster::with_definitions();
    let older = [
        "--leader-elect=false",
        "--metrics-secure=false",
        "--zap-log-level=debug",
        "--overwrite-unmanaged-dns",
        "--enable-http2=false",
        "--cluster-resource-namespace=cloudflare-operator-system",
    ];
    let mut command =
        cluster.server.command(&["run", "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0"]);
    command.args(older).env("CLOUDFLARE_API_BASE_URL", &cluster.cloudflare).env("LOG_LEVEL", "error");
    let mut run = Process::start(&mut command);
    cluster.apply_quickstart();

    cluster.settle();

    assert_eq!(run.terminate(), Some(0));
}

#[test]
fn one_of_two_processes_leads_and_a_stop_hands_over_at_once() {
    let cluster = Cluster::with_definitions();
    cluster.apply_quickstart();
    let mut first = Process::start(&mut cluster.command(&["--leader-elect"]));
    cluster.settle();
    let _second = Process::start(&mut cluster.command(&["--leader-elect"]));
    let holder = || {
        let lease = cluster.server.run(&[
            "get",
            "lease",
            "-n",
            "cloudflare-operator-system",
            "9f193cf8.cloudflare-operator.io",
            "-o",
            "json",
        ]);
        let lease: Value = serde_json::from_str(&lease.succeeded()).unwrap();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    };
    let before = holder();
    assert!(!before.is_empty());

    assert_eq!(first.terminate(), Some(0));

    eventually("the other process leads", || Some(holder()).filter(|now| !now.is_empty() && *now != before));
}

#[test]
fn a_dry_run_prints_plans_and_writes_nothing_anywhere() {
    let cluster = Cluster::with_definitions();
    let mut first = Process::start(&mut cluster.command(&[]));
    cluster.apply_quickstart();
    cluster.settle();
    assert_eq!(first.terminate(), Some(0));
    let changed = std::fs::read_to_string(format!("{}/3-records.yaml", example("quickstart"))).unwrap();
    cluster.server.run_with_input(&["apply", "-f", "-"], &changed.replace("192.0.2.10", "192.0.2.99")).succeeded();
    let (writes, objects) = (cluster.writes(), cluster.server.run(&["get", "dnsrecords", "-o", "json"]).succeeded());

    let mut dry = Process::start(&mut cluster.command(&["--dry-run"]));

    dry.line_with("DNSRecord/default/www");
    let line = dry.line_with("192.0.2.99");
    assert!(line.contains("\"192.0.2.10\" → \"192.0.2.99\""), "{line}");
    assert_eq!(dry.terminate(), Some(0));
    assert_eq!(cluster.writes(), writes);
    assert_eq!(cluster.server.run(&["get", "dnsrecords", "-o", "json"]).succeeded(), objects);
}

#[test]
fn status_says_where_the_kinds_are_not_installed() {
    let said = Server::start().run(&["status"]).succeeded();

    assert!(said.contains("not installed") && said.contains("portolan crds"), "{said}");
}

#[test]
fn spans_of_passes_are_sent_to_a_collector() {
    use std::io::{Read, Write};
    let cluster = Cluster::with_definitions();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut buffer = [0; 4096];
        while !text.contains("\"resourceSpans\"") || !text.contains("reconcile") {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the collector got only {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        text
    });
    let mut run = Process::start(&mut cluster.command(&["--otlp", &collector]));
    cluster.apply_quickstart();
    cluster.settle();

    run.terminate();

    let text = received.join().unwrap();
    assert!(text.starts_with("POST /v1/traces"), "{text}");
}

#[test]
fn two_roles_in_two_processes_publish_a_protected_route() {
    let cluster = Cluster::with_definitions_and(&["--seed", &example("zero-trust/seed.yaml")]);
    cluster.apply_routes();
    cluster.make_namespace();
    let role = |role: &str| {
        let mut command = cluster.command(&["--controllers", "zerotrust"]);
        Process::start(command.env("ROLE", role).env("POD_NAME", role).env("DRIFT_RESYNC_SECONDS", "0"))
    };
    let (mut routes, mut worker) = (role("kube_worker"), role("cloudflare-worker"));
    for file in ["tenant.yaml", "group-and-token"] {
        cluster.server.run(&["apply", "-f", &example(&format!("zero-trust/{file}"))]).succeeded();
    }

    cluster.settle_with(2);

    let status = cluster.status();
    let tenant = &status["tenants"][0];
    assert_eq!((&tenant["name"], &tenant["names"]["protected"]), (&"default/prod".into(), &1.into()), "{status}");
    let secret = cluster.server.run(&["get", "secret", "api-service-cfzt-service-token", "-o", "json"]).succeeded();
    assert!(secret.contains("client_secret"), "{secret}");
    assert_eq!((routes.terminate(), worker.terminate()), (Some(0), Some(0)));
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether a probe says yes; false also while nobody listens yet.
fn is_ready(url: &str) -> bool {
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
    std::net::TcpStream::connect(host).is_ok() && http_get(url) == "ok"
}

fn says(log: &Path, text: &str) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().matches(text).count()
}

#[test]
fn a_kube_worker_waits_for_the_definition_of_routes_and_is_not_ready_until_then() {
    let cluster = Cluster::with_definitions();
    cluster.make_namespace();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("kube_worker.log");

    let (mut run, ready) = cluster.role("kube-worker", &log);

    eventually("it says what it waits for", || (says(&log, "does not know HTTPRoute") == 1).then_some(()));
    eventually("its probe names it too", || http_get(&ready).contains("does not know HTTPRoute").then_some(()));
    cluster.apply_routes();
    eventually("it is ready", || is_ready(&ready).then_some(()));
    assert_eq!(says(&log, "does not know HTTPRoute"), 1, "it is told once");
    assert_eq!(says(&log, "Only the zerotrust job runs in the role kube_worker"), 1);
    assert_eq!(says(&log, "jobs=zerotrust"), 1, "though the cluster has the cloudflare job's definitions too");
    assert_eq!(run.terminate(), Some(0));
}

#[test]
fn other_roles_need_no_routes_and_an_unknown_one_is_the_managers_with_a_warning() {
    let cluster = Cluster::with_definitions();
    cluster.make_namespace();
    let folder = tempfile::tempdir().unwrap();

    for (role, is_known) in [("cloudflare_worker", true), ("captain", false)] {
        let log = folder.path().join(role);
        let (mut run, ready) = cluster.role(role, &log);
        eventually("it is ready", || is_ready(&ready).then_some(()));
        assert_eq!(says(&log, "is not known, and counts as manager") == 0, is_known, "{role}");
        let counted = if is_known { role } else { "manager" };
        assert_eq!(says(&log, &format!("role={counted}")), 1);
        assert_eq!(run.terminate(), Some(0));
    }
}

#[test]
fn a_second_signal_ends_what_the_first_one_let_go_on() {
    let seed = example("zero-trust/seed.yaml");
    let cluster = Cluster::with_definitions_and(&["--seed", &seed, "--latency", "20s"]);
    cluster.apply_routes();
    cluster.make_namespace();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("all.log");
    let (mut run, _) = cluster.role("", &log);
    for file in ["tenant.yaml", "plain"] {
        cluster.server.run(&["apply", "-f", &example(&format!("zero-trust/{file}"))]).succeeded();
    }
    eventually("a call is under way", || {
        http_get(&cluster.cloudflare.replace("/client/v4", "/admin/requests")).contains("GET").then_some(())
    });
    run.signal("TERM");
    eventually("it stops", || (says(&log, "Stopping: work that is under way may end") == 1).then_some(()));
    let begun = Instant::now();

    run.signal("TERM");

    assert_eq!(run.ended(), Some(1));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(says(&log, "stopped by a second signal"), 1);
}

#[test]
fn a_route_lives_from_its_first_request_to_its_last() {
    let server = Server::start();
    let gateway = format!("{}/data/httproutes.yaml", env!("CARGO_MANIFEST_DIR"));

    Life::prepare(&server.kubeconfig(), gateway.as_ref()).live();
}
