//! A row → an API server and a runner of its own, the pod on real processes, and what a user sees of it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use portolan_apiserver::{ApiServer, Config, Workloads};
use portolan_runner::machine::leftovers::process_count;
use portolan_runner::node::{PodOutputs, PodRunner, RunOutput, RunnerSettings, WhichRun, WithoutProgram};
use portolan_runner::pod::backoff::BackoffLimits;
use portolan_runner::pod::limits::PodBounds;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rows::{Row, place, rows};

/// Longer than any row takes on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);
/// How often it is looked whether a row shows what it is to show.
pub(crate) const LOOK: Duration = Duration::from_millis(25);
/// Processes that a pod may have here: so few that what multiplies does no harm to the machine.
const MOST_PROCESSES: u64 = 150;
/// Rows that are played side by side.
const SIDE_BY_SIDE: usize = 8;

/// One row while it is played.
pub(crate) struct Scene {
    row: Row,
    pub(crate) pods: Api<Pod>,
    pub(crate) client: kube::Client,
    pub(crate) outputs: PodOutputs,
    pub(crate) home: TempDir,
    _server: ApiServer,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_shows_what_a_kubelet_shows() {
    let only = std::env::var("PORTOLAN_KUBELET_ROW").unwrap_or_default();
    let wanted = rows().into_iter().filter(|row| row.is_for_us() && row.name.contains(&only));

    let played = futures::stream::iter(wanted.map(play)).buffer_unordered(SIDE_BY_SIDE);
    let failures: Vec<String> = played.filter_map(|outcome| async { outcome.err() }).collect().await;

    assert!(failures.is_empty(), "{} rows failed:\n{}", failures.len(), failures.join("\n"));
}

/// An API server with a runner, and a row on it.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) runner: PodRunner,
}

impl Stage {
    pub(crate) async fn of(row: Row) -> Self {
        let home = tempfile::tempdir().unwrap();
        // Pods are users of their own, and pass through.
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let server = ApiServer::open(Config { workloads: Workloads::On, ..Config::default() }).await.unwrap();
        let client = kube::Client::new(server.service(), "default");
        let runner = PodRunner::start(client.clone(), settings(&home)).await.unwrap();
        server.set_pod_logs(Arc::new(runner.outputs()));
        let (pods, outputs) = (Api::namespaced(client.clone(), "default"), runner.outputs());
        Self { scene: Scene { row, pods, client, outputs, home, _server: server }, runner }
    }
}

fn settings(home: &TempDir) -> RunnerSettings {
    let limits = BackoffLimits { first: SignedDuration::from_millis(500), most: SignedDuration::from_secs(4) };
    RunnerSettings {
        node: "here".to_owned(),
        folder: home.path().join("runner"),
        executable: place(env!("CARGO_BIN_EXE_portolan-pod")),
        limits,
        bounds: PodBounds { processes: MOST_PROCESSES, ..PodBounds::default() },
        without_program: WithoutProgram::default(),
    }
}

/// Plays a row; says what it did not show.
async fn play(row: Row) -> Result<(), String> {
    let stage = Stage::of(row).await;
    let outcome = stage.scene.run().await;
    stage.runner.stop().await;
    outcome
}

