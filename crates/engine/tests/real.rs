//! The engine against a real kube-apiserver: the same toy kind, on the wall's clock.

#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

#[path = "engine/gadget.rs"]
mod gadget;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use portolan_core::{OwnerId, Problem, reasons};
use portolan_engine::{Candidacy, Context, Controller, Handle, Job, Manager};
use portolan_parity::{ControlPlane, Durability};
use serde_json::json;

use gadget::{FINALIZER, Gadget, Gadgets, OLDER, Remote, definition, gadget, key};

const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: &str = "gadgets.test.portolan.dev";

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it happens in time")
}

async fn client_of(plane: &ControlPlane) -> Client {
    // Another test of the process may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::from_yaml(&plane.server().kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

struct World {
    client: Client,
    api: Api<Gadget>,
    remote: Arc<Remote>,
    context: Arc<Context>,
    handle: Arc<Mutex<Handle<String>>>,
}

impl World {
    async fn new(client: Client) -> Self {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        crds.create(&PostParams::default(), &definition()).await.unwrap();
        let name = "gadgets.test.portolan.dev";
        soon(await_condition(crds, name, conditions::is_crd_established())).await.unwrap();
        let clock = Arc::new(jiff::Timestamp::now);
        let mut context = Context::new(client.clone(), clock, OwnerId::derive("test"));
        "default".clone_into(&mut context.operator_namespace);
        context.timing.transient = Duration::from_millis(200);
        let (api, remote, handle) = (Api::namespaced(client.clone(), "default"), Arc::default(), Arc::default());
        Self { client, api, remote, context: Arc::new(context), handle }
    }

    fn start(&self, identity: &str) -> Manager {
        let (context, client, remote, slot) =
            (self.context.clone(), self.client.clone(), self.remote.clone(), self.handle.clone());
        let job = Job::new("gadgets", move |shutdown| {
            let gadgets = Arc::new(Gadgets { client: client.clone(), remote: remote.clone() });
            let controller = Controller::new(context.clone(), gadgets);
            *slot.lock().unwrap() = controller.handle();
            vec![controller.into_task(shutdown.clone())]
        });
        let candidacy =
            Candidacy { namespace: "default".to_owned(), lease: LEASE.to_owned(), identity: identity.to_owned() };
        Manager::start(&self.context, [job.elected(candidacy)])
    }

    async fn create(&self, gadget: Gadget) {
        self.api.create(&PostParams::default(), &gadget).await.unwrap();
    }

    /// Waits until the object says `Ready` with this reason for its present generation.
    async fn says(&self, name: &str, reason: &'static str) -> Gadget {
        let told = move |gadget: Option<&Gadget>| {
            gadget.is_some_and(|gadget| {
                let status = gadget.status.as_ref();
                status.is_some_and(|status| {
                    status.observed_generation == gadget.metadata.generation
                        && status.conditions.iter().any(|ready| ready.reason == reason)
                })
            })
        };
        soon(await_condition(self.api.clone(), name, told)).await.unwrap().unwrap()
    }

    async fn gone(&self, name: &str) {
        let uid = self.api.get_opt(name).await.unwrap().and_then(|gadget| gadget.uid());
        if let Some(uid) = uid {
            soon(await_condition(self.api.clone(), name, conditions::is_deleted(&uid))).await.unwrap();
        }
    }

    /// Waits for so many further looks and calls.
    async fn noted(&self, more: usize, act: impl FnOnce()) {
        let mut noted = self.remote.noted.subscribe();
        let target = *noted.borrow() + more;
        act();
        soon(noted.wait_for(|count| *count >= target)).await.unwrap();
    }

    async fn merge(&self, name: &str, patch: serde_json::Value) {
        self.api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

async fn an_object_lives_and_settles(world: &World) {
    world.create(gadget("a", "1")).await;
    let settled = world.says("a", "Synced").await;
    assert_eq!(settled.finalizers(), [FINALIZER]);
    assert_eq!(world.remote.take_writes(), ["create a"]);

    for _ in 0..10 {
        world.noted(1, || world.handle.lock().unwrap().enqueue(&key("a"))).await;
    }

    let handle = world.handle.lock().unwrap().clone();
    world.noted(1, || handle.enqueue(&key("a"))).await;
    assert_eq!(world.api.get("a").await.unwrap().resource_version(), settled.resource_version());
    world.merge("a", json!({"spec": {"value": "2"}})).await;
    world.says("a", "Synced").await;
    assert_eq!(world.remote.value("a").as_deref(), Some("2"));
}

async fn a_malformed_object_stops_nobody(world: &World) {
    let raw: Api<DynamicObject> =
        Api::namespaced_with(world.client.clone(), "default", &ApiResource::erase::<Gadget>(&()));
    let bad = json!({"apiVersion": "test.portolan.dev/v1", "kind": "Gadget",
        "metadata": {"name": "bad", "namespace": "default"}, "spec": {"value": 7}});
    raw.create(&PostParams::default(), &serde_json::from_value(bad).unwrap()).await.unwrap();

    let told = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["status"]["conditions"][0]["reason"] == "InvalidConfig")
    };
    soon(await_condition(raw.clone(), "bad", told)).await.unwrap();
    world.create(gadget("good", "1")).await;
    // The typed API cannot list while the bad one is there.
    let synced = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["status"]["conditions"][0]["reason"] == "Synced")
    };
    soon(await_condition(raw.clone(), "good", synced)).await.unwrap();
    raw.delete("bad", &DeleteParams::default()).await.unwrap();
}

