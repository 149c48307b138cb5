//! An embedded Kubernetes API server: what controllers and `kubectl` rely on, in one process, on one file or none.
//!
//! A request goes HTTP → [`ApiService`] → what it asks for → the resource's strategy (defaults, checks, ownership) →
//! the [`store`]'s writer → journal, and only then to readers and watchers.

mod access;
mod addresses;
mod answer;
mod api;
mod call;
mod classes;
mod compress;
mod controllers;
mod credentials;
mod decode;
pub mod encode;
mod jsonpath;
mod negotiate;
mod object;
mod openapi;
mod pod_logs;
mod pod_streams;
mod registry;
mod request;
mod selector;
mod server;
mod service;
mod snapshot;
pub mod status;
pub mod store;
mod strategy;
mod streams;
mod table;
mod warnings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use api::{Accounts, Clock, PageLimits};
pub use controllers::Workloads;
pub use credentials::CredentialsError;
pub use pod_logs::{LogError, LogLine, LogRun, LogSource, PodLog, PodLogs};
pub use pod_streams::{ExecOrder, ExecSession, PodPort, PodSocket, PodStreams, StreamRefusal, TerminalSize};
pub use server::{RunningServer, StartError};
pub use service::{ApiBody, ApiService};
pub use snapshot::ServerSnapshot;

use access::{Caller, TokenKey};
use api::Api;
use credentials::ServerIdentity;
use store::{Expect, HistoryLimits, Journal, MemoryJournal, SqliteJournal, Store, StoreWrite, Write};

/// Namespaces that are always there.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// How a server is set up.
#[derive(Clone)]
pub struct Config {
    /// Where the data file, the certificates and the kubeconfig are kept; `None` keeps everything in memory.
    pub data_dir: Option<PathBuf>,
    /// Tells the time.
    pub clock: Clock,
    /// What clients may ask for at most.
    pub limits: PageLimits,
    /// How much history is kept for watches.
    pub history: HistoryLimits,
    /// Makes uids and generated names repeatable.
    pub seed: Option<u64>,
    /// Whether the controllers of workloads run.
    pub workloads: Workloads,
    /// Whether new pods need their account.
    pub accounts: Accounts,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: None,
            clock: Arc::new(jiff::Timestamp::now),
            limits: PageLimits::default(),
            history: HistoryLimits::default(),
            seed: None,
            workloads: Workloads::Off,
            accounts: Accounts::default(),
        }
    }
}

/// A server: a store, its registry and its controllers. It ends when the last clone is dropped.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    api: Arc<Api>,
    data_dir: Option<PathBuf>,
    stop: Arc<watch::Sender<bool>>,
    workloads: Workloads,
    controllers: Mutex<Vec<JoinHandle<()>>>,
}

impl ApiServer {
    /// Opens the data and starts the controllers. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// A data file that is not ours, newer, damaged or in use is refused and left as it is.
    pub async fn open(config: Config) -> Result<Self, StartError> {
        let journal: Box<dyn Journal> = match &config.data_dir {
            None => Box::new(MemoryJournal),
            Some(directory) => {
                credentials::private_directory(directory)?;
                Box::new(open_file(directory.join("portolan.sqlite"))?)
            }
        };
        let store = Store::open(journal, config.history)?;
        let key = match &config.data_dir {
            None => TokenKey::in_memory(),
            Some(directory) => TokenKey::load_or_generate(&directory.join("pki"))?,
        };
        let api = Arc::new(Api::new(store, &config, key));
        bootstrap(&api).await;
        classes::bootstrap(&api).await;
        access::bootstrap::run(&api).await;
        controllers::definitions::serve_established(&api);
        Ok(Self::start(api, config.data_dir, config.workloads).await)
    }

    /// Begins with what another server held, in memory: what `config` says of the data's place is not looked at. Must be
    /// called inside a tokio runtime.
    pub async fn open_from(config: Config, snapshot: &ServerSnapshot) -> Self {
        let store = Store::open(Box::new(snapshot.journal()), config.history).expect("memory is read without errors");
        let api = Arc::new(Api::new(store, &config, TokenKey::in_memory()));
        api.serve_all(snapshot.registry());
        Self::start(api, None, config.workloads).await
    }

    /// What it holds now, for other servers to begin with.
    pub fn snapshot(&self) -> ServerSnapshot {
        ServerSnapshot::of(&self.inner.api)
    }

