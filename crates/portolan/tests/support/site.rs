//! An installed operator: the objects of an installation on a real cluster, its pods as processes, and a simulated
//! Cloudflare with its edge.

use std::time::{Duration, Instant};

use portolan_install::{Release, Values};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::example;
use super::pods::Pods;
use super::process::{PATIENCE, Process, ask_edge, http_get, simulator};

/// Where the operator is installed.
pub const NAMESPACE: &str = "cloudflare-zero-trust";

/// An installed operator.
pub struct Site {
    pub cluster: Cluster,
    pub pods: Pods,
    pub cloudflare: String,
    edge: String,
    _simulator: Process,
}

impl Site {
    /// A cluster and a Cloudflare without an operator; says why where there is no cluster to be had.
    pub fn prepare() -> Result<Self, String> {
        let cluster = Cluster::start()?;
        let seed = example("zero-trust/seed.yaml");
        let (mut simulator, cloudflare) =
            simulator(&["--seed", &seed, "--edge", "127.0.0.1:0", "--edge-origin", "*=echo"]);
        let edge = simulator.line_with("Its edge at ").rsplit(' ').next().expect("an address").to_owned();
        Ok(Self { cluster, pods: Pods::of(NAMESPACE), cloudflare, edge, _simulator: simulator })
    }

    /// Installs the operator as `portolan install` does, with these settings, and waits until its pods are there.
    pub fn install(&mut self, settings: &[&str], components: &[&str]) {
        let base = format!("operator.cloudflareApiBase={}", self.cloudflare);
        let settings: Vec<&str> = ["operator.logLevel=DEBUG", &base].iter().chain(settings).copied().collect();
        let jobs = portolan_jobs::sheets(portolan_jobs::ALL);
        let values = Values::parse(&jobs, &[], &settings).expect("the settings are valid");
        let release =
            Release { name: "portolan".to_owned(), namespace: NAMESPACE.to_owned(), version: "0.0.0".to_owned() };
        let objects = portolan_install::objects(&values, &release, &jobs).expect("the values can be installed");
        self.cluster.apply([&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})]);
        self.cluster.apply(&objects);
        self.eventually("the pods run", |site| (site.pods.components() == components).then_some(()));
    }

    /// Asks again and again until the answer is there, while the pods are followed.
    pub fn eventually<T>(&mut self, what: &str, mut ask: impl FnMut(&Self) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            self.pods.follow(&self.cluster);
            if let Some(answer) = ask(self) {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("not within {PATIENCE:?}: {what}\n{}", self.tail());
    }

    /// The last of what the pods logged.
    fn tail(&self) -> String {
        let logs = self.pods.logs(&self.cluster);
        let lines: Vec<&str> = logs.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    /// Applies files of the examples as an administrator.
    pub fn apply_examples(&self, files: &[&str]) {
        for file in files {
            self.cluster.run(&["apply", "-f", &example(&format!("zero-trust/{file}"))]).succeeded();
        }
    }

    /// What stands at Cloudflare.
    pub fn state(&self) -> Value {
        self.page("state")
    }

    /// All requests to Cloudflare that wrote, as `POST /accounts/…`.
    pub fn writes(&self) -> Vec<String> {
        let page = self.page("requests");
        let requests = page.as_array().or_else(|| page["requests"].as_array()).cloned().unwrap_or_default();
        let shown = |request: &Value| Some(format!("{} {}", request["method"].as_str()?, request["path"].as_str()?));
        let all = requests.iter().filter_map(shown);
        all.filter(|request| !request.starts_with("GET ")).collect()
    }

    fn page(&self, name: &str) -> Value {
        let page = http_get(&self.cloudflare.replace("/client/v4", &format!("/admin/{name}")));
        serde_json::from_str(&page).expect("JSON")
    }

    /// Whether a visitor of a name is answered with a status.
    pub fn answers(&self, name: &str, headers: &[(&str, &str)], status: u16) -> bool {
        ask_edge(&self.edge, name, headers).starts_with(&format!("HTTP/1.0 {status}"))
    }
}
