//! API server, simulator and `portolan run` as processes of their own: what the last one takes of memory.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::embedded::Embedded;
use super::memory::{own_mib, resident_mib};
use super::timing::rounded;
use super::world::{ACCOUNT, Protected, TUNNEL, record_spec, route, tenant_spec};
use crate::definitions;
use crate::health_view::GROUP;
use crate::operator;
use crate::server::Server;

const ZONE: &str = "example.com";
const PATIENCE: Duration = Duration::from_secs(600);
/// How long after everything is settled memory is looked at.
const REST: Duration = Duration::from_secs(5);

/// What `run` has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// DNS records of one zone.
    Records,
    /// Open names through one tunnel.
    Routes,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Records => "record",
            Self::Routes => "route",
        }
    }

    /// What the simulator begins with, beside its account and zone.
    fn tunnels(self) -> Value {
        match self {
            Self::Records => json!([]),
            Self::Routes => json!([{"account": ACCOUNT, "id": TUNNEL, "name": "bench", "config_src": "cloudflare"}]),
        }
    }
}

/// Resident memory of `run` with so many settled objects, ascending: created while it runs, found when it starts
/// again, and (the first count) created before it starts.
pub(super) async fn memory(load: Load, counts: &[usize]) -> anyhow::Result<Value> {
    let mut figures = json!({});
    let mut settled: Vec<(usize, f64)> = Vec::new();
    let stage = BenchStage::start(load).await?;
    let run = stage.run()?;
    for count in counts {
        let first = settled.last().map_or(0, |(count, _)| *count);
        stage.create(first..*count).await?;
        let taken = stage.settled(&run, *count).await?;
        taken.tell(&mut figures, &format!("settled_{count}"));
        settled.push((*count, taken.own));
    }
    if let [.., (fewer, before), (more, after)] = settled.as_slice() {
        #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
        let each = (after - before) * 1024.0 / (more - fewer) as f64;
        figures[format!("kib_per_{}", load.name())] = json!(rounded(each));
    }
    drop(run);
    if let Some((count, _)) = settled.last() {
        stage.settled(&stage.run()?, *count).await?.tell(&mut figures, &format!("restarted_{count}"));
    }
    if let Some(count) = counts.first() {
        let stage = BenchStage::start(load).await?;
        stage.create(0..*count).await?;
        stage.settled(&stage.run()?, *count).await?.tell(&mut figures, &format!("cold_{count}"));
    }
    Ok(figures)
}

/// Memory of a process, in MiB: with the pages of its executable, and without.
#[derive(Clone, Copy, Debug)]
struct ProcessMemory {
    resident: f64,
    own: f64,
}

impl ProcessMemory {
    fn tell(self, figures: &mut Value, name: &str) {
        figures[format!("{name}_mib")] = json!(rounded(self.resident));
        figures[format!("{name}_own_mib")] = json!(rounded(self.own));
    }
}

/// An API server and a simulator, each a process of its own.
struct BenchStage {
    load: Load,
    server: Embedded,
    simulator: Simulator,
    client: kube::Client,
}

impl BenchStage {
    async fn start(load: Load) -> anyhow::Result<Self> {
        let (server, simulator) = (Embedded::start().await?, Simulator::start(load).await?);
        let client = connect(&server).await?;
        install(&client).await?;
        match load {
            Load::Records => prepare(&client).await?,
            Load::Routes => prepare_tenant(&client).await?,
        }
        Ok(Self { load, server, simulator, client })
    }

    async fn create(&self, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
        let kind = objects(&self.client, self.load);
        let each = futures::stream::iter(numbers.map(Ok));
        futures::TryStreamExt::try_for_each_concurrent(each, 16, |number| {
            let kind = kind.clone();
            async move { kind.create_whole(object(self.load, number)).await }
        })
        .await
    }

    fn run(&self) -> anyhow::Result<Child> {
        start_run(&self.server, &self.simulator.url)
    }

    /// Memory of `run` some time after that many records are Ready.
    async fn settled(&self, run: &Child, count: usize) -> anyhow::Result<ProcessMemory> {
        wait_settled(&self.client, self.load, count).await?;
        tokio::time::sleep(REST).await;
        let pid = run.id().ok_or_else(|| anyhow!("`portolan run` ended; its messages are above"))?;
        let taken = resident_mib(&[pid]).zip(own_mib(pid)).map(|(resident, own)| ProcessMemory { resident, own });
        let taken = taken.ok_or_else(|| anyhow!("`portolan run` is gone; its messages are above"))?;
        let ProcessMemory { resident, own } = taken;
        eprintln!("{count} settled {}s, run takes {resident:.1} MiB, {own:.1} of them its own", self.load.name());
        Ok(taken)
    }
}

