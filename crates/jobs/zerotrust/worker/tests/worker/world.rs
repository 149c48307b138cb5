//! The test kit's world, with workers running in it, each of which can be killed, stopped and cut off by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use portolan_cloudflare_api::RetryPolicy;
use portolan_cloudflare_sim::{Grant, RecordedRequest, Simulator};
use portolan_core::job::{JobSheet, plain};
use portolan_engine::{CancellationToken, Job, JobDefinition, Metrics, Task};
use portolan_testkit::{Builder, WorldJob};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus, Phase, crds};
use portolan_zerotrust_worker::{Settings, Worker};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::ServiceExt as _;

pub(crate) const NAMESPACE: &str = "cloudflare-zero-trust";
pub(crate) const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const ZONE: &str = "d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0";
pub(crate) const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const TOKEN: &str = "canary-token-of-the-tenant";

/// Workers are started by the world itself, with the settings that a test gives them.
static DEFINITION: JobDefinition =
    JobDefinition::of(JobSheet { definitions, ..JobSheet::named("zerotrust", "cfzt.cloudflare.com") }, |_| {
        Job::new("nothing", |_| Vec::<Task>::new())
    });
static JOB: WorldJob = WorldJob::bare(&DEFINITION, &[NAMESPACE, "default"], seed, objects);

pub(crate) struct World {
    kit: portolan_testkit::World,
    pub(crate) client: Client,
    pub(crate) simulator: Simulator,
    workers: Vec<Running>,
    /// Paths of workers' requests for Secrets, with their queries.
    secret_requests: Arc<Mutex<Vec<String>>>,
    /// Workers whose cluster does not answer.
    cut_off: Arc<Mutex<BTreeSet<String>>>,
    /// What workers measured, also those that are gone.
    measured: BTreeMap<String, Arc<Metrics>>,
}

fn definitions() -> Vec<Value> {
    crds().into_iter().map(plain).collect()
}

/// An account, a zone, a tunnel.
fn seed(simulator: &Simulator, plan: &str) {
    simulator.add_account_with_id(ACCOUNT, "Example");
    simulator.add_token(TOKEN, Grant::all());
    simulator.add_zone_with_id(ZONE, "example.com", ACCOUNT, plan).unwrap();
    let tunnel = json!({ "id": TUNNEL, "name": "edge", "config_src": "cloudflare" });
    simulator.put("cfd_tunnel", ACCOUNT, tunnel).unwrap();
}

/// A credential.
fn objects(_: &Simulator) -> Vec<Value> {
    vec![secret("cloudflare-api-token", &json!({ "token": TOKEN }))]
}

fn secret(name: &str, values: &Value) -> Value {
    let meta = json!({ "name": name, "namespace": "default" });
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": values })
}

struct Running {
    name: String,
    tasks: JoinSet<()>,
    busy: Vec<portolan_engine::Busy>,
    shutdown: CancellationToken,
}

impl World {
    /// A world with an account, a zone, a tunnel and a credential, and no worker.
    pub(crate) async fn empty() -> Self {
        let kit = Builder::of(&JOB).plan("pro").asleep().start().await;
        let (client, simulator) = (kit.cluster.client().clone(), kit.cloudflare.simulator.clone());
        let (secret_requests, cut_off) = (Arc::default(), Arc::default());
        Self { kit, client, simulator, workers: Vec::new(), secret_requests, cut_off, measured: BTreeMap::new() }
    }

    /// A world in which one worker runs, alone.
    pub(crate) async fn start() -> Self {
        let mut world = Self::empty().await;
        world.run(Settings::new("w1", "1").alone());
        world.settle().await;
        world.simulator.take_requests();
        world
    }

    /// Makes or changes a Secret in `default`.
    pub(crate) async fn put_secret(&self, name: &str, values: Value) {
        self.kit.cluster.apply(&secret(name, &values)).await;
    }

