//! `/metrics`, `/livez` and `/readyz` of the built binary, against what the reference says of them.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::process::Command;

use crate::support::process::{Process, eventually, http_get, simulator};
use crate::support::{Run, Server, example, portolan};

/// A metric as a page tells it: type and labels.
type Told = (String, BTreeSet<String>);

/// The tables of the reference.
fn documented() -> BTreeMap<String, Told> {
    let page = format!("{}/../../docs/reference/metrics.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `portolan_"));
    let read = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let labels = cells[3].split(", ").map(|label| label.trim_matches('`').to_owned());
        (cells[1].to_owned(), (cells[2].to_owned(), labels.filter(|label| !label.is_empty()).collect()))
    };
    rows.map(read).collect()
}

/// What a page for Prometheus describes: names as queries use them, with their types.
fn described(page: &str) -> BTreeMap<String, String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let read = |line: &str| {
        let (name, shape) = line.split_once(' ').unwrap();
        let name = if shape == "counter" { format!("{name}_total") } else { name.to_owned() };
        (name, shape.to_owned())
    };
    types.map(read).collect()
}

/// Labels of the series on a page, by metric; what belongs to the form of histograms is left out.
fn labels(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, rest) = series.split_once('{').unwrap_or((series, ""));
        let name = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        // A label's name stands before `="`, after the beginning or a comma.
        let names = rest.split("=\"").map(|part| part.rsplit([',', '{', '}', '"']).next().unwrap_or_default());
        let names = names.filter(|name| !name.is_empty() && *name != "le").map(str::to_owned);
        found.entry(name.to_owned()).or_default().extend(names);
    }
    found
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// An API server with all definitions, a seeded simulator, and where a process against them answers.
struct Place {
    server: Server,
    _simulator: Process,
    cloudflare: String,
    metrics: String,
    health: String,
}

impl Place {
    fn prepare() -> Self {
        let (simulator, cloudflare) = simulator(&["--seed", &example("zero-trust/seed.yaml")]);
        let place = Self {
            server: Server::start(),
            _simulator: simulator,
            cloudflare,
            metrics: free_address(),
            health: free_address(),
        };
        let crds = Run::from(portolan().arg("crds").output().unwrap()).succeeded();
        place.server.run_with_input(&["apply", "-f", "-"], &crds).succeeded();
        let gateway = format!("{}/data/httproutes.yaml", env!("CARGO_MANIFEST_DIR"));
        place.server.run(&["apply", "-f", &gateway]).succeeded();
        place
    }

    fn command(&self) -> Command {
        let mut command = self.server.command(&["run", "--metrics", &self.metrics, "--health", &self.health]);
        command.env("CLOUDFLARE_API_BASE", &self.cloudflare).env("LOG_LEVEL", "warn").env("DRIFT_RESYNC_SECONDS", "2");
        command
    }

    fn page(&self) -> String {
        http_get(&format!("http://{}/metrics", self.metrics))
    }

    /// What a probe says, once the process answers.
    fn probe(&self, path: &str) -> Option<String> {
        std::net::TcpStream::connect(&self.health).ok()?;
        Some(http_get(&format!("http://{}{path}", self.health)))
    }
}

#[test]
fn every_metric_that_is_shown_is_documented_and_the_reverse() {
    let place = Place::prepare();
    let mut run = Process::start(&mut place.command());
    for file in ["tenant.yaml", "group-and-token"] {
        place.server.run(&["apply", "-f", &example(&format!("zero-trust/{file}"))]).succeeded();
    }
    let expiry = "portolan_zerotrust_token_expiry_timestamp_seconds{tenant=\"default/prod\"}";
    eventually("the token's end is told", || {
        (place.probe("/readyz").as_deref() == Some("ok") && place.page().contains(expiry)).then_some(())
    });

    let (page, documented) = (place.page(), documented());

    let types: BTreeMap<String, String> =
        documented.iter().map(|(name, (shape, _))| (name.clone(), shape.clone())).collect();
    assert_eq!(described(&page), types);
    for (name, labels) in labels(&page) {
        assert_eq!(labels, documented[&name].1, "labels of {name} in\n{page}");
    }
    let build = format!("portolan_build_info{{version=\"{}\",role=\"all\"}} 1", env!("CARGO_PKG_VERSION"));
    for line in [
        build.as_str(),
        "portolan_leader{controller=\"zerotrust\"} 1",
        "portolan_zerotrust_names{mode=\"tunnel\",protected=\"true\"} 1",
        "portolan_zerotrust_routes{state=\"ready\",reason=\"\"} 1",
    ] {
        assert!(page.lines().any(|one| one == line), "no {line} in\n{page}");
    }
    assert_eq!(run.terminate(), Some(0));
}

#[test]
fn a_probe_names_its_checks_and_an_api_server_that_goes_makes_none_fail() {
    let mut place = Place::prepare();
    let mut run = Process::start(&mut place.command());

    eventually("the process is ready", || (place.probe("/readyz").as_deref() == Some("ok")).then_some(()));
    let ready = place.probe("/readyz?verbose").unwrap();
    for check in [
        "zerotrust/HTTPRoute",
        "zerotrust/cloudflarezerotrusttenants",
        "zerotrust/CloudflareTask",
        "cloudflare/DNSRecord",
    ] {
        assert!(ready.contains(&format!("[+]{check} ok\n")), "{ready}");
    }
    assert!(ready.ends_with("readyz check passed\n"), "{ready}");

    place.server.kill();
    eventually("a watch fails", || {
        place.page().lines().any(|line| line.starts_with("portolan_watch_errors_total{")).then_some(())
    });
    assert_eq!(place.probe("/livez").as_deref(), Some("ok"));
    assert_eq!(place.probe("/readyz").as_deref(), Some("ok"));
    assert_eq!(
        place.probe("/healthz?verbose").as_deref().map(|text| text.ends_with("livez check passed\n")),
        Some(true)
    );
    run.terminate();
}
