//! `portolan doctor` against a real kube-apiserver, as accounts that may do everything, too little, or what their role needs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::path::{Path, PathBuf};

use crate::support::{Run, portolan};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use portolan_install::values::Crds;
use portolan_install::{Release, Values, objects};
use portolan_parity::{ControlPlane, Durability, PeerServer};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAMESPACE: &str = "cloudflare-zero-trust";

/// Written to the handle itself: what `println!` says is kept back.
fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A real API server that knows the Gateway API's routes and our kinds.
struct Cluster {
    runtime: tokio::runtime::Runtime,
    plane: ControlPlane,
    folder: TempDir,
}

impl Cluster {
    fn start() -> Result<Self, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let plane = runtime.block_on(ControlPlane::start(Durability::None)).map_err(|why| why.to_string())?;
        let gateway = portolan_parity::gateway_api().map_err(|why| why.to_string())?;
        let cluster = Self { runtime, plane, folder: tempfile::tempdir().unwrap() };
        cluster.apply(gateway.iter().filter(|definition| definition["spec"]["names"]["kind"] == "HTTPRoute"));
        cluster.apply_text(&Run::from(portolan().arg("crds").output().unwrap()).succeeded());
        Ok(cluster)
    }

    fn apply<'a>(&self, objects: impl IntoIterator<Item = &'a Value>) {
        let texts: Vec<String> = objects.into_iter().map(Value::to_string).collect();
        self.apply_text(&texts.join("\n---\n"));
    }

    fn apply_text(&self, text: &str) {
        let file = self.folder.path().join("objects.yaml");
        std::fs::write(&file, text).unwrap();
        let mut command = portolan();
        command.env("KUBECONFIG", self.plane.kubeconfig()).args(["apply", "-f"]).arg(&file);
        Run::from(command.output().unwrap()).succeeded();
    }

    /// A kubeconfig with a token of an account, and nothing else.
    fn kubeconfig_of(&self, account: &str) -> PathBuf {
        let token = self.runtime.block_on(token(self.plane.server(), account));
        let path = self.folder.path().join(format!("{account}.kubeconfig"));
        std::fs::write(&path, PeerServer { token, ..self.plane.server().clone() }.kubeconfig()).unwrap();
        path
    }
}

async fn token(server: &PeerServer, account: &str) -> String {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let accounts: kube::Api<ServiceAccount> = kube::Api::namespaced(client, NAMESPACE);
    let asked = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &asked).await.unwrap();
    answer.status.and_then(|status| status.token).unwrap()
}

/// One check's result, by what a command printed.
fn finding(run: &Run, check: &str) -> Value {
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["check"] == check).unwrap_or_else(|| panic!("no {check}: {run}")).clone()
}

/// An account that may read routes and nothing else.
fn restricted() -> Vec<Value> {
    let account = json!({"kind": "ServiceAccount", "name": "looker", "namespace": NAMESPACE});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looker"});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "looker", "namespace": NAMESPACE}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "looker"},
            "rules": [{"apiGroups": ["gateway.networking.k8s.io"], "resources": ["httproutes"], "verbs": ["get", "list", "watch"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "looker"},
            "subjects": [account], "roleRef": role,
        }),
    ]
}

/// What is installed for the three roles.
fn installation() -> Vec<Value> {
    let jobs = portolan_jobs::sheets(portolan_jobs::ALL);
    let values = Values {
        crds: Crds { install: false, keep: true },
        ..Values::parse(&jobs, &[], &["operator.mode=roles"]).unwrap()
    };
    let release = Release { name: ROLES[0].1.to_owned(), namespace: NAMESPACE.to_owned(), version: "0.0.0".to_owned() };
    objects(&values, &release, &jobs).unwrap()
}

#[test]
fn rights_are_asked_one_by_one_and_the_missing_ones_named() {
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        // The summary of `make test` repeats what was not run.
        Err(why) => return tell(&format!("real: NOT RUN: portolan doctor on a real API server: {why}")),
    };
    cluster.apply(&restricted());
    let doctor = |kubeconfig: &Path, arguments: &[&str]| -> Run {
        let mut command = portolan();
        command.env("KUBECONFIG", kubeconfig).args(["doctor", "-o", "json"]).args(arguments);
        command.output().unwrap().into()
    };

    let admin = doctor(cluster.plane.kubeconfig(), &[]);
    assert_eq!(admin.code, Some(0), "{admin}");
    for check in ["cluster", "definitions", "gateway-api", "rbac", "older-operator"] {
        assert_eq!(finding(&admin, check)["result"], "ok", "{admin}");
    }

    let looker = cluster.kubeconfig_of("looker");
    let itself = doctor(&looker, &["--role", "kube_worker"]);
    let other = doctor(cluster.plane.kubeconfig(), &["--role", "kube_worker", "--service-account", "looker"]);

    for run in [&itself, &other] {
        let rbac = finding(run, "rbac");
        let message = rbac["message"].as_str().unwrap();
        assert_eq!((run.code, &rbac["result"]), (Some(1), &json!("failed")), "{run}");
        assert!(message.contains("patch httproutes.gateway.networking.k8s.io everywhere"), "{message}");
        assert!(!message.contains("list httproutes"), "{message}");
    }
    assert_eq!(finding(&itself, "definitions")["result"], "notKnown", "{itself}");

    cluster.apply(&installation());
    for (role, account) in ROLES {
        let run = doctor(cluster.plane.kubeconfig(), &["--role", role, "--service-account", account]);
        assert_eq!(finding(&run, "rbac")["result"], "ok", "{run}");
    }
    let swapped = doctor(cluster.plane.kubeconfig(), &["--role", "manager", "--service-account", ROLES[1].1]);
    assert!(finding(&swapped, "rbac")["message"].as_str().unwrap().contains("deployments.apps"), "{swapped}");

    tell(
        "real: doctor names missing rights on kube-apiserver, and finds those of all roles of an installation sufficient",
    );
}

const ROLES: [(&str, &str); 3] = [
    ("manager", "cloudflare-zero-trust-operator"),
    ("kube_worker", "cloudflare-zero-trust-operator-kube-worker"),
    ("cloudflare_worker", "cloudflare-zero-trust-operator-cloudflare-worker"),
];
