//! Pods of a namespace → processes: the binary with the arguments, the environment and the account that their specs say.
//! What a kubelet does, as far as an operator notices.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::portolan;
use super::process::Process;

/// The processes of a namespace's pods.
pub struct Pods {
    namespace: String,
    running: BTreeMap<String, Running>,
    started: usize,
}

struct Running {
    component: String,
    process: Process,
}

impl Pods {
    /// No pod runs yet.
    pub fn of(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), running: BTreeMap::new(), started: 0 }
    }

    /// Starts the pods that are new, stops those that are gone, and says of all that they are ready.
    pub fn follow(&mut self, cluster: &Cluster) {
        let pods = cluster.list("pods", &self.namespace);
        let there: Vec<&Value> = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect();
        let names: Vec<&str> = there.iter().map(|pod| name_of(pod)).collect();
        let gone: Vec<String> = self.running.keys().filter(|name| !names.contains(&name.as_str())).cloned().collect();
        for name in gone {
            if let Some(mut running) = self.running.remove(&name) {
                assert_eq!(running.process.terminate(), Some(0), "{name} ends as it should");
            }
        }
        for pod in there {
            if !self.running.contains_key(name_of(pod)) {
                self.start(cluster, pod);
            }
        }
    }

    /// The components that run, each as often as it does.
    pub fn components(&self) -> Vec<&str> {
        let mut components: Vec<&str> = self.running.values().map(|running| running.component.as_str()).collect();
        components.sort_unstable();
        components
    }

    /// Everything that all pods have logged, each line after the pod's name.
    pub fn logs(&self, cluster: &Cluster) -> String {
        let files = std::fs::read_dir(logs(cluster)).expect("the folder of logs").flatten();
        files.map(|file| std::fs::read_to_string(file.path()).expect("a log")).collect()
    }

    /// Stops all pods, as their deletion does.
    pub fn stop(&mut self) {
        for (name, mut running) in std::mem::take(&mut self.running) {
            assert_eq!(running.process.terminate(), Some(0), "{name} ends as it should");
        }
    }

    fn start(&mut self, cluster: &Cluster, pod: &Value) {
        let (name, container) = (name_of(pod), &pod["spec"]["containers"][0]);
        self.started += 1;
        let log = File::create(logs(cluster).join(format!("{:03}-{name}.log", self.started))).expect("a log");
        let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or("default");
        let mut command = command(pod, container);
        command.env("KUBECONFIG", cluster.kubeconfig_of(&self.namespace, account)).stderr(log);
        let component = pod["metadata"]["labels"]["app.kubernetes.io/component"].as_str().unwrap_or_default();
        let running = Running { component: component.to_owned(), process: Process::start(&mut command) };
        self.running.insert(name.to_owned(), running);
        say_ready(cluster, &self.namespace, name, container);
    }
}

fn logs(cluster: &Cluster) -> PathBuf {
    let folder = cluster.folder().join("logs");
    std::fs::create_dir_all(&folder).expect("a folder for logs");
    folder
}

fn name_of(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().expect("pods have names")
}

/// The container as a command: only its addresses are others, since all pods share one machine here.
fn command(pod: &Value, container: &Value) -> Command {
    let mut command = portolan();
    let arguments = container["args"].as_array().cloned().unwrap_or_default();
    command.args(arguments.iter().filter_map(Value::as_str));
    for variable in container["env"].as_array().cloned().unwrap_or_default() {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some(path) => field(pod, path),
            None => variable["value"].as_str().unwrap_or_default().to_owned(),
        };
        command.env(variable["name"].as_str().expect("variables have names"), value);
    }
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1");
    command.args(["--metrics", "127.0.0.1:0", "--health", "127.0.0.1:0"]);
    command
}

fn field(pod: &Value, path: &str) -> String {
    let pointer = format!("/{}", path.replace('.', "/"));
    pod.pointer(&pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no field {path}")).to_owned()
}

fn say_ready(cluster: &Cluster, namespace: &str, name: &str, container: &Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|condition| json!({"type": condition, "status": "True", "lastTransitionTime": "2026-11-16T00:00:00Z"}));
    let status = json!({"status": {
        "phase": "Running", "conditions": conditions,
        "containerStatuses": [{
            "name": container["name"], "ready": true, "restartCount": 0, "image": image,
            "imageID": format!("{image}@sha256:{}", "0".repeat(64)),
            "state": {"running": {"startedAt": "2026-11-16T00:00:00Z"}},
        }],
    }});
    let pods: Api<Pod> = Api::namespaced(cluster.admin().clone(), namespace);
    // A pod that is gone meanwhile is stopped by the next look.
    let _ = cluster.wait(pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)));
}
