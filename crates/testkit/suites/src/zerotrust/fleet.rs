//! The operator's own Deployments in a world: how they come to be, how their pods roll, and what must hold of them.
//!
//! Nothing runs the pods: their statuses are set here. `ReplicaSet`s and pods are made, and Deployments told of them, by the
//! controllers of the API server, of a real one and of the embedded one alike.

pub mod checks;

use std::time::Duration;

use portolan_zerotrust::manager::WorkerKind;
use serde_json::{Value, json};

use super::OPERATOR_NAMESPACE;
use super::roles::Roles;
use crate::world::{Builder, World};

/// The manager's Deployment.
pub const OPERATOR: &str = "cloudflare-zero-trust-operator";
/// How long a real control plane may take to roll.
const ROLLS_WITHIN: Duration = Duration::from_secs(60);

/// `Kind/namespace/name` in the operator's namespace.
pub fn id(kind: &str, name: &str) -> String {
    format!("{kind}/{OPERATOR_NAMESPACE}/{name}")
}

/// A configuration of the operator.
pub fn config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustOperatorConfig",
        "metadata": { "name": name, "namespace": OPERATOR_NAMESPACE }, "spec": spec,
    })
}

/// The manager's Deployment as a chart leaves it.
pub fn operator() -> Value {
    let labels = json!({
        "app.kubernetes.io/name": OPERATOR, "app.kubernetes.io/instance": "cfzt", "app.kubernetes.io/component": "operator",
    });
    let env = json!([
        { "name": "ROLE", "value": "manager" },
        { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
        { "name": "LOG_LEVEL", "value": "INFO" },
        { "name": "WATCH_NAMESPACES", "value": "shop" },
    ]);
    let container = json!({
        "name": "operator", "image": "registry.example.com/portolan:1", "args": ["run"], "env": env,
        "resources": { "requests": { "cpu": "100m", "memory": "256Mi" } },
        "ports": [{ "name": "health", "containerPort": 8081 }],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": OPERATOR, "namespace": OPERATOR_NAMESPACE, "labels": labels },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "imagePullSecrets": [{ "name": "pull" }], "containers": [container] },
            },
        },
    })
}

/// A world whose only process is the manager, in a pod of its Deployment, with its workers made and everything ready.
pub async fn begun(builder: &Builder) -> World {
    begun_as(builder, Roles::manager).await
}

/// The same with another division into processes, told the pod.
pub async fn begun_as(builder: &Builder, roles: impl Fn(&str) -> Roles) -> World {
    let world = builder.clone().roles(roles("nobody")).asleep().start().await;
    assert!(world.runs_workloads(), "Deployments need controllers: say Builder::workloads");
    world.cluster.apply(&operator()).await;
    roll(&world, "sha256:1").await;
    let pod = pod_of(&world, "operator").await;
    let world = world.with_roles(roles(&pod));
    world.restart().await;
    world.settle().await;
    roll(&world, "sha256:1").await;
    world.settle().await;
    world.forget();
    world
}

/// A Deployment of the operator.
pub async fn deployment(world: &World, name: &str) -> Value {
    world.cluster.get(&id("Deployment", name)).await.expect("the Deployment is there")
}

/// The Deployments of both workers.
pub async fn workers(world: &World) -> [Value; 2] {
    let [kube, cloudflare] = WorkerKind::ALL;
    [deployment(world, kube.name()).await, deployment(world, cloudflare.name()).await]
}

/// The only container of a Deployment's pods.
pub fn container(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]
}

/// The values of a variable, one for each entry.
pub fn variable(deployment: &Value, name: &str) -> Vec<String> {
    let entries = container(deployment)["env"].as_array().into_iter().flatten();
    entries.filter(|one| one["name"] == name).map(|one| one["value"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The pod of a component.
pub async fn pod_of(world: &World, component: &str) -> String {
    let pods = pods(world).await;
    let found = pods.iter().find(|pod| pod["metadata"]["labels"]["app.kubernetes.io/component"] == component);
    found.and_then(|pod| pod["metadata"]["name"].as_str()).expect("the component has a pod").to_owned()
}

/// The pods that are not on their way out.
async fn pods(world: &World) -> Vec<Value> {
    let mut pods = world.cluster.list("Pod").await;
    pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    pods
}

/// Lets all pods of the newest templates come and run this image, and the older ones go.
pub async fn roll(world: &World, digest: &str) {
    let rolled = world
        .holds_within(ROLLS_WITHIN * 100, async |world: &World| {
            run_pods(world, digest).await;
            let all = world.cluster.list("Deployment").await;
            let pods = pods(world).await.len();
            all.iter().all(is_rolled) && pods == all.iter().map(wanted).sum::<usize>()
        })
        .await;
    assert!(rolled, "the Deployments roll: {:#?}", world.cluster.list("Deployment").await);
}

/// Lets pods of the newest templates come that nothing can run.
pub async fn stall(world: &World) {
    let seen = async |world: &World| {
        let all = world.cluster.list("Deployment").await;
        all.iter().all(|one| one["status"]["observedGeneration"] == one["metadata"]["generation"])
    };
    assert!(world.holds_within(ROLLS_WITHIN * 100, seen).await, "the Deployments are looked at");
}

fn wanted(deployment: &Value) -> usize {
    usize::try_from(deployment["spec"]["replicas"].as_u64().unwrap_or(1)).expect("a Deployment has few pods")
}

fn is_rolled(deployment: &Value) -> bool {
    let (status, replicas) = (&deployment["status"], &deployment["spec"]["replicas"]);
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "readyReplicas"].iter().all(|name| status[*name] == *replicas)
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

/// Sets the statuses of all pods: they run this image.
pub async fn run_pods(world: &World, digest: &str) {
    for pod in pods(world).await {
        let spec = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
        let containers: Vec<Value> = spec.iter().map(|one| running(one, digest)).collect();
        let condition = |kind: &str| json!({ "type": kind, "status": "True" });
        let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
        let status = json!({ "phase": "Running", "conditions": conditions, "containerStatuses": containers });
        world.cluster.patch_status(&id("Pod", text(&pod, "name")), &json!({ "status": status })).await;
    }
}

fn running(container: &Value, digest: &str) -> Value {
    json!({
        "name": container["name"], "image": container["image"], "imageID": format!("registry.example.com/portolan@{digest}"),
        "ready": true, "started": true, "restartCount": 0, "state": { "running": { "startedAt": "2026-01-01T00:00:00Z" } },
    })
}