fn start_run(server: &Embedded, cloudflare: &str) -> anyhow::Result<Child> {
    Command::new(std::env::current_exe().context("finding this program")?)
        .args(["run", "--metrics", "0", "--health", "0", "--leader-elect=false", "--kubeconfig"])
        .arg(server.kubeconfig())
        .env("CLOUDFLARE_API_BASE_URL", cloudflare)
        .env("LOG_LEVEL", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("starting `portolan run`")
}

/// A running `portolan sim`.
struct Simulator {
    url: String,
    _process: Child,
}

impl Simulator {
    async fn start(load: Load) -> anyhow::Result<Self> {
        let seed = tempfile::NamedTempFile::new().context("a file for the seed")?;
        let zone =
            json!({"id": "00000000000000000000000000000001", "name": ZONE, "plan": "enterprise", "account": ACCOUNT});
        let content =
            json!({"accounts": [{"id": ACCOUNT, "name": "Bench"}], "zones": [zone], "tunnels": load.tunnels()});
        std::fs::write(seed.path(), content.to_string()).context("writing the seed")?;
        let mut process = Command::new(std::env::current_exe().context("finding this program")?)
            .args(["sim", "--listen", "127.0.0.1:0", "--rate-limit", "off", "--seed"])
            .arg(seed.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting the simulator")?;
        let stdout = process.stdout.take().ok_or_else(|| anyhow!("the simulator has no output"))?;
        let line = BufReader::new(stdout).lines().next_line().await.context("reading the simulator's greeting")?;
        let url = line.as_deref().and_then(|line| line.split(" at ").nth(1)).map(str::to_owned);
        let url = url.ok_or_else(|| anyhow!("the simulator ended at once; its messages are above"))?;
        Ok(Self { url, _process: process })
    }
}

async fn connect(server: &Embedded) -> anyhow::Result<kube::Client> {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).context("reading the kubeconfig")?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

async fn install(client: &kube::Client) -> anyhow::Result<()> {
    let server = Server::of_client(client.clone(), "the embedded server");
    definitions::install(&server).await.map_err(|failure| anyhow!("{failure}"))?;
    definitions::install_routes(&server).await.map_err(|failure| anyhow!("{failure}"))?;
    for namespace in [operator::NAMESPACE, portolan_zerotrust::NAMESPACE] {
        server.make_namespace(namespace).await.map_err(|failure| anyhow!("{failure}"))?;
    }
    Ok(())
}

async fn prepare_tenant(client: &kube::Client) -> anyhow::Result<()> {
    let secrets = BenchKind::new(client, ("", "v1", "Secret", "secrets"), Some("default"));
    secrets.create("token", json!({"stringData": {"token": "bench"}})).await?;
    let group = portolan_zerotrust::model::GROUP;
    let names = (group, "v1alpha1", "CloudflareZeroTrustTenant", "cloudflarezerotrusttenants");
    BenchKind::new(client, names, Some("default")).create("bench", json!({"spec": tenant_spec()})).await
}

async fn prepare(client: &kube::Client) -> anyhow::Result<()> {
    let secrets = BenchKind::new(client, ("", "v1", "Secret", "secrets"), Some(operator::NAMESPACE));
    secrets.create("token", json!({"stringData": {"CLOUDFLARE_API_TOKEN": "bench"}})).await?;
    let spec = json!({"accountId": ACCOUNT, "authType": "apiToken", "isDefault": true,
        "secretRef": {"name": "token"}});
    let credentials =
        BenchKind::new(client, (GROUP, "v1alpha2", "CloudflareCredentials", "cloudflarecredentials"), None);
    credentials.create("main", json!({"spec": spec})).await?;
    let domains = BenchKind::new(client, (GROUP, "v1alpha2", "CloudflareDomain", "cloudflaredomains"), None);
    domains.create("example", json!({"spec": {"domain": ZONE}})).await
}

/// Objects of one kind in one place.
#[derive(Clone)]
struct BenchKind {
    resource: ApiResource,
    api: Api<DynamicObject>,
}

impl BenchKind {
    fn new(client: &kube::Client, names: (&str, &str, &str, &str), namespace: Option<&str>) -> Self {
        let (group, version, kind, plural) = names;
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        Self { resource, api }
    }

    async fn create(&self, name: &str, data: Value) -> anyhow::Result<()> {
        self.send(DynamicObject::new(name, &self.resource).data(data)).await
    }

    /// Creates an object that has its metadata already.
    async fn create_whole(&self, mut object: Value) -> anyhow::Result<()> {
        object["apiVersion"] = json!(self.resource.api_version);
        object["kind"] = json!(self.resource.kind);
        self.send(serde_json::from_value(object).context("an object")?).await
    }

    async fn send(&self, object: DynamicObject) -> anyhow::Result<()> {
        let created = self.api.create(&PostParams::default(), &object).await;
        created.with_context(|| format!("creating {} {}", self.resource.kind, object.name_any())).map(drop)
    }
}

fn objects(client: &kube::Client, load: Load) -> BenchKind {
    let names = match load {
        Load::Records => (GROUP, "v1alpha2", "DNSRecord", "dnsrecords"),
        Load::Routes => (definitions::GATEWAY_GROUP, "v1", "HTTPRoute", "httproutes"),
    };
    BenchKind::new(client, names, Some("default"))
}

fn object(load: Load, number: usize) -> Value {
    match load {
        Load::Records => {
            let mut spec = record_spec(ZONE, number);
            spec["cloudflare"] = json!({});
            json!({"metadata": {"name": format!("r{number:05}")}, "spec": spec})
        }
        Load::Routes => route(ZONE, number, Protected::Open),
    }
}

async fn wait_settled(client: &kube::Client, load: Load, count: usize) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let ready = ready(client, load).await?;
        if ready >= count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    bail!("not all of {count} {}s became Ready within {} s", load.name(), PATIENCE.as_secs())
}

async fn ready(client: &kube::Client, load: Load) -> anyhow::Result<usize> {
    let list = objects(client, load).api.list(&ListParams::default()).await.context("listing the objects")?;
    let is_ready = |object: &&DynamicObject| match load {
        Load::Records => {
            let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        }
        Load::Routes => object.annotations().contains_key("cfzt.cloudflare.com/lastReconcile"),
    };
    Ok(list.items.iter().filter(is_ready).count())
}
