//! `kube-runtime` runs unmodified, in process and over TLS: every scenario is played on both.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::wait::{Condition, await_condition, conditions};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{finalizer, reflector};
use kube::{Client, Resource as _, ResourceExt as _};
use portolan_apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

/// Nothing here takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it happens in time")
}

async fn open() -> ApiServer {
    ApiServer::open(Config::default()).await.expect("memory opens")
}

/// Plays a scenario on a new server in process, then on a new one over TLS.
async fn in_process_and_over_tls<F: Future<Output = ()>>(scenario: impl Fn(Client) -> F) {
    let server = open().await;
    soon(Box::pin(scenario(Client::new(server.service(), "default")))).await;

    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let running = open().await.serve(([127, 0, 0, 1], 0).into()).await.expect("loopback has a free port");
    let kubeconfig = Kubeconfig::from_yaml(&running.kubeconfig()).expect("the kubeconfig is one");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("the kubeconfig is complete");
    let client = Client::try_from(config).expect("the certificate is usable");
    soon(Box::pin(scenario(client))).await;
    soon(running.shutdown()).await;
}

fn of<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the literal is of its kind")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    of(json!({"metadata": {"name": name, "labels": {"role": "parent"}}, "data": {"a": value}}))
}

async fn create<K>(api: &Api<K>, object: &K) -> K
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    api.create(&PostParams::default(), object).await.expect("it is created")
}

async fn merge(api: &Api<ConfigMap>, name: &str, value: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(value)).await.expect("it is patched");
}

async fn reached<K>(api: &Api<K>, name: &str, condition: impl Condition<K>) -> Option<K>
where
    K: Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + kube::Resource + 'static,
{
    await_condition(api.clone(), name, condition).await.expect("the watch holds")
}

/// One event in a word and a name.
fn told(event: Event<ConfigMap>) -> String {
    match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(map) => format!("initially {}", map.name_any()),
        Event::InitDone => "ready".to_owned(),
        Event::Apply(map) => format!("{}={}", map.name_any(), map.data.unwrap_or_default()["a"]),
        Event::Delete(map) => format!("{} gone", map.name_any()),
    }
}

async fn watcher_follows(client: Client, config: watcher::Config) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    for name in ["one", "three", "two"] {
        create(&api, &config_map(name, "1")).await;
    }
    let mut events = std::pin::pin!(watcher(api.clone(), config));
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "ready") {
        seen.push(told(events.next().await.expect("a watcher has no end").expect("it is listed")));
    }
    create(&api, &config_map("four", "1")).await;
    merge(&api, "one", json!({"data": {"a": "2"}})).await;
    api.delete("two", &DeleteParams::default()).await.expect("it is deleted");
    for _ in 0..3 {
        seen.push(told(events.next().await.expect("a watcher has no end").expect("it is watched")));
    }

    let initially = ["init", "initially one", "initially three", "initially two", "ready"];
    assert_eq!(seen, [&initially[..], &["four=1", "one=2", "two gone"]].concat());
}

#[tokio::test]
async fn a_watcher_lists_in_pages_and_then_watches() {
    in_process_and_over_tls(|client| watcher_follows(client, watcher::Config::default().page_size(2))).await;
}

#[tokio::test]
async fn a_watcher_follows_a_streaming_list() {
    in_process_and_over_tls(|client| watcher_follows(client, watcher::Config::default().streaming_lists())).await;
}

