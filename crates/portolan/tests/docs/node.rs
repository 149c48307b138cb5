//! Pods of Portolan → processes of the binary under test, and their readiness → the pods' status.
//!
//! It stands for the kubelet and its images: a pod's arguments, environment and service account are honoured, its
//! probes are asked, and it ends when its pod is gone. Nothing else of a pod is run.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use portolan_parity::{ControlPlane, PeerServer};
use serde_json::{Value, json};

use crate::support::portolan;

/// How often pods are looked at.
const LOOK: Duration = Duration::from_millis(300);
/// The image that a registry would have given.
const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000001";

/// A thread that runs pods until it is dropped.
pub struct Node {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    pub fn start(kubectl: &Path, plane: &ControlPlane, folder: PathBuf, cloudflare: &str) -> Self {
        fs::create_dir_all(&folder).expect("a folder can be made");
        let is_over = Arc::new(AtomicBool::new(false));
        let mut kubelet = Kubelet {
            kubectl: kubectl.to_owned(),
            kubeconfig: plane.kubeconfig().to_owned(),
            server: plane.server().clone(),
            folder,
            cloudflare: cloudflare.to_owned(),
            pods: BTreeMap::new(),
        };
        let until = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                kubelet.look();
                std::thread::sleep(LOOK);
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Kubelet {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    server: PeerServer,
    folder: PathBuf,
    cloudflare: String,
    /// By uid.
    pods: BTreeMap<String, Pod>,
}

/// A pod that runs; its process ends with it.
struct Pod {
    process: Child,
    health: String,
    is_ready: bool,
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).stderr(Stdio::null()).status();
        let _ = self.process.wait();
    }
}

impl Kubelet {
    /// Starts new pods, ends those that shall go, and tells which became ready.
    fn look(&mut self) {
        let Some(list) = self.read(&["get", "pods", "-A", "-o", "json"]) else { return };
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let ours: Vec<&Value> = items.iter().filter(|pod| is_ours(pod)).collect();
        self.pods.retain(|uid, _| ours.iter().any(|pod| uid_of(pod) == uid.as_str()));
        for object in ours {
            if object["metadata"]["deletionTimestamp"].is_null() {
                self.keep(object);
            } else {
                self.end(object);
            }
        }
    }

    fn keep(&mut self, object: &Value) {
        let uid = uid_of(object);
        // A process that has ended is started again, as a kubelet does it.
        let is_running = self.pods.get_mut(uid).is_some_and(|pod| matches!(pod.process.try_wait(), Ok(None)));
        if !is_running && let Some(pod) = self.run(object) {
            self.pods.insert(uid.to_owned(), pod);
        }
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if !pod.is_ready && answers(&pod.health) {
            pod.is_ready = true;
            self.tell(object);
        }
    }

    /// Asks the process to stop, waits for it, and then lets the pod go.
    fn end(&mut self, object: &Value) {
        drop(self.pods.remove(uid_of(object)));
        let (name, namespace) = (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
        self.quietly(&["delete", "pod", name, "-n", namespace, "--force", "--grace-period=0", "--wait=false"]);
    }

    /// Makes the pod this node's, so that it is not gone before its process is.
    fn bind(&self, object: &Value) {
        let (name, namespace) = (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
        let target = json!({ "apiVersion": "v1", "kind": "Node", "name": "docs" });
        let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name }, "target": target });
        let file = self.folder.join(format!("{name}.binding"));
        fs::write(&file, binding.to_string()).expect("a file can be written");
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
        self.quietly(&["create", "--raw", &path, "-f", &file.display().to_string()]);
    }

    fn run(&self, object: &Value) -> Option<Pod> {
        let container = &object["spec"]["containers"][0];
        let name = text(&object["metadata"]["name"]);
        if object["spec"]["nodeName"].is_null() {
            self.bind(object);
        }
        let kubeconfig = self.account(object)?;
        let health = format!("127.0.0.1:{}", free_port());
        let log = fs::File::create(self.folder.join(format!("{name}.log"))).ok()?;
        let arguments = container["args"].as_array().cloned().unwrap_or_else(|| vec![json!("run")]);
        let process = portolan()
            .args(arguments.iter().map(text))
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .envs(environment(object, container))
            .env("KUBECONFIG", kubeconfig)
            // Whatever the pod says: nothing but this machine is talked to.
            .env("CLOUDFLARE_API_BASE", &self.cloudflare)
            .env("METRICS_ADDR", "127.0.0.1:0")
            .env("HEALTH_ADDR", &health)
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .spawn()
            .ok()?;
        Some(Pod { process, health, is_ready: false })
    }

    /// A kubeconfig with the token of the pod's service account.
    fn account(&self, object: &Value) -> Option<PathBuf> {
        let namespace = text(&object["metadata"]["namespace"]);
        let account = object["spec"]["serviceAccountName"].as_str().unwrap_or("default");
        let output = self.command(&["create", "token", account, "-n", namespace]).output().ok()?;
        let token = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())?;
        let server = PeerServer { token, ..self.server.clone() };
        let path = self.folder.join(format!("{namespace}-{}.kubeconfig", text(&object["metadata"]["name"])));
        fs::write(&path, server.kubeconfig()).ok()?;
        Some(path)
    }

    /// Writes what a kubelet writes for a pod that runs and is ready.
    fn tell(&self, object: &Value) {
        let container = &object["spec"]["containers"][0];
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
            .map(|kind| json!({ "type": kind, "status": "True", "lastTransitionTime": now }));
        let image = text(&container["image"]);
        let status = json!({ "status": {
            "phase": "Running", "startTime": now, "conditions": conditions,
            "containerStatuses": [{
                "name": container["name"], "image": image, "imageID": format!("{image}@{DIGEST}"),
                "ready": true, "started": true, "restartCount": 0, "state": { "running": { "startedAt": now } },
            }],
        }});
        let (name, namespace) = (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
        let patch = status.to_string();
        let arguments = ["patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", &patch];
        self.quietly(&arguments);
    }

    /// What fails is tried again at the next look, or is seen by what the page expects.
    fn quietly(&self, arguments: &[&str]) {
        let _ = self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    fn read(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.command(arguments).stderr(Stdio::null()).output().ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.folder).args(arguments);
        command
    }
}

/// Whether a pod runs our image.
fn is_ours(object: &Value) -> bool {
    text(&object["spec"]["containers"][0]["image"]).contains("portolan")
}

/// The variables of a container, as far as they are values or fields of its pod.
fn environment(object: &Value, container: &Value) -> Vec<(String, String)> {
    let entries = container["env"].as_array().cloned().unwrap_or_default();
    let value = |entry: &Value| match entry["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
        Some("metadata.name") => text(&object["metadata"]["name"]).to_owned(),
        Some("metadata.namespace") => text(&object["metadata"]["namespace"]).to_owned(),
        _ => text(&entry["value"]).to_owned(),
    };
    entries.iter().map(|entry| (text(&entry["name"]).to_owned(), value(entry))).collect()
}

/// Whether `/readyz` says yes.
fn answers(health: &str) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(health) else { return false };
    let mut answer = String::new();
    let asked = write!(stream, "GET /readyz HTTP/1.0\r\nhost: {health}\r\n\r\n");
    asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.split(' ').nth(1) == Some("200")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

fn uid_of(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
