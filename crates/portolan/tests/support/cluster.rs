//! A real API server with the workload controllers: objects go in as an administrator applies them, requests are made as any
//! account, and what the accounts asked for comes out.

use std::path::{Path, PathBuf};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use portolan_parity::{Audited, ControlPlane, Controllers, Durability, PeerServer};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Run, portolan, run_with_input};

/// A real cluster without nodes.
pub struct Cluster {
    runtime: Runtime,
    plane: ControlPlane,
    admin: Client,
    folder: TempDir,
}

impl Cluster {
    /// Starts one that knows the Gateway API's own routes; says why where that cannot be.
    pub fn start() -> Result<Self, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let starting = ControlPlane::start_with(Durability::None, Controllers::Workloads);
        let plane = runtime.block_on(starting).map_err(|why| why.to_string())?;
        let gateway = portolan_parity::gateway_api().map_err(|why| why.to_string())?;
        let admin = runtime.block_on(client(plane.server()));
        let cluster = Self { runtime, plane, admin, folder: tempfile::tempdir().expect("a temporary folder") };
        cluster.apply(gateway.iter().filter(|definition| definition["spec"]["names"]["kind"] == "HTTPRoute"));
        Ok(cluster)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        self.plane.kubeconfig()
    }

    /// The administrator's client.
    pub fn admin(&self) -> &Client {
        &self.admin
    }

    /// Waits for an answer of the cluster.
    pub fn wait<T>(&self, asking: impl Future<Output = T>) -> T {
        self.runtime.block_on(asking)
    }

    /// Runs a command as an administrator.
    pub fn run(&self, arguments: &[&str]) -> Run {
        portolan().env("KUBECONFIG", self.kubeconfig()).args(arguments).output().expect("the binary runs").into()
    }

    /// Applies objects as an administrator.
    pub fn apply<'a>(&self, objects: impl IntoIterator<Item = &'a Value>) {
        let texts: Vec<String> = objects.into_iter().map(Value::to_string).collect();
        self.apply_text(&texts.join("\n---\n"));
    }

    /// Applies the objects of a text in YAML as an administrator.
    pub fn apply_text(&self, text: &str) {
        let mut command = portolan();
        command.env("KUBECONFIG", self.kubeconfig()).args(["apply", "-f", "-"]);
        run_with_input(command, text).succeeded();
    }

    /// An object, if it exists.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let run = self.run(&["get", kind, name, "-n", namespace, "-o", "json"]);
        (run.code == Some(0)).then(|| serde_json::from_str(&run.stdout).expect("JSON"))
    }

    /// All objects of a kind in a namespace.
    pub fn list(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let run = self.run(&["get", kind, "-n", namespace, "-o", "json"]).succeeded();
        let list: Value = serde_json::from_str(&run).expect("JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// A server that knows us as an account, by a token that was asked for.
    fn server_of(&self, namespace: &str, account: &str) -> PeerServer {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), namespace);
        let asked = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
        let answer = self.wait(accounts.create_token_request(account, &PostParams::default(), &asked));
        let status = answer.unwrap_or_else(|why| panic!("no token for {account}: {why}")).status;
        let token = status.and_then(|status| status.token).expect("an answer has a token");
        PeerServer { token, ..self.plane.server().clone() }
    }

    /// A kubeconfig with a token of an account, and nothing else.
    pub fn kubeconfig_of(&self, namespace: &str, account: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{namespace}-{account}.kubeconfig"));
        std::fs::write(&path, self.server_of(namespace, account).kubeconfig()).expect("written");
        path
    }

    /// A client with a token of an account.
    pub fn client_of(&self, namespace: &str, account: &str) -> Client {
        let server = self.server_of(namespace, account);
        self.wait(client(&server))
    }

    /// What accounts asked for so far, and were answered.
    pub fn audited(&self) -> Vec<Audited> {
        self.plane.audited().expect("the log can be read")
    }

    /// A folder for this cluster's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

async fn client(server: &PeerServer) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).expect("our own kubeconfig is valid");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("our own kubeconfig is complete")).expect("a client")
}
