//! The test kit's world, with the route side running in it. The test plays the worker.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use portolan_cloudflare_api::Readers;
use portolan_cloudflare_sim::{Grant, Simulator};
use portolan_core::job::{JobSheet, plain};
use portolan_engine::{CancellationToken, Context, Drift, Job, JobDefinition, Task};
use portolan_testkit::{Builder, WorldJob};
use portolan_zerotrust_model::{
    CloudflareTask, CloudflareZeroTrustTemplate as Template, CloudflareZeroTrustTenant as Tenant, HttpRoute, Phase,
    TaskResult, crds,
};
use portolan_zerotrust_routes::{Routes, Settings};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(crate) const NAMESPACE: &str = "cloudflare-zero-trust";
pub(crate) const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const ZONE: &str = "d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0";
pub(crate) const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const TOKEN: &str = "canary-token-of-the-tenant";
pub(crate) const FINALIZER: &str = "cfzt.cloudflare.com/cleanup";
pub(crate) const KOPF: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// The route side is started by the world itself, with the settings that a test gives it.
static DEFINITION: JobDefinition =
    JobDefinition::of(JobSheet { definitions, ..JobSheet::named("zerotrust", "cfzt.cloudflare.com") }, |_| {
        Job::new("nothing", |_| Vec::<Task>::new())
    });
static JOB: WorldJob = WorldJob::bare(&DEFINITION, &[NAMESPACE, "default", "elsewhere"], seed, objects);

pub(crate) struct World {
    kit: portolan_testkit::World,
    pub(crate) client: Client,
    pub(crate) simulator: Simulator,
    running: Option<(JoinSet<()>, Vec<portolan_engine::Busy>)>,
}

fn definitions() -> Vec<Value> {
    let routes = serde_saphyr::from_str(include_str!("../../../../../portolan/data/httproutes.yaml")).unwrap();
    crds().into_iter().map(plain).chain([routes]).collect()
}

/// An account, a zone, a tunnel.
fn seed(simulator: &Simulator, plan: &str) {
    simulator.add_account_with_id(ACCOUNT, "Example");
    simulator.add_token(TOKEN, Grant::all());
    simulator.add_zone_with_id(ZONE, "example.com", ACCOUNT, plan).unwrap();
    let tunnel = json!({ "id": TUNNEL, "name": "edge", "config_src": "cloudflare" });
    simulator.put("cfd_tunnel", ACCOUNT, tunnel).unwrap();
}

/// A tenant and its credential.
fn objects(_: &Simulator) -> Vec<Value> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloudflare-api-token", "namespace": "default" },
        "stringData": { "token": TOKEN },
    });
    let tenant = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustTenant",
        "metadata": { "name": "prod", "namespace": "default" },
        "spec": {
            "accountId": ACCOUNT, "tunnelId": TUNNEL, "credentialRef": { "name": "cloudflare-api-token" },
            "defaults": { "originService": "http://traefik.traefik.svc:80" },
        },
    });
    vec![secret, tenant]
}

/// Settings under which drift is never looked for.
pub(crate) fn quiet() -> Settings {
    Settings { drift: Drift::Off, ..Settings::default() }
}

impl World {
    /// A world with an account, a zone, a tunnel, a tenant and its credential, in which nothing runs.
    pub(crate) async fn empty() -> Self {
        let kit = Builder::of(&JOB).plan("pro").asleep().start().await;
        let (client, simulator) = (kit.cluster.client().clone(), kit.cloudflare.simulator.clone());
        Self { kit, client, simulator, running: None }
    }

    /// A world in which the route side runs.
    pub(crate) async fn start() -> Self {
        let mut world = Self::empty().await;
        world.run(quiet());
        world.after(5).await;
        world
    }

    pub(crate) fn context(&self) -> Context {
        self.kit.context(self.client.clone())
    }

    pub(crate) fn run(&mut self, settings: Settings) {
        let context = self.context();
        self.run_with(&context, settings);
    }

    pub(crate) fn run_with(&mut self, context: &Context, settings: Settings) {
        let clients = Arc::new(self.kit.clients());
        let tasks = Routes::new(context, Readers::of(clients), settings).tasks(&CancellationToken::new());
        let busy = tasks.iter().map(Task::busy).collect();
        self.running = Some((tasks.into_iter().map(Task::run).collect(), busy));
    }

    pub(crate) async fn idle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Waits until nothing is under way for a while.
    pub(crate) async fn settle(&self) {
        let mut calm = 0;
        for _ in 0..100_000 {
            self.idle().await;
            let busy: usize = self.running.iter().flat_map(|(_, busy)| busy).map(|busy| busy()).sum();
            calm = if busy == 0 { calm + 1 } else { 0 };
            if calm > 50 {
                return;
            }
        }
        panic!("the world does not settle");
    }

    pub(crate) async fn after(&self, seconds: u64) {
        self.settle().await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.settle().await;
    }

    /// Applies a manifest as a user would.
    pub(crate) async fn apply(&self, version: &str, kind: &str, mut object: Value) {
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        if object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        self.kit.cluster.apply(&object).await;
    }

