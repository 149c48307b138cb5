//! A server with a runner, one pod on it, and kubectl.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, PostParams};
use portolan_apiserver::{ApiServer, Config, RunningServer, Workloads};
use portolan_runner::node::{PodRunner, RunnerSettings};
use portolan_runner::pod::backoff::BackoffLimits;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};

/// Longer than anything takes here on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(25);

/// Gives up on what never ends.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("this should not take so long")
}

/// A server that listens, and its runner.
pub(crate) struct Harbour {
    pub(crate) home: TempDir,
    pub(crate) pods: Api<Pod>,
    kubectl: PathBuf,
    runner: PodRunner,
    _server: RunningServer,
}

/// Where kubectl is; told once where it is not.
fn kubectl() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || portolan_parity::binaries().map_err(|why| eprintln!("skipped: there is no kubectl: {why}")).ok();
    FOUND.get_or_init(find).as_ref().map(|folder| folder.join("kubectl"))
}

impl Harbour {
    /// None where there is no kubectl.
    pub(crate) async fn open() -> Option<Self> {
        let kubectl = kubectl()?;
        let home = tempfile::tempdir().unwrap();
        // Pods are users of their own, and pass through.
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let server = ApiServer::open(Config { workloads: Workloads::On, ..Config::default() }).await.unwrap();
        let client = kube::Client::new(server.service(), "default");
        let limits =
            BackoffLimits { first: jiff::SignedDuration::from_millis(300), most: jiff::SignedDuration::from_secs(2) };
        let folder = home.path().join("runner");
        let settings =
            RunnerSettings { limits, ..RunnerSettings::new("here", folder, env!("CARGO_BIN_EXE_portolan-pod").into()) };
        let runner = PodRunner::start(client.clone(), settings).await.unwrap();
        server.set_pod_logs(Arc::new(runner.outputs()));
        server.set_pod_streams(Arc::new(runner.doors()));
        let server = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
        std::fs::write(home.path().join("kubeconfig"), server.kubeconfig()).unwrap();
        Some(Self { home, pods: Api::namespaced(client, "default"), kubectl, runner, _server: server })
    }

    pub(crate) async fn close(self) {
        self.runner.stop().await;
    }

    /// Makes a pod called `web`, and waits until this holds of it.
    pub(crate) async fn run(&self, spec: Value, holds: impl Fn(&Value) -> bool) -> Value {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec});
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        self.until(holds).await
    }

    pub(crate) async fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        soon(async {
            loop {
                let pod = serde_json::to_value(self.pods.get_opt("web").await.unwrap()).unwrap();
                if holds(&pod) {
                    return pod;
                }
                tokio::time::sleep(LOOK).await;
            }
        })
        .await
    }

    /// A kubectl that is to be started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(self.home.path().join("kubeconfig"))
            .args(arguments)
            .env("HOME", self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Told {
        soon(self.command(arguments).output()).await.unwrap().into()
    }

    /// A kubectl that goes on.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// A folder that a pod mounts, and that is seen from here.
    /// Makes a claim, and says where its files will be.
    pub(crate) async fn put_claim(&self, name: &str) -> PathBuf {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.pods.clone().into_client(), "default");
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        });
        claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
        self.home.path().join("runner/claims/default").join(name)
    }
}

/// What kubectl said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl From<Output> for Told {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { status: output.status, output: text(&output.stdout), errors: text(&output.stderr) }
    }
}

impl Told {
    /// Its output, where it succeeded.
    pub(crate) fn ok(self) -> String {
        assert!(self.status.success(), "{self:?}");
        self.output
    }

    /// Its exit code and its errors, where it failed.
    pub(crate) fn failed(self) -> (i32, String) {
        assert!(!self.status.success(), "{self:?}");
        (self.status.code().unwrap(), self.errors)
    }
}

/// The lines that something writes.
pub(crate) struct Written<R>(Lines<BufReader<R>>);

impl<R: AsyncRead + Unpin> Written<R> {
    pub(crate) fn by(from: R) -> Self {
        Self(BufReader::new(from).lines())
    }

    /// The next line; none at the end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        soon(self.0.next_line()).await.unwrap()
    }
}

/// A pod whose containers all run.
pub(crate) fn is_up(pod: &Value) -> bool {
    let statuses = pod["status"]["containerStatuses"].as_array();
    statuses.is_some_and(|all| !all.is_empty() && all.iter().all(|status| !status["state"]["running"].is_null()))
}

/// A container that runs a script.
pub(crate) fn script(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "busybox", "command": ["sh", "-c", script]})
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