#[tokio::test]
async fn a_reflector_mirrors_what_its_selector_matches() {
    in_process_and_over_tls(|client| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        create(&api, &config_map("one", "1")).await;
        create(&api, &of(json!({"metadata": {"name": "other"}}))).await;
        let (store, writer) = reflector::store();
        let config = watcher::Config::default().labels("role=parent");
        let mut events = std::pin::pin!(reflector::reflector(writer, watcher(api.clone(), config)));
        let mut wants = async |wanted: &[&str]| loop {
            let mut names: Vec<_> = store.state().iter().map(|map| map.name_any()).collect();
            names.sort();
            if names == wanted {
                break;
            }
            events.next().await.expect("a watcher has no end").expect("it is watched");
        };

        wants(&["one"]).await;
        create(&api, &config_map("two", "1")).await;
        wants(&["one", "two"]).await;
        merge(&api, "one", json!({"metadata": {"labels": {"role": "none"}}})).await;
        wants(&["two"]).await;
        api.delete("two", &DeleteParams::default()).await.expect("it is deleted");
        wants(&[]).await;
    })
    .await;
}

/// Copies a config map into a Secret that it owns.
async fn copy(parent: Arc<ConfigMap>, secrets: Arc<Api<Secret>>) -> Result<Action, kube::Error> {
    let owner = parent.controller_owner_ref(&()).expect("objects of the server have a name and a uid");
    let mut child = Secret { data: Some(secret_data(&parent)), ..Secret::default() };
    child.metadata.name = Some(parent.name_any());
    child.metadata.owner_references = Some(vec![owner]);
    secrets.patch(&parent.name_any(), &PatchParams::apply("copier").force(), &Patch::Apply(child)).await?;
    Ok(Action::await_change())
}

fn secret_data(map: &ConfigMap) -> BTreeMap<String, ByteString> {
    map.data.iter().flatten().map(|(key, value)| (key.clone(), ByteString(value.clone().into_bytes()))).collect()
}

fn holds(value: &'static str) -> impl Condition<Secret> {
    move |secret: Option<&Secret>| {
        let data = secret.and_then(|secret| secret.data.as_ref());
        data.is_some_and(|data| data["a"].0 == value.as_bytes())
    }
}

fn retry<K, E, C>(_: Arc<K>, _: &E, _: Arc<C>) -> Action {
    Action::requeue(Duration::from_millis(50))
}

#[tokio::test]
async fn a_controller_keeps_what_it_owns_in_step() {
    in_process_and_over_tls(|client| async move {
        let parents: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client);
        let (stop, stopped) = oneshot::channel::<()>();
        let controller = Controller::new(parents.clone(), watcher::Config::default().labels("role=parent"))
            .owns(secrets.clone(), watcher::Config::default())
            .graceful_shutdown_on(async { drop(stopped.await) })
            .run(copy, retry, Arc::new(secrets.clone()));
        let running = tokio::spawn(controller.for_each(|_| async {}));

        create(&parents, &config_map("one", "1")).await;
        reached(&secrets, "one", holds("1")).await;
        merge(&parents, "one", json!({"data": {"a": "2"}})).await;
        let second = reached(&secrets, "one", holds("2")).await.expect("it is there");
        let uid = second.uid().expect("it has one");
        secrets.delete("one", &DeleteParams::default()).await.expect("it is deleted");
        let again = |s: Option<&Secret>| s.is_some_and(|s| s.uid().is_some_and(|new| new != uid));
        let third = reached(&secrets, "one", again).await.expect("it is made again");
        parents.delete("one", &DeleteParams::default()).await.expect("it is deleted");
        reached(&secrets, "one", conditions::is_deleted(&third.uid().expect("it has one"))).await;

        stop.send(()).expect("the controller still runs");
        running.await.expect("it stops when asked to");
    })
    .await;
}

struct Tidying {
    api: Api<ConfigMap>,
    /// What was asked for, in order.
    log: Mutex<Vec<&'static str>>,
    /// Cleaning up needs a permit.
    allowed: Semaphore,
}

