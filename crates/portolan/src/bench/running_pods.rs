//! `portolan up` with pods that run: how long until all are ready, what each takes of `up`'s memory, and what they cost at rest.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::memory::{own_mib, resident_mib};
use super::timing::rounded;

const PATIENCE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(100);
/// How long after everything is settled memory is looked at.
const REST: Duration = Duration::from_secs(5);
/// How long it is looked at what a settled world costs.
const IDLE: Duration = Duration::from_secs(20);
const STOPS_WITHIN: Duration = Duration::from_secs(30);
const NAME: &str = "bench";

/// So many pods at first, and then so many.
pub(crate) async fn run(few: usize, many: usize) -> anyhow::Result<Value> {
    let up = BenchUp::start().await?;
    let mut figures = json!({
        "bench": "pods", "version": env!("CARGO_PKG_VERSION"), "pods": many, "few": few,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
    });
    let mut taken = Vec::new();
    for count in [few, many] {
        let took = up.scale(count).await?;
        tokio::time::sleep(REST).await;
        let (resident, own) = up.memory()?;
        eprintln!(
            "{count} pods are ready after {} ms; up takes {resident:.1} MiB, {own:.1} of them its own",
            took.as_millis()
        );
        figures[format!("all_{count}_ready_ms")] = json!(took.as_millis());
        figures[format!("resident_{count}_mib")] = json!(rounded(resident));
        figures[format!("own_{count}_mib")] = json!(rounded(own));
        taken.push(resident);
    }
    if let [before, after] = taken.as_slice() {
        #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
        let each = (after - before) * 1024.0 / (many - few) as f64;
        figures["kib_per_pod"] = json!(rounded(each));
    }
    up.at_rest(&mut figures).await?;
    Ok(figures)
}

/// A running `portolan up` on a fresh data directory.
struct BenchUp {
    process: Child,
    client: kube::Client,
    _home: TempDir,
}

impl BenchUp {
    async fn start() -> anyhow::Result<Self> {
        let home = tempfile::tempdir().context("making a temporary folder")?;
        // Users of pods pass through it.
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o711)).context("opening it")?;
        let data = home.path().join("data");
        let mut process = Command::new(std::env::current_exe().context("finding this program")?)
            .args([
                "up",
                "--listen",
                "127.0.0.1:0",
                "--sim-listen",
                "127.0.0.1:0",
                "--edge",
                "127.0.0.1:0",
                "--data-dir",
            ])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting `portolan up`")?;
        let stdout = process.stdout.take().ok_or_else(|| anyhow!("`portolan up` has no output"))?;
        let mut lines = BufReader::new(stdout).lines();
        loop {
            let line = lines.next_line().await.context("reading the greeting of `portolan up`")?;
            let line = line.ok_or_else(|| anyhow!("`portolan up` ended at once; its messages are above"))?;
            if line.starts_with("Stop with Ctrl-C") {
                break;
            }
        }
        // What it says from now on is nobody's concern, and must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let kubeconfig = Kubeconfig::read_from(data.join("kubeconfig")).context("reading the kubeconfig")?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Self { process, client: kube::Client::try_from(config)?, _home: home })
    }

    fn pid(&self) -> anyhow::Result<u32> {
        self.process.id().ok_or_else(|| anyhow!("`portolan up` ended; its messages are above"))
    }

    fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let pid = self.pid()?;
        let taken = resident_mib(&[pid]).zip(own_mib(pid));
        taken.ok_or_else(|| anyhow!("`portolan up` is gone; its messages are above"))
    }

    /// Wants so many pods, and waits until all are ready.
    async fn scale(&self, count: usize) -> anyhow::Result<Duration> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), "default");
        let container = json!({"name": "main", "image": "registry.k8s.io/pause:3.10"});
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME},
            "spec": {
                "replicas": count, "selector": {"matchLabels": {"app": NAME}},
                "template": {"metadata": {"labels": {"app": NAME}}, "spec": {"containers": [container]}},
            },
        });
        let began = Instant::now();
        let params = PatchParams::apply(NAME).force();
        deployments.patch(NAME, &params, &Patch::Apply(&object)).await.context("applying the Deployment")?;
        while began.elapsed() < PATIENCE {
            let status = deployments.get(NAME).await.context("reading the Deployment")?.status.unwrap_or_default();
            if status.ready_replicas.and_then(|ready| usize::try_from(ready).ok()) == Some(count) {
                return Ok(began.elapsed());
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("not all of {count} pods became Ready within {} s", PATIENCE.as_secs())
    }

    /// What it costs that they run on: processor time of `up`, and writes.
    async fn at_rest(&self, figures: &mut Value) -> anyhow::Result<()> {
        let (ticks, version) = (self.ticks()?, self.version().await?);
        tokio::time::sleep(IDLE).await;
        let used = self.ticks()?.saturating_sub(ticks);
        let writes = self.version().await?.saturating_sub(version);
        figures["idle_seconds"] = json!(IDLE.as_secs());
        // Hundredths of a second, and the two questions that were asked meanwhile are among them.
        figures["idle_cpu_ms"] = json!(used * 10);
        figures["idle_writes"] = json!(writes);
        Ok(())
    }

    /// Processor time of `up` in hundredths of a second.
    fn ticks(&self) -> anyhow::Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()?)).context("reading /proc")?;
        let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
        let ticks = fields.get(11..13).map(|fields| fields.iter().filter_map(|field| field.parse::<u64>().ok()).sum());
        ticks.ok_or_else(|| anyhow!("/proc cannot be read"))
    }

    /// The version of everything that is stored: it counts writes.
    async fn version(&self) -> anyhow::Result<u64> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let list = pods.list(&ListParams::default().limit(1)).await.context("listing pods")?;
        list.metadata.resource_version.and_then(|version| version.parse().ok()).context("a list has no version")
    }
}

impl Drop for BenchUp {
    fn drop(&mut self) {
        // Asked to stop it ends its pods; killed it would leave them to the next start, which never comes.
        let Some(pid) = self.process.id() else { return };
        let asked = std::process::Command::new("kill").arg(pid.to_string()).status();
        let until = Instant::now() + STOPS_WITHIN;
        while asked.is_ok() && Instant::now() < until && matches!(self.process.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
    }
}
