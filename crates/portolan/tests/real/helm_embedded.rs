//! The real helm against the embedded API server: a chart with a Deployment, a Service, an Ingress, hooks and a
//! definition is installed, upgraded, rolled back and uninstalled. A thread is the node: it binds pods and tells of them what a kubelet would.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::helm::{Helm, tell};
use crate::support::{Run, Server};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};

const NODE: &str = "quay";
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/charts/harbour");

#[test]
fn a_release_lives_its_whole_life_on_the_embedded_server() {
    let Some(helm) = Helm::find("releases on the embedded server") else { return };
    let server = Server::start();
    let _node = Node::start(&server);

    release(&helm, &server, &["install", "sea", CHART, "--wait", "--timeout", "90s"]);
    assert_eq!(get(&server, "deployments", "sea")["status"]["readyReplicas"], 2);
    assert_eq!(get(&server, "jobs", "sea-prepare")["status"]["succeeded"], 1);
    assert_eq!(get(&server, "configmaps", "sea-installed")["data"]["revision"], "1");
    assert_eq!(get(&server, "buoys", "sea")["spec"], json!({"colour": "red", "depth": 2}));
    until(|| endpoints(&server) == 2, "both pods are behind the service");

    let upgrade = ["upgrade", "sea", CHART, "--set", "greeting=hello,replicas=3", "--wait", "--timeout", "90s"];
    release(&helm, &server, &upgrade);
    let deployment = get(&server, "deployments", "sea");
    assert_eq!((&deployment["status"]["updatedReplicas"], &deployment["status"]["replicas"]), (&json!(3), &json!(3)));
    assert_eq!(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    assert_eq!(get(&server, "configmaps", "sea")["data"]["greeting"], "hello");
    assert_eq!(get(&server, "configmaps", "sea-installed")["data"]["revision"], "2");

    release(&helm, &server, &["rollback", "sea", "1", "--wait", "--timeout", "90s"]);
    let deployment = get(&server, "deployments", "sea");
    assert_eq!((&deployment["spec"]["replicas"], &deployment["status"]["updatedReplicas"]), (&json!(2), &json!(2)));
    assert_eq!(get(&server, "configmaps", "sea")["data"]["greeting"], "ahoy");
    let history = release(&helm, &server, &["history", "sea", "-o", "json"]);
    let history: Value = serde_json::from_str(&history).unwrap();
    let states: Vec<&str> = history.as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["superseded", "superseded", "deployed"]);

    release(&helm, &server, &["uninstall", "sea", "--wait", "--timeout", "90s"]);
    for kind in ["deployments", "services", "ingresses", "replicasets", "buoys"] {
        let left = server.run(&["get", kind, "-o", "name"]).succeeded();
        assert!(!left.contains("/sea"), "{kind}: {left}");
    }
    assert_eq!(server.run(&["get", "customresourcedefinitions", "buoys.sea.example.com"]).code, Some(0));
    tell("helm: a release installed, upgraded, rolled back and uninstalled on the embedded server");
}

#[test]
fn a_chart_that_the_server_refuses_leaves_its_reason() {
    let Some(helm) = Helm::find("a refused release on the embedded server") else { return };
    let server = Server::start();

    let refused = helm_on(&helm, &server, &["install", "sea", CHART, "--no-hooks", "--set", "host=Not_A_Host"]);

    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("spec.rules[0].host"), "{refused}");
}

fn helm_on(helm: &Helm, server: &Server, arguments: &[&str]) -> Run {
    let mut command = helm.command(arguments);
    command.env("KUBECONFIG", server.kubeconfig()).output().expect("helm runs").into()
}

fn release(helm: &Helm, server: &Server, arguments: &[&str]) -> String {
    helm_on(helm, server, arguments).succeeded()
}

fn get(server: &Server, kind: &str, name: &str) -> Value {
    let text = server.run(&["get", kind, name, "-o", "json"]).succeeded();
    serde_json::from_str(&text).unwrap()
}

/// Looks until it holds; controllers may be a moment behind.
fn until(holds: impl Fn() -> bool, what: &str) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How many addresses are behind the release's service.
fn endpoints(server: &Server) -> usize {
    let text = server.run(&["get", "endpointslices", "-o", "json"]).succeeded();
    let list: Value = serde_json::from_str(&text).unwrap();
    let slices = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["metadata"]["labels"]["kubernetes.io/service-name"] == "sea");
    slices.map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).sum()
}

/// Binds pods and tells of them what a kubelet would: those of Jobs have done their work, all others are ready.
struct Node {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    fn start(server: &Server) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(keep_telling(kubeconfig, &seen));
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn keep_telling(kubeconfig: Kubeconfig, stop: &AtomicBool) {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let node = serde_json::from_value(json!({"metadata": {"name": NODE}})).unwrap();
    Api::<k8s_openapi::api::core::v1::Node>::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let there = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        for pod in there {
            number += tell_of(&pods, &pod, number).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Answers how many addresses were given out.
async fn tell_of(pods: &Api<Pod>, pod: &Pod, number: u8) -> u8 {
    let name = pod.name_any();
    if pod.metadata.deletion_timestamp.is_some() {
        let now = kube::api::DeleteParams::default().grace_period(0);
        // It may have gone by itself.
        let _ = pods.delete(&name, &now).await;
        return 0;
    }
    if pod.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Pending") {
        return 0;
    }
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}});
    let bound: Result<Value, kube::Error> =
        pods.create_subresource("binding", &name, &PostParams::default(), &binding).await;
    if bound.is_err() && pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()) {
        return 0;
    }
    let of_job = pod.owner_references().iter().any(|owner| owner.kind == "Job");
    let status = if of_job { done() } else { ready(number) };
    let told = pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await;
    u8::from(told.is_ok())
}

fn done() -> Value {
    let end = json!({"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T00:00:01Z", "startedAt": "2026-01-01T00:00:00Z"});
    json!({"status": {"phase": "Succeeded", "containerStatuses": [{
        "name": "prepare", "ready": false, "restartCount": 0, "image": "", "imageID": "", "state": {"terminated": end},
    }]}})
}

fn ready(number: u8) -> Value {
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|condition| json!({"type": condition, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    let address = format!("127.77.0.{}", number + 1);
    json!({"status": {"phase": "Running", "conditions": conditions, "podIP": address, "podIPs": [{"ip": address}]}})
}