impl Scene {
    async fn run(&self) -> Result<(), String> {
        for object in &self.row.objects {
            self.put(object).await;
        }
        self.create().await;
        for object in &self.row.then {
            self.until(|pod| pod["status"]["phase"] == "Running").await?;
            self.put(object).await;
        }
        if let Some(deleted) = &self.row.deleted {
            return self.delete(deleted).await;
        }
        let mut missing = String::new();
        let shown = async {
            loop {
                missing = self.missing(&self.pod().await).await;
                if missing.is_empty() {
                    return;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, shown).await.is_ok();
        let status = self.pod().await["status"].clone();
        if in_time { Ok(()) } else { Err(format!("- {}: {missing}; status {status}", self.row.name)) }
    }

    /// An object by its kind, name and data.
    pub(crate) async fn put(&self, object: &Value) {
        let kind = object["kind"].as_str().unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "default", &resource);
        let name = object["name"].as_str().unwrap();
        let mut whole = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        match kind {
            "Secret" => whole["stringData"] = object["data"].clone(),
            "PersistentVolumeClaim" => {
                whole["spec"] =
                    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}});
            }
            _ => whole["data"] = object["data"].clone(),
        }
        api.patch(name, &PatchParams::apply("row").force(), &Patch::Apply(&whole)).await.unwrap();
    }

    pub(crate) async fn create(&self) {
        let metadata = json!({"name": "row", "labels": {"row": "kubelet"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.row.spec});
        let pod = serde_json::from_value(pod).unwrap();
        self.pods
            .create(&PostParams::default(), &pod)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", self.row.name));
        if !self.row.given.is_null() {
            let patch = json!({"status": self.row.given});
            self.pods.patch_status("row", &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
        }
    }

    async fn pod(&self) -> Value {
        serde_json::to_value(self.pods.get_opt("row").await.unwrap()).unwrap()
    }

    async fn until(&self, holds: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let waiting = async {
            loop {
                let pod = self.pod().await;
                if holds(&pod) {
                    return pod;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let late = |_| format!("- {}: it did not come so far", self.row.name);
        tokio::time::timeout(PATIENCE, waiting).await.map_err(late)
    }

    /// Deletes the pod once it runs, waits until it is gone, and looks at what it wrote until then.
    async fn delete(&self, how: &Value) -> Result<(), String> {
        let pod = self.until(|pod| pod["status"]["phase"] == "Running").await?;
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let mut following = BTreeMap::new();
        for container in pod["spec"]["containers"].as_array().unwrap() {
            let name = container["name"].as_str().unwrap().to_owned();
            let output = self.following(&uid, &name, container).await?;
            following.insert(name, output);
        }
        let grace_period_seconds = how["gracePeriodSeconds"].as_u64().map(|grace| u32::try_from(grace).unwrap());
        let params = DeleteParams { grace_period_seconds, ..DeleteParams::default() };
        self.pods.delete("row", &params).await.unwrap();
        self.until(Value::is_null).await?;
        let mut missing = self.missing_events().await;
        for (container, wanted) in self.row.expect["logs"].as_object().into_iter().flatten() {
            let lines = drained(following.remove(container).unwrap()).await;
            if json!(lines) != *wanted {
                missing.push(format!("{container} wrote {lines:?}"));
            }
        }
        missing.extend(self.missing_claims());
        if missing.is_empty() { Ok(()) } else { Err(format!("- {}: {}", self.row.name, missing.join("; "))) }
    }

    /// What a container wrote and will write; it is up where it says so.
    async fn following(&self, uid: &str, name: &str, container: &Value) -> Result<RunOutput, String> {
        let says_up = container.to_string().contains("echo up");
        let waiting = async {
            loop {
                let output = self.outputs.lines(uid, name, WhichRun::Current, None).unwrap();
                if let Some(output) = output
                    && (!says_up || output.0.iter().any(|line| line.text == "up"))
                {
                    return output;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| format!("- {}: {name} is not up", self.row.name))
    }

    /// What of the row's expectation does not show now.
    async fn missing(&self, pod: &Value) -> String {
        let expect = &self.row.expect;
        let mut missing = Vec::new();
        missing.extend(differs(&expect["status"], &pod["status"], "status"));
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        for (field, which) in [("logs", WhichRun::Current), ("previous", WhichRun::Previous)] {
            for (container, wanted) in expect[field].as_object().into_iter().flatten() {
                let lines = self.lines(uid, container, which);
                if json!(lines) != *wanted {
                    missing.push(format!("{field} of {container} are {lines:?}"));
                }
            }
        }
        for (container, wanted) in expect["lines"].as_object().into_iter().flatten() {
            let count = self.lines(uid, container, WhichRun::Current).len();
            if json!(count) != *wanted {
                missing.push(format!("{container} wrote {count} lines"));
            }
        }
        if let Some(wanted) = expect["processes"].as_u64() {
            let count = process_count(uid).unwrap();
            if u64::try_from(count).unwrap() != wanted {
                missing.push(format!("{count} processes run"));
            }
        }
        missing.extend(self.missing_events().await);
        missing.extend(self.other_folders(uid));
        missing.join("; ")
    }

    fn lines(&self, uid: &str, container: &str, which: WhichRun) -> Vec<String> {
        let output = self.outputs.lines(uid, container, which, None).unwrap();
        let lines = output.map(|(lines, _)| lines).unwrap_or_default();
        lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
    }

    async fn missing_events(&self) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let told = events.list(&ListParams::default()).await.unwrap();
        let told: Vec<String> = told.items.into_iter().filter_map(|event| event.reason).collect();
        let wanted = self.row.expect["events"].as_array().into_iter().flatten().filter_map(Value::as_str);
        wanted
            .filter(|reason| !told.iter().any(|one| one == reason))
            .map(|reason| format!("no event {reason}"))
            .collect()
    }

    /// What is left of the pod's folder, where the row says what is.
    fn other_folders(&self, uid: &str) -> Option<String> {
        let wanted = self.row.expect["folders"].as_array()?;
        let entries = std::fs::read_dir(self.home.path().join("runner/pods").join(uid)).into_iter().flatten();
        let left: Vec<Value> = entries.map(|entry| json!(entry.unwrap().file_name().to_string_lossy())).collect();
        (left != *wanted).then(|| format!("the pod's folder has {left:?}"))
    }

    fn missing_claims(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (claim, files) in self.row.expect["claims"].as_object().into_iter().flatten() {
            let folder = self.home.path().join("runner/claims/default").join(claim);
            for (file, wanted) in files.as_object().into_iter().flatten() {
                let content = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
                if content != wanted.as_str().unwrap() {
                    missing.push(format!("{claim}/{file} is {content:?}"));
                }
            }
        }
        missing
    }
}

/// All lines of an output, to its end.
async fn drained((written, coming): RunOutput) -> Vec<String> {
    let mut lines = written;
    if let Some(mut coming) = coming {
        while let Ok(line) = coming.recv().await {
            lines.push(line);
        }
    }
    lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
}

/// Where a value lacks what is wanted of it. Objects of lists are known by their name or type.
fn differs(wanted: &Value, found: &Value, at: &str) -> Option<String> {
    match (wanted, found) {
        (Value::Null, _) => None,
        (Value::Object(wanted), found) => {
            if found.is_null() {
                return Some(format!("no {at}"));
            }
            wanted.iter().find_map(|(name, value)| differs(value, &found[name], &format!("{at}.{name}")))
        }
        (Value::Array(wanted), found) => wanted.iter().find_map(|one| {
            let key = if one["type"].is_string() { "type" } else { "name" };
            let same = found.as_array().into_iter().flatten().find(|other| other[key] == one[key]);
            differs(one, same.unwrap_or(&Value::Null), &format!("{at}[{}]", one[key]))
        }),
        (wanted, found) => (wanted != found).then(|| format!("{at} is {found}")),
    }
}

#[tokio::test]
async fn the_api_server_answers_with_what_containers_wrote_and_write() {
    use futures::{AsyncBufReadExt as _, TryStreamExt as _};
    use kube::api::LogParams;
    let script = "test -e /v/m && { echo two; trap 'echo bye; exit 0' TERM; while :; do sleep 0.1; done; }; touch /v/m; echo one";
    let mount = json!({"name": "v", "mountPath": "/v"});
    let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": [mount]});
    let spec = json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]});
    let row = Row { name: "logs".to_owned(), spec, ..rows().remove(0) };
    let stage =
        Stage::of(Row { objects: Vec::new(), then: Vec::new(), deleted: None, given: Value::Null, ..row }).await;
    let scene = &stage.scene;
    scene.create().await;
    scene.until(|pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1).await.unwrap();
    scene.until(|pod| pod["status"]["containerStatuses"][0]["ready"] == true).await.unwrap();

    let params = LogParams { follow: true, ..LogParams::default() };
    let mut following = scene.pods.log_stream("row", &params).await.unwrap().lines();
    assert_eq!(following.try_next().await.unwrap().as_deref(), Some("two"));
    let previous = LogParams { previous: true, ..LogParams::default() };
    assert_eq!(scene.pods.logs("row", &previous).await.unwrap(), "one\n");
    scene.pods.delete("row", &DeleteParams::default()).await.unwrap();

    assert_eq!(following.try_next().await.unwrap().as_deref(), Some("bye"));
    assert_eq!(following.try_next().await.unwrap(), None);
    stage.runner.stop().await;
}

#[tokio::test]
async fn pods_run_again_with_the_next_runner_and_their_claims_are_kept() {
    let script = "echo run >> /v/f; exec sleep infinity";
    let mount = json!({"name": "v", "mountPath": "/v"});
    let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": [mount]});
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "kept"}});
    let row = Row { spec: json!({"containers": [container], "volumes": [claim]}), ..bare_row() };
    let stage = Stage::of(row).await;
    let scene = &stage.scene;
    scene.put(&json!({"kind": "PersistentVolumeClaim", "name": "kept"})).await;
    scene.create().await;
    scene.until(|pod| pod["status"]["containerStatuses"][0]["ready"] == true).await.unwrap();
    let kept = scene.home.path().join("runner/claims/default/kept/f");
    scene.until(|_| std::fs::read_to_string(&kept).is_ok_and(|text| text == "run\n")).await.unwrap();

    stage.runner.stop().await;
    let uid = scene.pod().await["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(process_count(&uid).unwrap(), 0);
    let next = PodRunner::start(scene.client.clone(), settings(&scene.home)).await.unwrap();

    scene.until(|_| std::fs::read_to_string(&kept).is_ok_and(|text| text == "run\nrun\n")).await.unwrap();
    let again = |pod: &Value| {
        let status = &pod["status"]["containerStatuses"][0];
        status["restartCount"] == 1 && status["ready"] == true
    };
    scene.until(again).await.unwrap();
    assert_eq!(process_count(&uid).unwrap(), 1);
    next.stop().await;
}

