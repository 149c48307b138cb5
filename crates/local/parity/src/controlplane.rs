//! The real control plane: etcd, kube-apiserver and kube-controller-manager on loopback.
//!
//! Unless asked for, only the garbage collector, the namespace controller and the aggregation of roles run: what the
//! others write (default service accounts, pods of a Deployment) is no answer of the API server. Requests without a token
//! are refused by authentication, as the embedded server does it, not by RBAC as an anonymous user.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::audit::{self, Audited};
use crate::client::Client;
use crate::server::Server;

/// How long the servers may take to come up.
const READY_WITHIN: Duration = Duration::from_secs(90);

const FEW: &[&str] = &["garbage-collector-controller", "namespace-controller", "clusterrole-aggregation-controller"];
/// What a Deployment needs to roll, and a service account to get its token.
const OF_DEPLOYMENTS: &[&str] = &[
    "deployment-controller",
    "replicaset-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "endpointslice-controller",
];
/// Those that the embedded server has its own of.
const COMPARED: &[&str] = &[
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "job-controller",
    "endpointslice-controller",
    "endpoints-controller",
    "endpointslice-mirroring-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
];

/// Why there is no real control plane to compare with.
#[derive(Debug, thiserror::Error)]
pub enum NotAvailable {
    /// The binaries could not be built or found.
    #[error("{0}")]
    Binaries(String),
    /// A file or process could not be made.
    #[error("starting the control plane: {step}")]
    Start {
        /// What was being done.
        step: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It did not become ready in time.
    #[error("the control plane was not ready after {} s: {last}", READY_WITHIN.as_secs())]
    NotReady {
        /// The last answer of `/readyz`, or the end of the log.
        last: String,
    },
}

/// Whether etcd waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Every write is on disk before its answer, as in production and in benchmarks.
    Fsync,
    /// Writes are not synced: faster, for comparing answers only.
    None,
}

/// Which controllers of Kubernetes run beside the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// Those that finish what a deletion began: the garbage collector and the one of namespaces.
    Few,
    /// Also those that make a Deployment roll and give it accounts and endpoints. Nothing runs the pods.
    Workloads,
    /// Also all that the embedded server has its own of; pods do not wait for the account of their namespace.
    Compared,
}

impl Controllers {
    /// The controllers as the flag wants them.
    fn names(self) -> String {
        let more: &[&str] = match self {
            Self::Few => &[],
            Self::Workloads => OF_DEPLOYMENTS,
            Self::Compared => COMPARED,
        };
        [FEW, more].concat().join(",")
    }
}

/// A running control plane; its processes end when it is dropped.
#[derive(Debug)]
pub struct ControlPlane {
    server: Server,
    kubeconfig: PathBuf,
    children: Vec<Child>,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts the control plane with few controllers and waits until it is ready.
    pub async fn start(durability: Durability) -> Result<Self, NotAvailable> {
        Self::start_with(durability, Controllers::Few).await
    }

    /// Starts the control plane and waits until its API server is ready.
    pub async fn start_with(durability: Durability, controllers: Controllers) -> Result<Self, NotAvailable> {
        let binaries = binaries()?;
        let folder = TempDir::new().map_err(at("making a folder"))?;
        let token = format!("{:032x}", rand::random::<u128>());
        write_keys(folder.path(), &token)?;
        let ports = free_ports()?;
        let url = format!("https://127.0.0.1:{}", ports.api);
        let server = Server { url, ca: String::new(), token };
        let kubeconfig = folder.path().join("kubeconfig");
        let mut plane = Self { server, kubeconfig, children: Vec::new(), folder };
        plane.spawn(&binaries, "etcd", &etcd_flags(plane.folder(), &ports, durability))?;
        plane.spawn(&binaries, "kube-apiserver", &apiserver_flags(plane.folder(), &ports, controllers))?;
        plane.wait_until_ready().await?;
        std::fs::write(&plane.kubeconfig, plane.server.kubeconfig()).map_err(at("writing the kubeconfig"))?;
        plane.spawn(&binaries, "kube-controller-manager", &manager_flags(plane.folder(), &ports, controllers))?;
        Ok(plane)
    }