    pub(crate) async fn delete_secret(&self, name: &str) {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), "default");
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Starts a worker.
    pub(crate) fn run(&mut self, settings: Settings) {
        let client = self.watched_client(&settings.identity);
        let context = self.kit.context(client);
        let clients = Arc::new(self.kit.clients().with_retry(RetryPolicy::PATIENT));
        let name = settings.identity.clone();
        self.measured.insert(name.clone(), context.metrics.clone());
        let worker = Worker::new(&context, clients, settings);
        let shutdown = CancellationToken::new();
        let tasks = worker.tasks(&shutdown);
        let busy = tasks.iter().map(Task::busy).collect();
        let tasks = tasks.into_iter().map(Task::run).collect();
        self.workers.push(Running { name, tasks, busy, shutdown });
    }

    /// The cluster does not answer a worker any more, or again.
    pub(crate) fn cut_off(&self, worker: &str, is_cut: bool) {
        let mut cut_off = self.cut_off.lock().unwrap();
        if is_cut {
            cut_off.insert(worker.to_owned());
        } else {
            cut_off.remove(worker);
        }
    }

    /// A worker's client, whose requests for Secrets are noted.
    fn watched_client(&self, worker: &str) -> Client {
        let (noted, cut_off, worker) =
            (Arc::clone(&self.secret_requests), Arc::clone(&self.cut_off), worker.to_owned());
        let note = move |request: http::Request<_>| {
            if request.uri().path().contains("/secrets") {
                noted.lock().unwrap().push(request.uri().to_string());
            }
            request
        };
        let server = self.kit.server().service().map_request(note);
        let line = tower::service_fn(move |request| {
            let (server, is_cut) = (server.clone(), cut_off.lock().unwrap().contains(&worker));
            async move {
                if is_cut {
                    std::future::pending::<()>().await;
                }
                server.oneshot(request).await
            }
        });
        Client::new(line, "default")
    }

    /// What workers asked for of Secrets so far.
    pub(crate) fn secret_requests(&self) -> Vec<String> {
        self.secret_requests.lock().unwrap().clone()
    }

    /// What a worker measured, as Prometheus reads it.
    pub(crate) fn measured(&self, worker: &str) -> String {
        self.measured[worker].render()
    }

    /// Kills a worker in the middle of whatever it does.
    pub(crate) async fn kill(&mut self, name: &str) {
        let index = self.workers.iter().position(|worker| worker.name == name).unwrap();
        let mut worker = self.workers.remove(index);
        worker.tasks.shutdown().await;
        self.kit.worked_off().await;
    }

    /// Stops a worker as a signal does; answers how long that took.
    pub(crate) async fn stop(&mut self, name: &str) -> Duration {
        let index = self.workers.iter().position(|worker| worker.name == name).unwrap();
        let mut worker = self.workers.remove(index);
        let begun = Instant::now();
        worker.shutdown.cancel();
        while let Some(ended) = worker.tasks.join_next().await {
            ended.unwrap();
        }
        begun.elapsed()
    }

    /// Lets everything happen that happens without time passing.
    pub(crate) async fn idle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Waits until nothing is under way.
    pub(crate) async fn settle(&self) {
        for _ in 0..200_000 {
            self.idle().await;
            let busy: usize = self.workers.iter().flat_map(|worker| &worker.busy).map(|busy| busy()).sum();
            if busy == 0 {
                return;
            }
        }
        panic!("the world does not settle");
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, holds: impl AsyncFn() -> bool) {
        for look in 0..20_000 {
            if holds().await {
                return;
            }
            // Closely at first; what takes seconds by its nature is not asked for every millisecond of them.
            let pause = if look < 1000 { 1 } else { 20 };
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        panic!("it does not come about");
    }

    pub(crate) async fn after(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.settle().await;
    }

    pub(crate) fn tasks(&self) -> Api<CloudflareTask> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Leases by which workers say that they live.
    pub(crate) async fn signs(&self) -> Vec<String> {
        let leases = self.leases().list(&ListParams::default()).await.unwrap().items;
        leases.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("cfzt-worker-")).collect()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn create(&self, task: &CloudflareTask) -> CloudflareTask {
        self.tasks().create(&PostParams::default(), task).await.unwrap()
    }

    /// Makes a task and waits until the workers rest.
    pub(crate) async fn carry(&self, task: &CloudflareTask) -> CloudflareTaskStatus {
        self.create(task).await;
        self.settle().await;
        self.status(&task.name_any()).await
    }

    pub(crate) async fn get(&self, name: &str) -> CloudflareTask {
        self.tasks().get(name).await.unwrap()
    }

    pub(crate) async fn status(&self, name: &str) -> CloudflareTaskStatus {
        self.get(name).await.status.unwrap_or_default()
    }

    pub(crate) async fn phase(&self, name: &str) -> Phase {
        self.get(name).await.phase()
    }

    /// Changes a task's spec.
    pub(crate) async fn edit(&self, name: &str, spec: Value) {
        let patch = json!({ "spec": spec });
        self.tasks().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch_status(&self, name: &str, status: Value) {
        let patch = json!({ "status": status });
        self.tasks().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Everything of the operator's namespace and all tasks as text, without Secrets.
    pub(crate) async fn everything_but_secrets(&self) -> String {
        let all = ListParams::default();
        let (tasks, maps) = (self.tasks().list(&all).await.unwrap(), self.config_maps().list(&all).await.unwrap());
        format!("{}{}", json!(tasks.items), json!(maps.items))
    }

    /// Writes at Cloudflare since the last time: `POST dns_records`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let requests = self.simulator.take_requests();
        requests.iter().filter(|request| request.is_write()).map(shown).collect()
    }

    /// All requests since the last time.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.simulator.take_requests().iter().map(shown).collect()
    }

    /// Hostnames of the tunnel's rules.
    pub(crate) fn rules(&self) -> Vec<String> {
        let config = self.simulator.state()["configurations"][TUNNEL]["config"].clone();
        let rules = config["ingress"].as_array().cloned().unwrap_or_default();
        rules.iter().filter_map(|rule| rule["hostname"].as_str().map(str::to_owned)).collect()
    }

    /// Names of the zone's records.
    pub(crate) fn records(&self) -> Vec<String> {
        let records = self.simulator.objects("dns_records", ZONE);
        records.iter().filter_map(|record| record["name"].as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn apps(&self) -> Vec<Value> {
        self.simulator.objects("access_apps", ACCOUNT)
    }

    pub(crate) fn service_tokens(&self) -> Vec<Value> {
        self.simulator.objects("service_tokens", ACCOUNT)
    }
}

/// A request as a short text.
pub(crate) fn shown(request: &RecordedRequest) -> String {
    let parts: Vec<&str> = request.route().trim_matches('/').split('/').collect();
    let rest = match parts.as_slice() {
        ["accounts" | "zones", _, rest @ ..] if !rest.is_empty() => rest.join("/"),
        all => all.join("/"),
    };
    let status = if (200..300).contains(&request.status) { String::new() } else { format!(" → {}", request.status) };
    format!("{} {}{status}", request.method, rest.replace(TUNNEL, "T"))
}

/// A task that publishes `{name}.example.com`.
pub(crate) fn task(name: &str) -> CloudflareTask {
    let hostname = format!("{name}.example.com");
    let task = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareTask",
        "metadata": {
            "name": format!("cfzt-shop-{name}"), "namespace": NAMESPACE,
            "annotations": {
                "cfzt.cloudflare.com/annotation-hash": "hash-1", "cfzt.cloudflare.com/schema-version": "1",
            },
        },
        "spec": {
            "httprouteRef": { "name": name, "namespace": "shop", "uid": "uid-1" },
            "tenantRef": { "name": "prod", "namespace": "default" },
            "credentialSecretRef": { "name": "cloudflare-api-token", "namespace": "default" },
            "hostname": hostname, "accountId": ACCOUNT, "tunnelId": TUNNEL, "zoneId": ZONE,
            "operations": {
                "tunnelRoute": { "enabled": true, "originService": "http://web.shop.svc:80" },
                "cnameDns": { "enabled": true },
            },
        },
    });
    serde_json::from_value(task).unwrap()
}

