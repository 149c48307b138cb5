//! Deployments on a server whose workload controllers run.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use crate::support::{PATIENCE, send};
use portolan_apiserver::{ApiServer, ApiService, Config, Workloads};
use serde_json::{Value, json};
use tokio::time::Instant;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/api/v1/namespaces/default/events";

fn config() -> Config {
    let start = Instant::now();
    let epoch = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let clock = move || epoch.checked_add(start.elapsed()).unwrap();
    Config { workloads: Workloads::On, seed: Some(1), clock: Arc::new(clock), ..Config::default() }
}

/// A server in memory, and what tests ask of it.
struct Cluster {
    server: ApiServer,
    service: ApiService,
}

impl Cluster {
    async fn open(config: Config) -> Self {
        let server = ApiServer::open(config).await.unwrap();
        let service = server.service();
        Self { server, service }
    }

    async fn create(&self, path: &str, object: &Value) {
        send(&self.service, "POST", path, "application/json", object.to_string()).await.ok();
    }

    async fn patch(&self, path: &str, patch: &Value) {
        send(&self.service, "PATCH", path, "application/merge-patch+json", patch.to_string()).await.ok();
    }

    async fn get(&self, path: &str) -> Value {
        send(&self.service, "GET", path, "", "").await.ok()
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        self.get(path).await["items"].as_array().unwrap().clone()
    }

    /// Looks until it is so.
    async fn until(&self, path: &str, what: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.get(path).await;
            if what(&found) {
                return found;
            }
            assert!(Instant::now() < deadline, "never came: {found}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn pods(&self, selector: &str, count: usize) -> Vec<String> {
        let path = format!("{PODS}?labelSelector={selector}");
        let list = self.until(&path, |list| list["items"].as_array().unwrap().len() == count).await;
        let names = list["items"].as_array().unwrap().iter().map(|pod| pod["metadata"]["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    async fn make_ready(&self, pods: &[String]) {
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        for pod in pods {
            self.patch(&format!("{PODS}/{pod}/status"), &json!({"status": status})).await;
        }
    }

    async fn until_complete(&self, name: &str) -> Value {
        let is_done = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            seen && conditions.into_iter().any(|c| c["reason"] == "NewReplicaSetAvailable")
        };
        self.until(&format!("{DEPLOYMENTS}/{name}"), is_done).await
    }
}

fn deployment(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name, "v": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    })
}

fn version(version: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"labels": {"v": version}}}}})
}

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_pods_rolls_and_costs_nothing_when_settled() {
    let cluster = Cluster::open(config()).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 2)).await;
    let first = cluster.pods("v%3D1", 2).await;
    cluster.make_ready(&first).await;
    cluster.until_complete("web").await;

    cluster.patch(&format!("{DEPLOYMENTS}/web"), &version("2")).await;
    for _ in 0..2 {
        let path = format!("{PODS}?labelSelector=v%3D2");
        let list = cluster
            .until(&path, |list| {
                list["items"].as_array().unwrap().iter().any(|pod| pod["status"]["phase"] != "Running")
            })
            .await;
        let new: Vec<String> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        cluster.make_ready(&new).await;
    }
    let done = cluster.until_complete("web").await;
    cluster.pods("v%3D1", 0).await;

    assert_eq!(done["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    let managed = done["metadata"]["managedFields"].as_array().unwrap();
    assert!(managed.iter().any(|m| m["manager"] == "kube-controller-manager" && m["subresource"] == "status"));
    let settled = cluster.server.store().version();
    // Events go after an hour, and that is a write.
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(cluster.server.store().version(), settled);
}

#[tokio::test]
async fn a_restart_in_the_middle_of_a_rollout_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let config =
        || Config { data_dir: Some(directory.path().join("data")), workloads: Workloads::On, ..Config::default() };
    let cluster = Cluster::open(config()).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 2)).await;
    let first = cluster.pods("v%3D1", 2).await;
    cluster.make_ready(&first).await;
    cluster.until_complete("web").await;
    cluster.patch(&format!("{DEPLOYMENTS}/web"), &version("2")).await;
    let surged = cluster.pods("v%3D2", 1).await;
    cluster.server.store().close().await;
    drop(cluster);

    let cluster = Cluster::open(config()).await;
    cluster.make_ready(&surged).await;
    let both = cluster.pods("v%3D2", 2).await;
    cluster.make_ready(&both).await;

    cluster.until_complete("web").await;
    cluster.pods("v%3D1", 0).await;
    assert_eq!(cluster.list(SETS).await.len(), 2);
}

