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
use crate::server::PeerServer;

/// How long the servers may take to come up; `PORTOLAN_READY_WITHIN` (seconds) sets another time.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// Lines of a log that a failure shows.
const LAST_LINES: usize = 15;

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

/// The control plane's programs are not here and cannot be built. A suite may say so and be NOT RUN; everything else that
/// goes wrong is a failure (see [`ControlPlane::start`]).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAvailable(String);

/// Why a control plane whose programs are here did not come up.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// A file or process could not be made.
    #[error("{step}: {source}")]
    Start { step: &'static str, source: std::io::Error },
    /// A server ended before the API server was ready.
    #[error("{name} ended with {status} instead of becoming ready; its log ends with:\n{log}")]
    Ended { name: &'static str, status: std::process::ExitStatus, log: String },
    /// The last answer of `/readyz`.
    #[error("it was not ready after {} s: {last}; the API server's log ends with:\n{log}", patience.as_secs())]
    NotReady { patience: Duration, last: String, log: String },
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
    server: PeerServer,
    kubeconfig: PathBuf,
    children: Vec<(&'static str, Child)>,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts the control plane with few controllers and waits until it is ready.
    ///
    /// # Panics
    ///
    /// Where the programs are here and do not come up: that is never a suite that could not run.
    pub async fn start(durability: Durability) -> Result<Self, NotAvailable> {
        Self::start_with(durability, Controllers::Few).await
    }

    /// Starts the control plane and waits until its API server is ready.
    ///
    /// # Panics
    ///
    /// As [`ControlPlane::start`].
    #[allow(clippy::panic, reason = "a suite whose server does not come up has failed, whatever it does with errors")]
    pub async fn start_with(durability: Durability, controllers: Controllers) -> Result<Self, NotAvailable> {
        let binaries = binaries()?;
        match Self::bring_up(&binaries, durability, controllers).await {
            Ok(plane) => Ok(plane),
            Err(trouble) => panic!("the control plane in {} did not start: {trouble}", binaries.display()),
        }
    }

    async fn bring_up(binaries: &Path, durability: Durability, controllers: Controllers) -> Result<Self, Trouble> {
        let folder = TempDir::new().map_err(at("making a folder"))?;
        let token = format!("{:032x}", rand::random::<u128>());
        write_keys(folder.path(), &token)?;
        let ports = free_ports()?;
        let url = format!("https://127.0.0.1:{}", ports.api);
        let server = PeerServer { url, ca: String::new(), token };
        let kubeconfig = folder.path().join("kubeconfig");
        let mut plane = Self { server, kubeconfig, children: Vec::new(), folder };
        plane.spawn(binaries, "etcd", &etcd_flags(plane.folder(), &ports, durability))?;
        plane.spawn(binaries, "kube-apiserver", &apiserver_flags(plane.folder(), &ports, controllers))?;
        plane.wait_until_ready().await?;
        std::fs::write(&plane.kubeconfig, plane.server.kubeconfig()).map_err(at("writing the kubeconfig"))?;
        plane.spawn(binaries, "kube-controller-manager", &manager_flags(plane.folder(), &ports, controllers))?;
        Ok(plane)
    }

    /// Where it is reached.
    pub fn server(&self) -> &PeerServer {
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
        self.children.iter().map(|(_, child)| child.id()).collect()
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn spawn(&mut self, binaries: &Path, name: &'static str, flags: &[String]) -> Result<(), Trouble> {
        let log = File::create(self.folder().join(format!("{name}.log"))).map_err(at("making a log"))?;
        let child = Command::new(binaries.join(name))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .spawn()
            .map_err(at(name))?;
        self.children.push((name, child));
        Ok(())
    }

    async fn wait_until_ready(&mut self) -> Result<(), Trouble> {
        let patience = patience();
        let deadline = Instant::now() + patience;
        let certificate = self.folder().join("apiserver.crt");
        loop {
            let last = self.readiness(&certificate).await;
            if last == "ok" {
                return Ok(());
            }
            self.all_run()?;
            if Instant::now() > deadline {
                return Err(Trouble::NotReady { patience, last, log: self.end_of_log("kube-apiserver") });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A server that has ended will not become ready.
    fn all_run(&mut self) -> Result<(), Trouble> {
        let ended = self.children.iter_mut().find_map(|(name, child)| Some((*name, child.try_wait().ok()??)));
        ended.map_or(Ok(()), |(name, status)| Err(Trouble::Ended { name, status, log: self.end_of_log(name) }))
    }

    fn end_of_log(&self, name: &str) -> String {
        let log = std::fs::read(self.folder().join(format!("{name}.log"))).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
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
        for (_, child) in self.children.iter_mut().rev() {
            // A process that has already ended cannot be killed, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How long to wait for the servers.
fn patience() -> Duration {
    let said = std::env::var("PORTOLAN_READY_WITHIN").ok().and_then(|text| text.parse().ok());
    said.map_or(READY_WITHIN, Duration::from_secs)
}

/// The folder with the control plane's binaries, built if need be.
///
/// # Panics
///
/// Where the script that builds them cannot be run.
pub fn binaries() -> Result<PathBuf, NotAvailable> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tools/controlplane/build.sh");
    let output = Command::new(&script).stderr(Stdio::piped()).output().expect("tools/controlplane/build.sh can be run");
    if output.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.trim().lines().last().unwrap_or("tools/controlplane/build.sh failed").to_owned();
    Err(NotAvailable(reason))
}

fn at(step: &'static str) -> impl FnOnce(std::io::Error) -> Trouble {
    move |source| Trouble::Start { step, source }
}

struct Ports {
    etcd: u16,
    peer: u16,
    api: u16,
    manager: u16,
}

/// Ports that were free a moment ago; all are held until the last is known, so that they differ.
fn free_ports() -> Result<Ports, Trouble> {
    let listeners: Vec<TcpListener> =
        (0..4).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>().map_err(at("finding a port"))?;
    let port = |index: usize| listeners[index].local_addr().map(|address| address.port()).map_err(at("finding a port"));
    Ok(Ports { etcd: port(0)?, peer: port(1)?, api: port(2)?, manager: port(3)? })
}

fn write_keys(folder: &Path, token: &str) -> Result<(), Trouble> {
    let key = rcgen::KeyPair::generate().map_err(|error| at("making keys")(std::io::Error::other(error)))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_ends_is_a_failure_that_names_it_and_not_a_suite_that_cannot_run() {
        let folder = TempDir::new().expect("a temporary folder");
        for name in ["etcd", "kube-apiserver", "kube-controller-manager"] {
            std::os::unix::fs::symlink("/bin/false", folder.path().join(name)).expect("a link can be made");
        }

        let begun = ControlPlane::bring_up(folder.path(), Durability::None, Controllers::Few).await;

        let trouble = begun.expect_err("nothing serves").to_string();
        assert!(trouble.contains("ended with exit status: 1 instead of becoming ready"), "{trouble}");
    }
}
