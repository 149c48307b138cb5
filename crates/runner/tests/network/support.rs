//! An API server with a runner, what is created there, and waiting for what becomes of it.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, ListParams, PostParams};
use portolan_apiserver::{ApiServer, Config, Workloads};
use portolan_runner::network::NetworkSettings;
use portolan_runner::network::service::{ServiceName, Transport};
use portolan_runner::network::table::ServedPort;
use portolan_runner::node::{PodRunner, RunnerSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything takes here on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);
const LOOK: Duration = Duration::from_millis(10);

/// An API server with a runner.
pub(crate) struct Stage {
    pub(crate) client: kube::Client,
    pub(crate) runner: PodRunner,
    _server: ApiServer,
    _home: TempDir,
}

impl Stage {
    pub(crate) async fn begin() -> Self {
        Self::with(NetworkSettings::default()).await
    }

    pub(crate) async fn with(network: NetworkSettings) -> Self {
        let home = tempfile::tempdir().unwrap();
        open_to_pods(home.path());
        let server = ApiServer::open(Config { workloads: Workloads::On, ..Config::default() }).await.unwrap();
        let client = kube::Client::new(server.service(), "default");
        let settings = RunnerSettings { network, ..settings(home.path()) };
        let runner = PodRunner::start(client.clone(), settings).await.unwrap();
        Self { client, runner, _server: server, _home: home }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope> + Serialize + DeserializeOwned + Clone,
        K: std::fmt::Debug,
        K::DynamicType: Default,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    /// A Service of pods labelled with its name; gives back its address.
    pub(crate) async fn service(&self, name: &str, more: Value) -> Ipv4Addr {
        let mut spec = json!({"selector": {"app": name}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let service: Service = self.create(json!({"metadata": {"name": name}, "spec": spec})).await;
        service.spec.unwrap().cluster_ip.unwrap().parse().unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    /// Waits until a pod is ready; gives back its address.
    pub(crate) async fn ready(&self, name: &str) -> Ipv4Addr {
        until(|| async {
            let pod = self.api::<Pod>().get_opt(name).await.unwrap().filter(is_ready)?;
            pod.status?.pod_ip?.parse().ok()
        })
        .await
    }

    pub(crate) async fn pods(&self, app: &str) -> Vec<Pod> {
        let labelled = ListParams::default().labels(&format!("app={app}"));
        self.api::<Pod>().list(&labelled).await.unwrap().items
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

pub(crate) fn settings(home: &Path) -> RunnerSettings {
    RunnerSettings::new("here", home.join("runner"), env!("CARGO_BIN_EXE_portolan-pod").into())
}

/// Pods are users of their own, and pass through.
pub(crate) fn open_to_pods(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711)).unwrap();
}

/// A container that echoes at a port, with the pod's name before what it echoes.
pub(crate) fn echo(port: u16) -> Value {
    json!({
        "name": "echo", "image": "portolan-echo", "args": ["--port", port.to_string(), "--name", "$(NAME)"],
        "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
    })
}

/// Looks until something is there.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it comes so far")
}

pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it ends")
}

/// An address that no other test and no other run of these tests has.
pub(crate) fn own_address() -> SocketAddrV4 {
    static PORTS: AtomicU16 = AtomicU16::new(20_000);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(127, 91, high, low), PORTS.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn service_name() -> ServiceName {
    ServiceName { namespace: "default".to_owned(), name: "web".to_owned() }
}

/// A port that is served by these.
pub(crate) fn served(transport: Transport, listen: SocketAddrV4, backends: &[SocketAddr]) -> Vec<ServedPort> {
    let v4 = |address: &SocketAddr| match address {
        SocketAddr::V4(address) => *address,
        SocketAddr::V6(_) => panic!("only IPv4 is forwarded"),
    };
    vec![ServedPort { listen, transport, backends: backends.iter().map(v4).collect(), affinity: None }]
}