#[tokio::test]
async fn what_is_made_while_the_controllers_are_off_is_found_when_they_are_on() {
    let directory = tempfile::tempdir().unwrap();
    let config = |workloads| Config { data_dir: Some(directory.path().join("data")), workloads, ..Config::default() };
    let cluster = Cluster::open(config(Workloads::Off)).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 1)).await;
    assert_eq!(cluster.list(SETS).await.len(), 0);
    cluster.server.store().close().await;
    drop(cluster);

    let cluster = Cluster::open(config(Workloads::On)).await;

    cluster.pods("app%3Dweb", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_stands_still_is_told_after_its_deadline() {
    let cluster = Cluster::open(config()).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 1)).await;
    cluster.pods("app%3Dweb", 1).await;

    tokio::time::sleep(Duration::from_secs(602)).await;

    let object = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
    let conditions = object["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["reason"] == "ProgressDeadlineExceeded"), "{conditions:?}");
}

#[tokio::test(start_paused = true)]
async fn many_pods_are_told_by_few_events() {
    let cluster = Cluster::open(config()).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 100)).await;
    cluster.pods("app%3Dweb", 100).await;
    cluster.until(&format!("{DEPLOYMENTS}/web"), |d| d["status"]["updatedReplicas"] == 100).await;

    let events = cluster.list(EVENTS).await;
    let made: Vec<&Value> = events.iter().filter(|event| event["reason"] == "SuccessfulCreate").collect();
    assert_eq!(made.len(), 10, "{made:?}");
    let combined = made.iter().find(|event| event["message"].as_str().unwrap().starts_with("(combined")).unwrap();
    assert_eq!(combined["count"], 16);
    assert_eq!(combined["source"]["component"], "replicaset-controller");
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_pod_updates_costs_few_writes_of_the_set() {
    let cluster = Cluster::open(config()).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 300)).await;
    let pods = cluster.pods("app%3Dweb", 300).await;
    cluster.until(&format!("{DEPLOYMENTS}/web"), |d| d["status"]["updatedReplicas"] == 300).await;
    let before = cluster.server.store().version();

    cluster.make_ready(&pods).await;
    let done = cluster.until_complete("web").await;

    let writes = cluster.server.store().version() - before - 300;
    assert_eq!(done["status"]["availableReplicas"], 300);
    assert!(writes < 60, "{writes} writes of controllers for 300 pod updates");
}

/// 10,000 updates of 500 pods, with 20 watchers that see every one: the counts are right shortly after the last update, and
/// the controllers wrote far less than the updates did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pod_updates_are_kept_up_with_while_twenty_watch() {
    const ROUNDS: usize = 20;
    let cluster = Cluster::open(Config { workloads: Workloads::On, ..Config::default() }).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 500)).await;
    let pods = cluster.pods("app%3Dweb", 500).await;
    cluster.until(&format!("{DEPLOYMENTS}/web"), |d| d["status"]["updatedReplicas"] == 500).await;
    let before = cluster.server.store().version();
    let mut watchers = Vec::new();
    for _ in 0..20 {
        let mut lines =
            crate::support::Lines::watch(&cluster.service, PODS, &format!("&resourceVersion={before}")).await;
        watchers.push(tokio::spawn(async move {
            for _ in 0..ROUNDS * 500 {
                lines.line().await.unwrap();
            }
        }));
    }

    for round in 0..ROUNDS {
        let ready = if round % 2 == 0 { "False" } else { "True" };
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
        for pod in &pods {
            cluster.patch(&format!("{PODS}/{pod}/status"), &json!({"status": status})).await;
        }
    }
    let updated = std::time::Instant::now();
    let path = format!("{DEPLOYMENTS}/web");
    cluster.until(&path, |d| d["status"]["availableReplicas"] == 500).await;
    let behind = updated.elapsed();
    for watcher in watchers {
        crate::support::soon(watcher).await.unwrap();
    }

    let writes = cluster.server.store().version() - before - u64::try_from(ROUNDS * 500).unwrap();
    println!("{writes} writes of controllers for {} pod updates, {behind:?} behind the last", ROUNDS * 500);
    assert!(behind < Duration::from_secs(10), "{behind:?} behind the last update");
    assert!(writes < 5000, "{writes} writes of controllers");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_deployment_takes_its_sets_and_pods() {
    let cluster = Cluster::open(config()).await;
    cluster.create(DEPLOYMENTS, &deployment("web", 3)).await;
    cluster.pods("app%3Dweb", 3).await;

    send(&cluster.service, "DELETE", &format!("{DEPLOYMENTS}/web"), "", "").await.ok();

    cluster.pods("app%3Dweb", 0).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((cluster.list(SETS).await.len(), cluster.list(PODS).await.len()), (0, 0));
}
