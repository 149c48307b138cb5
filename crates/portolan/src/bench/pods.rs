//! Pods that report: all are there, Services select them, and each becomes ready while watchers look on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use http::Method;
use serde_json::{Value, json};

use super::Site;
use super::connection::{Connection, SentBody};
use super::fanout::{Fanout, Round};
use super::timing::Figures;
use super::workload::{Workload, count};

/// Pods that one Service selects, as many as one slice holds.
const PODS_OF_A_SERVICE: usize = 100;
const NODES: &str = "/api/v1/nodes";
const ACCOUNT: &str = "reporter";
const SETTLE_TIMEOUT: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Creates, reports, and what Services make of it. The node that the pods are on has the namespace's name.
pub(super) async fn run(site: Site<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let namespace = site.namespace;
    let mut control = Connection::open(site.target).await?;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": namespace}});
    control.send(Method::POST, NODES, SentBody::json(&node)).await?;
    let outcome = measure(&mut control, site, figures).await;
    let removed = control.send(Method::DELETE, &format!("{NODES}/{namespace}"), SentBody::none()).await;
    outcome?;
    removed.map(drop)
}

async fn measure(control: &mut Connection, site: Site<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let Site { target, namespace, load, pids } = site;
    for index in 0..load.pods.div_ceil(PODS_OF_A_SERVICE) {
        control.send(Method::POST, &path(namespace, "services"), SentBody::json(&service(index))).await?;
    }
    // Where nothing makes accounts, pods need one of their own.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    control.send(Method::POST, &path(namespace, "serviceaccounts"), SentBody::json(&account)).await?;
    let clients = Workload::connect(target, namespace, load).await?;
    let (elapsed, latencies) = clients.spread(load.clients, 0..load.pods, create).await?;
    figures.rate(&format!("pods_create_{}_clients", load.clients), elapsed, latencies);
    figures.memory("rss_after_pods_mib", pids);
    let round = reports(namespace, load.pods, &version(control, namespace).await?);
    let watching = Fanout::start(target, round, load.watchers).await?;
    let (elapsed, latencies) = watching.write(target, load.clients).await?;
    let reported = Instant::now();
    figures.rate(&format!("pod_status_delivery_{}_writers", load.clients), elapsed, latencies);
    if followed(control, namespace).await? {
        figures.duration("endpoints_behind_ms", settle(control, namespace, load.pods, reported).await?);
    }
    figures.memory("rss_after_reports_mib", pids);
    Ok(())
}

/// Whether something makes slices of this server's Services.
async fn followed(control: &mut Connection, namespace: &str) -> anyhow::Result<bool> {
    Ok(count(&slices(control, namespace).await?, b"\"addressType\"") > 0)
}

/// How long after the reports every pod stands ready in a slice.
async fn settle(control: &mut Connection, namespace: &str, pods: usize, reported: Instant) -> anyhow::Result<Duration> {
    loop {
        let ready = count(&slices(control, namespace).await?, b"\"ready\":true");
        if ready >= pods {
            return Ok(reported.elapsed());
        }
        let late = reported.elapsed() > SETTLE_TIMEOUT;
        ensure!(!late, "{ready} of {pods} pods stand in slices after {} s", SETTLE_TIMEOUT.as_secs());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn slices(control: &mut Connection, namespace: &str) -> anyhow::Result<bytes::Bytes> {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    control.send(Method::GET, &path, SentBody::none()).await
}

/// The version of the collection now, from which a watch sees what happens next.
async fn version(control: &mut Connection, namespace: &str) -> anyhow::Result<String> {
    let answer = control.send(Method::GET, &format!("{}?limit=1", path(namespace, "pods")), SentBody::none()).await?;
    let list: Value = serde_json::from_slice(&answer).context("a list is no JSON")?;
    Ok(list["metadata"]["resourceVersion"].as_str().context("a list has no version")?.to_owned())
}

/// A round in which each pod becomes ready.
fn reports(namespace: &str, pods: usize, version: &str) -> Round {
    let path = path(namespace, "pods");
    let watch = format!("{path}?watch=true&resourceVersion={version}");
    let write = move |index| {
        let bytes = report(index).to_string().into_bytes();
        let body = SentBody { content_type: "application/strategic-merge-patch+json", bytes };
        (Method::PATCH, format!("{path}/{}/status", name(index)), body)
    };
    Round { watch, event: "MODIFIED", objects: pods, write: Arc::new(write) }
}

fn path(namespace: &str, plural: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{plural}")
}

fn name(index: usize) -> String {
    format!("pod-{index:07}")
}

fn service(index: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": format!("service-{index}")},
        "spec": {"selector": {"shard": index.to_string()}, "ports": [{"port": 80}]},
    })
}

fn create(namespace: &str, index: usize) -> (Method, String, SentBody<'static>) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name(index), "labels": {"shard": (index / PODS_OF_A_SERVICE).to_string()}},
        "spec": {"nodeName": namespace, "serviceAccountName": ACCOUNT, "automountServiceAccountToken": false, "containers": [{
            "name": "main",
            "image": "registry.example/app:1",
            "ports": [{"name": "http", "containerPort": 8080}],
            "env": [{"name": "A", "value": "a"}],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
            "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        }]},
    });
    (Method::POST, path(namespace, "pods"), SentBody::json(&pod))
}

/// What a node says of a pod that runs.
fn report(index: usize) -> Value {
    let (third, fourth) = (index / 250 % 250, index % 250 + 1);
    let address = format!("10.{}.{third}.{fourth}", index / 62_500);
    let time = "2026-01-01T00:00:00Z";
    let conditions = ["Initialized", "ContainersReady", "Ready", "PodScheduled"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": time}));
    json!({"status": {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": time,
        "conditions": conditions,
        "containerStatuses": [{
            "name": "main", "image": "registry.example/app:1", "imageID": "", "ready": true, "restartCount": 0,
            "started": true, "state": {"running": {"startedAt": time}},
        }],
    }})
}