    async fn start(api: Arc<Api>, data_dir: Option<PathBuf>, workloads: Workloads) -> Self {
        let mut controllers = controllers::start(&api, workloads);
        let aggregation = access::aggregation::Aggregation::start(&api).await;
        controllers.extend(aggregation.map(|aggregation| tokio::spawn(aggregation.run())));
        let (stop, controllers) = (Arc::new(watch::channel(false).0), Mutex::new(controllers));
        Self { inner: Arc::new(Inner { api, data_dir, stop, workloads, controllers }) }
    }

    /// The server for clients in this process; they need no token and may do everything.
    pub fn service(&self) -> ApiService {
        self.service_of(Caller::Known(access::administrator()))
    }

    /// The server for clients in this process that act as a user of some groups: roles and bindings decide what they
    /// may do, as for anyone who authenticates. `system:authenticated` is among the groups by itself.
    pub fn service_as(&self, user: &str, groups: &[&str]) -> ApiService {
        let mut user = portolan_rbac::User::new(user, groups.iter().copied());
        user.join(portolan_rbac::user::AUTHENTICATED);
        self.service_of(Caller::Known(Arc::new(user)))
    }

    fn service_of(&self, caller: Caller) -> ApiService {
        ApiService::new(self.inner.api.clone(), caller, self.inner.stop.subscribe())
    }

    /// Answers `kubectl logs` from now on.
    pub fn set_pod_logs(&self, logs: Arc<dyn PodLogs>) {
        self.inner.api.set_pod_logs(logs);
    }

    /// Answers `kubectl exec` and `kubectl port-forward` from now on.
    pub fn set_pod_streams(&self, streams: Arc<dyn PodStreams>) {
        self.inner.api.set_pod_streams(streams);
    }

    /// Says of pods that nothing binds why they are pending, from now on: for servers beside which no runner runs.
    pub fn tell_why_pods_wait(&self) {
        let telling = controllers::tell_why_pods_wait(&self.inner.api);
        self.inner.controllers.lock().expect("only pushed to").push(telling);
    }

    /// The store behind it.
    pub fn store(&self) -> &Store {
        &self.inner.api.store
    }

    /// Listens with TLS; clients need the token.
    pub async fn serve(self, address: SocketAddr) -> Result<RunningServer, StartError> {
        let token = || format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        let credentials = match &self.inner.data_dir {
            Some(directory) => ServerIdentity::load_or_generate(directory, token)?,
            None => ServerIdentity::generate(token())?,
        };
        if self.inner.workloads == Workloads::On {
            let publisher = controllers::publish_certificate(&self.inner.api, &credentials.ca_pem);
            self.inner.controllers.lock().expect("only pushed to").push(publisher);
        }
        self.inner.api.access.set_own_token(&credentials.token);
        let service = self.service_of(Caller::Bearer);
        let data_dir = self.inner.data_dir.clone();
        RunningServer::start(self, service, credentials, address, data_dir).await
    }

    fn stop_sender(&self) -> Arc<watch::Sender<bool>> {
        self.inner.stop.clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        for controller in self.controllers.get_mut().into_iter().flatten() {
            controller.abort();
        }
    }
}

/// Opens a data file that only its owner reads.
fn open_file(path: PathBuf) -> Result<SqliteJournal, StartError> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let io = |source| store::JournalError::Io { step: "opening the data file", source };
    if path.exists() {
        let journal = SqliteJournal::open(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(io)?;
        return Ok(journal);
    }
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(io)?;
    Ok(SqliteJournal::open(&path)?)
}

/// Makes the namespaces that are always there.
async fn bootstrap(api: &Arc<Api>) {
    let registry = api.registry();
    let Some(namespaces) = registry.find("", "v1", "namespaces") else {
        return;
    };
    for name in NAMESPACES {
        let key = namespaces.key("", name);
        if api.store.get(&key).is_some() {
            continue;
        }
        let object = json!({
            "metadata": {
                "name": name, "uid": api.new_uid(), "creationTimestamp": api.now(),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        let write = Write { key, expect: Expect::Absent, change: StoreWrite::Put(encode::body_of(object)) };
        if let Err(error) = api.store.write(write).await {
            tracing::warn!(name, %error, "Could not make a namespace");
        }
    }
}