async fn tidy(map: Arc<ConfigMap>, context: Arc<Tidying>) -> Result<Action, finalizer::Error<Infallible>> {
    let told = |what| context.log.lock().expect("nothing panics while logging").push(what);
    finalizer(&context.api, "portolan.dev/tidy", map, async |event| {
        match event {
            finalizer::Event::Apply(_) => told("apply"),
            finalizer::Event::Cleanup(_) => {
                context.allowed.acquire().await.expect("it is never closed").forget();
                told("cleanup");
            }
        }
        Ok(Action::await_change())
    })
    .await
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_cleaned_up() {
    in_process_and_over_tls(|client| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let context = Arc::new(Tidying { api: api.clone(), log: Mutex::default(), allowed: Semaphore::new(0) });
        let controller = Controller::new(api.clone(), watcher::Config::default().labels("role=parent"));
        let running = tokio::spawn(controller.run(tidy, retry, context.clone()).for_each(|_| async {}));

        let uid = create(&api, &config_map("one", "1")).await.uid().expect("it has one");
        reached(&api, "one", |m: Option<&ConfigMap>| m.is_some_and(|m| !m.finalizers().is_empty())).await;
        let deleted = api.delete("one", &DeleteParams::default()).await.expect("it is deleted");
        let held = api.get("one").await.expect("it is still there");
        context.allowed.add_permits(1);
        reached(&api, "one", conditions::is_deleted(&uid)).await;
        running.abort();

        assert!(deleted.left().is_some_and(|map| map.meta().deletion_timestamp.is_some()), "the answer is the object");
        assert!(held.meta().deletion_timestamp.is_some());
        assert_eq!(held.finalizers(), ["portolan.dev/tidy"]);
        let log = context.log.lock().expect("nothing panics while logging");
        assert_eq!(log.iter().filter(|what| **what == "cleanup").count(), 1);
        assert_eq!(log.last(), Some(&"cleanup"));
    })
    .await;
}

fn voyages() -> CustomResourceDefinition {
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"to": {"type": "string"}}}}});
    of(json!({
        "metadata": {"name": "voyages.sea.dev"},
        "spec": {
            "group": "sea.dev", "scope": "Namespaced", "names": {"plural": "voyages", "kind": "Voyage"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    }))
}

#[tokio::test]
async fn conditions_are_awaited() {
    in_process_and_over_tls(|client| async move {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = create(&definitions, &voyages()).await;
        reached(&definitions, "voyages.sea.dev", conditions::is_crd_established()).await;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("sea.dev", "v1", "Voyage"));
        let voyages: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
        let voyage = DynamicObject::new("home", &kind).data(json!({"spec": {"to": "Genoa"}}));
        let made = create(&voyages, &voyage).await;
        definitions.delete("voyages.sea.dev", &DeleteParams::default()).await.expect("it is deleted");
        reached(&definitions, "voyages.sea.dev", conditions::is_deleted(&definition.uid().expect("it has one"))).await;

        let pods: Api<Pod> = Api::default_namespaced(client);
        let running = tokio::spawn(await_condition(pods.clone(), "web", conditions::is_pod_running()));
        create(&pods, &of(json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "a"}]}})))
            .await;
        let phase = Patch::Merge(json!({"status": {"phase": "Running"}}));
        pods.patch_status("web", &PatchParams::default(), &phase).await.expect("its status is written");
        let pod = running.await.expect("it does not panic").expect("the watch holds");

        assert_eq!(made.data["spec"]["to"], "Genoa");
        assert_eq!(pod.and_then(|pod| pod.status?.phase).as_deref(), Some("Running"));
    })
    .await;
}

const LEASE: &str = "helm";
const CANDIDATES: usize = 4;
const TERMS: usize = 3;

/// A candidate for the lease, after the rules of client-go: whoever writes over the version it has read, leads.
struct Candidate {
    leases: Api<Lease>,
    identity: String,
}

impl Candidate {
    fn new(client: &Client, identity: impl ToString) -> Self {
        Self { leases: Api::default_namespaced(client.clone()), identity: identity.to_string() }
    }

    /// The lease, if it was free and nobody else was faster.
    async fn acquire(&self) -> Option<Lease> {
        match self.leases.get_opt(LEASE).await.expect("it is read") {
            None => unless_conflict(self.leases.create(&PostParams::default(), &self.claim(Lease::default())).await),
            Some(lease) if is_free(&lease) => self.write(self.claim(lease)).await,
            Some(_) => None,
        }
    }