#[tokio::test]
async fn a_settled_pod_costs_no_writes_however_often_it_is_probed() {
    let probe = json!({"exec": {"command": ["sh", "-c", "echo probed >> /v/f"]}, "periodSeconds": 1});
    let mount = json!({"name": "v", "mountPath": "/v"});
    let container = json!({
        "name": "a", "image": "busybox", "command": ["sleep", "infinity"], "volumeMounts": [mount],
        "readinessProbe": probe, "livenessProbe": probe,
    });
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "probes"}});
    let stage = Stage::of(Row { spec: json!({"containers": [container], "volumes": [claim]}), ..bare_row() }).await;
    let scene = &stage.scene;
    scene.put(&json!({"kind": "PersistentVolumeClaim", "name": "probes"})).await;
    scene.create().await;
    let probes = scene.home.path().join("runner/claims/default/probes/f");
    let probed = |times: usize| std::fs::read_to_string(&probes).is_ok_and(|text| text.lines().count() >= times);
    scene.until(|pod| pod["status"]["containerStatuses"][0]["ready"] == true && probed(2)).await.unwrap();
    let settled = scene.pod().await["metadata"]["resourceVersion"].clone();

    scene.until(|_| probed(6)).await.unwrap();

    assert_eq!(scene.pod().await["metadata"]["resourceVersion"], settled);
    stage.runner.stop().await;
}

pub(crate) fn bare_row() -> Row {
    let (given, objects, then) = (Value::Null, Vec::new(), Vec::new());
    Row { given, objects, then, deleted: None, ..rows().remove(0) }
}