async fn busy_annotators_cause_no_conflicts(world: &World) {
    let names: Vec<String> = (0..20).map(|number| format!("busy-{number}")).collect();
    let annotate = |name: String| {
        let api = world.api.clone();
        async move {
            for round in 0..25 {
                let patch = json!({"metadata": {"annotations": {"busy": round.to_string()}}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            }
        }
    };
    for name in &names {
        world.create(gadget(name, "1")).await;
    }
    futures::future::join_all(names.iter().cloned().map(annotate)).await;

    for name in &names {
        let gadget = world.says(name, "Synced").await;
        assert_eq!(gadget.finalizers(), [FINALIZER]);
    }
    let events = Api::<Event>::default_namespaced(world.client.clone()).list(&ListParams::default()).await.unwrap();
    let about = |event: &Event| event.regarding.as_ref().and_then(|about| about.name.clone()).unwrap_or_default();
    let warnings: Vec<_> = events
        .items
        .iter()
        .filter(|event| event.type_.as_deref() == Some("Warning") && about(event).starts_with("busy"))
        .collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    let created = events.items.iter().filter(|event| event.reason.as_deref() == Some("Created"));
    assert!(created.count() >= names.len(), "events are accepted");
}

async fn leftovers_of_an_older_operator_go(world: &World) {
    let status = json!({"status": {"creating": "left behind"}});
    let params = PatchParams { field_manager: Some("older".to_owned()), ..PatchParams::default() };
    world.api.patch_status("good", &params, &Patch::Merge(status)).await.unwrap();

    world.noted(1, || world.handle.lock().unwrap().enqueue(&key("good"))).await;

    let clean = |gadget: Option<&Gadget>| {
        gadget.is_some_and(|gadget| gadget.status.as_ref().is_some_and(|status| status.creating.is_none()))
    };
    soon(await_condition(world.api.clone(), "good", clean)).await.unwrap();
}

async fn deletion_waits_for_the_remote_side(world: &World) {
    let mut old = gadget("old", "1");
    old.metadata.finalizers = Some(vec![OLDER.to_owned()]);
    world.create(old).await;
    let held = world.says("old", "Synced").await;
    assert_eq!(held.finalizers(), [OLDER, FINALIZER]);
    world.remote.problems("old", &Problem::transient(reasons::API_ERROR, "500"), 3);

    world.api.delete("old", &DeleteParams::default()).await.unwrap();
    world.gone("old").await;

    assert_eq!(world.remote.value("old"), None);
    let events = Api::<Event>::default_namespaced(world.client.clone()).list(&ListParams::default()).await.unwrap();
    let failed = events.items.iter().filter(|event| event.reason.as_deref() == Some("DeleteFailed"));
    assert_eq!(failed.count(), 1);
}

async fn the_next_one_leads_when_the_first_stops(world: &World, first: Manager) {
    let second = world.start("second");
    world.create(gadget("before", "1")).await;
    world.says("before", "Synced").await;

    soon(first.shutdown()).await;
    world.create(gadget("after", "1")).await;
    world.says("after", "Synced").await;

    assert_eq!(second.leading(), ["gadgets"]);
    let lease = Api::<Lease>::default_namespaced(world.client.clone()).get(LEASE).await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("second"));
    soon(second.shutdown()).await;
}

async fn run(plane: &ControlPlane) {
    let world = World::new(client_of(plane).await).await;
    let first = world.start("first");
    an_object_lives_and_settles(&world).await;
    a_malformed_object_stops_nobody(&world).await;
    busy_annotators_cause_no_conflicts(&world).await;
    leftovers_of_an_older_operator_go(&world).await;
    deletion_waits_for_the_remote_side(&world).await;
    the_next_one_leads_when_the_first_stops(&world, first).await;
    println!("engine: 6 scenarios on the real API server, ok");
}

fn main() {
    // The harness of `cargo test` may ask for a list; this is one test that says itself when it cannot run.
    if std::env::args().any(|argument| argument == "--list") {
        println!("real: test");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match ControlPlane::start(Durability::None).await {
            Ok(plane) => run(&plane).await,
            Err(reason) => println!("ENGINE ON THE REAL API SERVER NOT RUN: {reason}"),
        }
    });
}