/// The same task with more operations.
pub(crate) fn with(task: CloudflareTask, operations: Value) -> CloudflareTask {
    let mut value = json!(task);
    for (name, operation) in operations.as_object().unwrap() {
        value["spec"]["operations"][name] = operation.clone();
    }
    serde_json::from_value(value).unwrap()
}

/// The same task, protected by Access for one address.
pub(crate) fn protected(task: CloudflareTask) -> CloudflareTask {
    with(task, json!({ "accessApp": { "enabled": true, "allowEmails": ["a@example.com"] } }))
}

/// The same task with a service token.
pub(crate) fn with_token(task: CloudflareTask) -> CloudflareTask {
    with(protected(task), json!({ "serviceToken": { "enabled": true } }))
}

/// A task that takes down what another one's result says.
pub(crate) fn deletion(task: &CloudflareTask, status: &CloudflareTaskStatus) -> CloudflareTask {
    let mut value = json!(task);
    let result = json!(status.result);
    let mut ids = result.clone();
    for field in ["notices", "serviceTokenCreated", "resolvedZoneId", "serviceTokenSecretName"] {
        ids.as_object_mut().unwrap().remove(field);
    }
    value["metadata"]["name"] = json!(format!("{}-delete", task.name_any()));
    value["spec"]["action"] = json!("delete");
    value["spec"]["operations"] = Value::Null;
    value["spec"]["deleteIds"] = ids;
    value["status"] = Value::Null;
    serde_json::from_value(value).unwrap()
}