    fn claim(&self, mut lease: Lease) -> Lease {
        lease.metadata.name = Some(LEASE.to_owned());
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = Some(3600);
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default() + 1);
        spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
        lease
    }

    /// The leader says that it is there still, or that it was there last at some time.
    async fn renew(&self, mut lease: Lease, at: jiff::Timestamp) -> Option<Lease> {
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(at));
        self.write(lease).await
    }

    async fn release(&self, mut lease: Lease) -> Option<Lease> {
        lease.spec.get_or_insert_default().holder_identity = None;
        self.write(lease).await
    }

    async fn write(&self, lease: Lease) -> Option<Lease> {
        unless_conflict(self.leases.replace(LEASE, &PostParams::default(), &lease).await)
    }
}

fn is_free(lease: &Lease) -> bool {
    let Some(spec) = &lease.spec else { return true };
    let lasts = Duration::from_secs(spec.lease_duration_seconds.unwrap_or_default().unsigned_abs().into());
    let expired = spec.renew_time.as_ref().is_none_or(|renewed| renewed.0 + lasts < jiff::Timestamp::now());
    expired || spec.holder_identity.as_ref().is_none_or(String::is_empty)
}

fn unless_conflict(result: kube::Result<Lease>) -> Option<Lease> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 409 => None,
        written => Some(written.expect("only a conflict stops a candidate")),
    }
}

/// Leads some terms, each to its end. Returns the numbers of the terms.
async fn lead(candidate: Candidate, leaders: Arc<AtomicUsize>) -> Vec<i32> {
    let mut terms = Vec::new();
    while terms.len() < TERMS {
        let Some(lease) = candidate.acquire().await else {
            reached(&candidate.leases, LEASE, |l: Option<&Lease>| l.is_none_or(is_free)).await;
            continue;
        };
        assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "one leads at a time");
        let lease = candidate.renew(lease, jiff::Timestamp::now()).await.expect("nobody else writes in this term");
        terms.extend(lease.spec.as_ref().and_then(|spec| spec.lease_transitions));
        leaders.fetch_sub(1, Ordering::SeqCst);
        candidate.release(lease).await.expect("nobody else writes in this term");
    }
    terms
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_candidate_at_a_time_leads_by_a_lease() {
    in_process_and_over_tls(|client| async move {
        let leaders = Arc::new(AtomicUsize::new(0));
        let racing = (0..CANDIDATES).map(|n| tokio::spawn(lead(Candidate::new(&client, n), leaders.clone())));
        let ended = futures::future::join_all(racing).await;

        let mut terms: Vec<_> = ended.into_iter().flat_map(|led| led.expect("no candidate gives up")).collect();
        terms.sort_unstable();
        let expected: Vec<_> = (1..).take(CANDIDATES * TERMS).collect();
        assert_eq!(terms, expected, "every term has one leader");
    })
    .await;
}

#[tokio::test]
async fn a_leader_that_comes_back_too_late_has_lost_its_lease() {
    in_process_and_over_tls(|client| async move {
        let (first, second) = (Candidate::new(&client, "first"), Candidate::new(&client, "second"));
        let lease = first.acquire().await.expect("nobody leads");
        assert!(second.acquire().await.is_none(), "the lease is held");
        let long_ago = jiff::Timestamp::now() - Duration::from_secs(7200);
        let stale = first.renew(lease, long_ago).await.expect("it is the leader's");

        let taken = second.acquire().await.expect("the lease has expired");

        assert!(first.renew(stale, jiff::Timestamp::now()).await.is_none(), "its version is not the last");
        let now = second.leases.get(LEASE).await.expect("it is read");
        assert_eq!(now, taken);
        assert_eq!(now.spec.and_then(|spec| spec.holder_identity).as_deref(), Some("second"));
    })
    .await;
}
