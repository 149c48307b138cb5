//! A `portolan up` in a folder of its own that the users of pods may pass through, and what is seen of it.

#![allow(dead_code, reason = "each test executable uses its own part")]
#![allow(missing_docs, unreachable_pub, reason = "a module shared by tests")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::process::{Process, eventually, up};
use crate::support::{Run, portolan, run_with_input};

/// A running `up`.
pub struct Stage {
    pub home: TempDir,
    pub process: Process,
}

/// A folder that everybody may pass through and only its owner looks into.
pub fn open_folder() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    home
}

/// The data directory in a folder.
pub fn data(home: &Path) -> PathBuf {
    home.join("data")
}

impl Stage {
    pub fn start(more: &[&str]) -> Self {
        Self::start_in(open_folder(), more)
    }

    pub fn start_in(home: TempDir, more: &[&str]) -> Self {
        let mut process = Process::start(up(&data(home.path())).args(more));
        process.line_with("Stop with Ctrl-C");
        Self { home, process }
    }

    /// Starts again on the same data.
    pub fn again(&mut self, more: &[&str]) {
        self.process = Process::start(up(&data(self.home.path())).args(more));
        self.process.line_with("Stop with Ctrl-C");
    }

    pub fn data(&self) -> PathBuf {
        data(self.home.path())
    }

    fn kubeconfig(&self) -> PathBuf {
        self.data().join("kubeconfig")
    }

    /// Runs a command of ours against it.
    pub fn run(&self, arguments: &[&str]) -> Run {
        portolan().env("KUBECONFIG", self.kubeconfig()).args(arguments).output().unwrap().into()
    }

    /// Runs the real kubectl against it.
    pub fn kubectl(&self, arguments: &[&str]) -> Run {
        Command::new(kubectl()).env("KUBECONFIG", self.kubeconfig()).args(arguments).output().unwrap().into()
    }

    pub fn apply(&self, objects: &[Value]) {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        let mut command = portolan();
        command.env("KUBECONFIG", self.kubeconfig()).args(["apply", "-f", "-"]);
        run_with_input(command, &text.join("\n---\n")).succeeded();
    }

    pub fn list(&self, kind: &str) -> Vec<Value> {
        let said = self.run(&["get", kind, "-n", "default", "-o", "json"]).succeeded();
        serde_json::from_str::<Value>(&said).unwrap()["items"].as_array().cloned().unwrap_or_default()
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.list(kind).into_iter().find(|object| object["metadata"]["name"] == name)
    }

    /// Waits until so many pods are Ready.
    pub fn pods_ready(&self, count: usize) -> Vec<Value> {
        eventually("the pods are ready", || {
            let pods = self.list("pods");
            (pods.iter().filter(|pod| is_ready(pod)).count() == count && pods.len() == count).then_some(pods)
        })
    }

    pub fn logs(&self, pod: &str) -> String {
        self.run(&["logs", pod, "-n", "default"]).succeeded()
    }

    pub fn events(&self, reason: &str) -> Vec<String> {
        let said = |event: &Value| event["message"].as_str().unwrap_or_default().to_owned();
        self.list("events").iter().filter(|event| event["reason"] == reason).map(said).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Killed, it would leave its pods to a start that never comes.
        self.process.end();
    }
}

/// The kubectl that the project builds.
fn kubectl() -> PathBuf {
    let folder = portolan_parity::binaries().expect("tools/controlplane/build.sh makes kubectl");
    folder.join("kubectl")
}

pub fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True"
}

pub fn condition(object: &Value, wanted: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == wanted).unwrap_or_default()
}

pub fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// A container of small tools that runs a script.
pub fn script(text: &str) -> Value {
    json!({"name": "a", "image": "busybox", "command": ["sh", "-c", text]})
}

/// A workload of a kind whose pods have one container.
pub fn workload(kind: &str, name: &str, replicas: usize, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}}, "serviceName": name,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    })
}

/// A Deployment: it has no `serviceName`.
pub fn deployment(name: &str, replicas: usize, container: &Value) -> Value {
    let mut object = workload("Deployment", name, replicas, container);
    object["spec"].as_object_mut().unwrap().remove("serviceName");
    object
}

pub fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    })
}

/// The processes that bear a pod's uid, each with its own number, by the pod's uid.
pub fn processes() -> BTreeMap<String, Vec<u32>> {
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // One that has ended since is none.
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let text = String::from_utf8_lossy(&environment).into_owned();
        let uid = text.split('\0').find_map(|variable| variable.strip_prefix("PORTOLAN_POD_UID=").map(str::to_owned));
        if let Some(uid) = uid {
            found.entry(uid).or_default().push(process);
        }
    }
    found
}

/// How many processes each of the pods has.
pub fn process_counts(pods: &[Value]) -> Vec<usize> {
    let all = processes();
    let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap().to_owned();
    pods.iter().map(|pod| all.get(&uid(pod)).map_or(0, Vec::len)).collect()
}