    /// Where it is reached.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The kubeconfig file for kubectl.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What service accounts asked for so far, and were answered.
    pub fn audited(&self) -> std::io::Result<Vec<Audited>> {
        audit::read(&self.folder().join("audit.log"))
    }

    /// The process ids of etcd, kube-apiserver and kube-controller-manager, in this order.
    pub fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn spawn(&mut self, binaries: &Path, name: &'static str, flags: &[String]) -> Result<(), NotAvailable> {
        let log = File::create(self.folder().join(format!("{name}.log"))).map_err(at("making a log"))?;
        let child = Command::new(binaries.join(name))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .spawn()
            .map_err(at(name))?;
        self.children.push(child);
        Ok(())
    }

    async fn wait_until_ready(&mut self) -> Result<(), NotAvailable> {
        let deadline = Instant::now() + READY_WITHIN;
        let certificate = self.folder().join("apiserver.crt");
        loop {
            let last = self.readiness(&certificate).await;
            if last == "ok" {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(NotAvailable::NotReady { last });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn readiness(&mut self, certificate: &Path) -> String {
        let Ok(ca) = std::fs::read_to_string(certificate) else {
            return "no certificate yet".to_owned();
        };
        self.server.ca = ca;
        match Client::new(&self.server) {
            Ok(client) => client.text("/readyz").await,
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // A process that has already ended cannot be killed, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The folder with the control plane's binaries, built if need be.
pub fn binaries() -> Result<PathBuf, NotAvailable> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tools/controlplane/build.sh");
    let output = Command::new(&script).stderr(Stdio::piped()).output().map_err(at("running build.sh"))?;
    if output.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.trim().lines().last().unwrap_or("tools/controlplane/build.sh failed").to_owned();
    Err(NotAvailable::Binaries(reason))
}

fn at(step: &'static str) -> impl FnOnce(std::io::Error) -> NotAvailable {
    move |source| NotAvailable::Start { step, source }
}

struct Ports {
    etcd: u16,
    peer: u16,
    api: u16,
    manager: u16,
}

/// Ports that were free a moment ago; all are held until the last is known, so that they differ.
fn free_ports() -> Result<Ports, NotAvailable> {
    let listeners: Vec<TcpListener> =
        (0..4).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>().map_err(at("finding a port"))?;
    let port = |index: usize| listeners[index].local_addr().map(|address| address.port()).map_err(at("finding a port"));
    Ok(Ports { etcd: port(0)?, peer: port(1)?, api: port(2)?, manager: port(3)? })
}

fn write_keys(folder: &Path, token: &str) -> Result<(), NotAvailable> {
    let key = rcgen::KeyPair::generate().map_err(|error| NotAvailable::Binaries(error.to_string()))?;
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).map_err(at("writing the keys"));
    write("accounts.key", key.serialize_pem())?;
    write("accounts.pub", key.public_key_pem())?;
    write("audit.json", audit::POLICY.to_owned())?;
    write("tokens.csv", format!("{token},parity,parity,\"system:masters\"\n"))
}

fn etcd_flags(folder: &Path, ports: &Ports, durability: Durability) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.peer);
    let mut flags = vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--log-level=error".to_owned(),
    ];
    if durability == Durability::None {
        flags.push("--unsafe-no-fsync".to_owned());
    }
    flags
}

fn apiserver_flags(folder: &Path, ports: &Ports, controllers: Controllers) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut flags = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        format!("--secure-port={}", ports.api),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", folder.display()),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        format!("--audit-policy-file={}", file("audit.json")),
        format!("--audit-log-path={}", file("audit.log")),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--anonymous-auth=false".to_owned(),
        "--v=0".to_owned(),
    ];
    if controllers == Controllers::Compared {
        // Pods need not wait for the account of their namespace.
        flags.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    flags
}

fn manager_flags(folder: &Path, ports: &Ports, controllers: Controllers) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", folder.join("kubeconfig").display()),
        format!("--service-account-private-key-file={}", folder.join("accounts.key").display()),
        "--leader-elect=false".to_owned(),
        format!("--secure-port={}", ports.manager),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--controllers={}", controllers.names()),
        "--concurrent-namespace-syncs=20".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}
