//! The test kit's world with the job, and pods that a test says to be ready.

use portolan_bind9::Settings;
use portolan_testkit::job::OncePerJob;
use portolan_testkit::process::Processes;
use portolan_testkit::{Builder, OperatorProcess, World, WorldJob};
use serde_json::{Value, json};

pub(crate) static JOB: WorldJob = WorldJob {
    definition: &portolan_bind9::JOB,
    account: "",
    zone: "",
    token: "",
    namespaces: &["bindy-system", "dns", "team"],
    processes: || Processes::one("bind9"),
    seed: |_, _| (),
    objects: |_| Vec::new(),
    assert_sound: |_, _| Box::pin(std::future::ready(())),
    canonical_form: |_| Box::pin(std::future::ready(Value::Null)),
    once: OncePerJob::new(),
};

pub(crate) const GROUP: &str = "bindy.firestoned.io/v1beta1";

/// A world whose API server makes pods of workloads.
pub(crate) async fn world() -> World {
    Builder::of(&JOB).workloads().start().await
}

/// The same, whose operator looks at some namespaces only.
pub(crate) async fn world_watching(namespaces: &'static [&'static str]) -> World {
    let settings = move || Settings {
        watch_namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
        ..Settings::default()
    };
    let processes =
        Processes::told(vec![OperatorProcess::of("bind9")], move |_, provisions| provisions.with(settings()));
    Builder::of(&JOB).workloads().roles(processes).start().await
}

/// An object of the job's.
pub(crate) fn object(kind: &str, key: &str, spec: Value) -> Value {
    let (namespace, name) = key.split_once('/').map_or((None, key), |(namespace, name)| (Some(namespace), name));
    json!({"apiVersion": GROUP, "kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

/// Applies an object and lets everything happen that follows.
pub(crate) async fn applied(world: &World, kind: &str, key: &str, spec: Value) {
    world.cluster.apply(&object(kind, key, spec)).await;
    world.settle().await;
}

/// Makes all pods ready, as a node does.
pub(crate) async fn pods_become_ready(world: &World) {
    for pod in world.cluster.list("Pod").await {
        let (namespace, name) =
            (pod["metadata"]["namespace"].as_str().unwrap(), pod["metadata"]["name"].as_str().unwrap());
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"phase": "Running", "podIP": "127.77.0.9", "conditions": [ready]}});
        world.cluster.patch_status(&format!("Pod/{namespace}/{name}"), &status).await;
    }
    world.settle().await;
}

/// Names of objects of a kind, in all namespaces, in order.
pub(crate) async fn names(world: &World, kind: &str) -> Vec<String> {
    let name = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", text("namespace"), text("name"))
    };
    let mut all: Vec<String> = world.cluster.list(kind).await.iter().map(name).collect();
    all.sort();
    all
}