    pub(crate) async fn apply_cfzt(&self, kind: &str, object: Value) {
        self.apply("cfzt.cloudflare.com/v1alpha1", kind, object).await;
    }

    /// A route that asks to be published, with further annotations.
    pub(crate) async fn publish(&self, name: &str, hostname: &str, more: &[(&str, &str)]) {
        self.publish_in("default", name, hostname, more).await;
        self.after(2).await;
    }

    pub(crate) async fn publish_in(&self, namespace: &str, name: &str, hostname: &str, more: &[(&str, &str)]) {
        let mut annotations =
            json!({ "cfzt.cloudflare.com/enabled": "true", "cfzt.cloudflare.com/hostname": hostname });
        for (suffix, value) in more {
            annotations[format!("cfzt.cloudflare.com/{suffix}")] = json!(value);
        }
        let rules = json!([{ "backendRefs": [{ "name": "web", "port": 80 }] }]);
        let route = json!({
            "metadata": { "name": name, "namespace": namespace, "annotations": annotations },
            "spec": { "rules": rules },
        });
        self.apply("gateway.networking.k8s.io/v1", "HTTPRoute", route).await;
    }

    pub(crate) fn routes(&self) -> Api<HttpRoute> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn route(&self, name: &str) -> HttpRoute {
        self.routes().get(name).await.unwrap()
    }

    /// An annotation of ours on a route.
    pub(crate) async fn note(&self, name: &str, suffix: &str) -> Option<String> {
        self.route(name).await.annotations().get(&format!("cfzt.cloudflare.com/{suffix}")).cloned()
    }

    pub(crate) async fn delete_route(&self, name: &str) {
        self.routes().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) fn tasks(&self) -> Api<CloudflareTask> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn task_names(&self) -> Vec<String> {
        self.tasks().list(&ListParams::default()).await.unwrap().iter().map(kube::ResourceExt::name_any).collect()
    }

    pub(crate) fn states(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn state(&self, name: &str) -> Option<ConfigMap> {
        self.states().get_opt(name).await.unwrap()
    }

    pub(crate) fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn templates(&self) -> Api<Template> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) fn tenants(&self) -> Api<Tenant> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn tenant(&self) -> Tenant {
        self.tenants().get("prod").await.unwrap()
    }

    /// A condition of the tenant: `False/PartialFailure`.
    pub(crate) async fn tenant_says(&self, condition: &str) -> String {
        let status = self.tenant().await.status.unwrap_or_default();
        let found = status.conditions.into_iter().find(|one| one.r#type == condition);
        found.map_or_else(String::new, |one| format!("{}/{}", one.status.as_str(), one.reason))
    }

    /// Reasons of the events on a route.
    pub(crate) async fn told(&self, route: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let about = |event: &Event| event.regarding.as_ref().and_then(|one| one.name.as_deref()) == Some(route);
        events.into_iter().filter(about).filter_map(|event| event.reason).collect()
    }

    /// Plays the worker: takes a task and ends it.
    pub(crate) async fn end_task(&self, name: &str, phase: Phase, message: &str, result: Value) {
        self.end_task_for(name, (phase, None), message, result).await;
    }

    /// The same, as a worker that gives its reason as a value.
    pub(crate) async fn end_task_for(
        &self,
        name: &str,
        (phase, reason): (Phase, Option<&str>),
        message: &str,
        result: Value,
    ) {
        let mut task = self.tasks().get(name).await.unwrap();
        let result: TaskResult = serde_json::from_value(result).unwrap();
        let (generation, hash) = (task.metadata.generation, task.hash().map(str::to_owned));
        let status = task.status.get_or_insert_default();
        status.phase = Some(phase);
        status.message = Some(message.to_owned());
        status.reason = reason.map(str::to_owned);
        status.worker_pod = Some("w1".to_owned());
        status.observed_generation = generation;
        status.annotation_hash = hash;
        status.result = Some(result);
        self.tasks().replace_status(name, &PostParams::default(), &task).await.unwrap();
    }

    /// Plays the worker: a plain route stands.
    pub(crate) async fn complete(&self, route: &str, hostname: &str) {
        let result = json!({
            "accountId": ACCOUNT, "hostname": hostname, "tunnelId": TUNNEL, "zoneId": ZONE, "hasRule": true,
            "hostnameRouteId": TUNNEL, "cnameRecordId": format!("record-{route}"),
        });
        self.end_task(&format!("cfzt-default-{route}"), Phase::Completed, "done", result).await;
        self.after(2).await;
    }

    /// Plays the worker: nothing is left of a route.
    pub(crate) async fn complete_removal(&self, route: &str) {
        self.end_task(&format!("cfzt-delete-default-{route}"), Phase::Completed, "done", json!({})).await;
        self.after(2).await;
    }

    /// A route that is published and settled.
    pub(crate) async fn settled(&self, name: &str) {
        let hostname = format!("{name}.example.com");
        self.publish(name, &hostname, &[]).await;
        self.complete(name, &hostname).await;
    }

    /// The version of the last write to anything.
    pub(crate) fn version(&self) -> u64 {
        self.kit.server().store().version()
    }
}
