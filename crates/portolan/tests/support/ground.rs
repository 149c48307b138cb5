//! An API server, a simulator with its edge, an origin behind it, and many routes: what processes of the operator are tried on.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use serde_json::{Value, json};

use super::process::{Process, ask_edge, http_get, simulator};
use super::{Run, Server, portolan};

pub const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
pub const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
pub const NAMESPACE: &str = "cloudflare-zero-trust";
/// The token of the account, which must be seen nowhere.
pub const API_TOKEN: &str = "canary-api-token";

/// API server, simulator with its edge, an origin, and where they are.
pub struct Ground {
    /// Stopped when this is dropped; none where the server is somebody else's.
    server: Option<Server>,
    kubeconfig: PathBuf,
    _simulator: Process,
    pub cloudflare: String,
    edge: String,
    folder: tempfile::TempDir,
}

/// An origin that says yes to everything.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nyes");
            });
        }
    });
    address
}

impl Ground {
    /// On an embedded API server of its own.
    pub fn embedded(latency: &str) -> Self {
        let server = Server::start();
        let gateway = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/httproutes.yaml");
        let mut ground = Self::on(&server.kubeconfig(), &gateway, latency);
        ground.server = Some(server);
        ground
    }

    /// On a server that is there, with the definition of `HTTPRoute` from a file.
    pub fn on(kubeconfig: &Path, gateway: &Path, latency: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let seed = folder.path().join("seed.json");
        std::fs::write(&seed, seeds().to_string()).expect("written");
        let mapped = format!("traefik.traefik.svc={}", origin());
        let (mut simulator, cloudflare) = simulator(&[
            "--seed",
            &seed.display().to_string(),
            "--latency",
            latency,
            "--rate-limit",
            "off",
            "--edge",
            "127.0.0.1:0",
            "--edge-origin",
            &mapped,
        ]);
        let edge = simulator.line_with("Its edge at ").rsplit(' ').next().expect("an address").to_owned();
        let kubeconfig = kubeconfig.to_owned();
        let ground = Self { server: None, kubeconfig, _simulator: simulator, cloudflare, edge, folder };
        ground.furnish(gateway);
        ground
    }

    fn furnish(&self, gateway: &Path) {
        let crds = Run::from(portolan().arg("crds").output().expect("it runs")).succeeded();
        self.run_with_input(&["apply", "-f", "-"], &crds).succeeded();
        self.run(&["apply", "-f", &gateway.display().to_string()]).succeeded();
        self.apply(&[namespace(NAMESPACE)]);
        self.apply(&tenant("default"));
    }

    /// Runs a command against the API server.
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().expect("the binary runs").into()
    }

    /// A command against the API server, not yet run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = portolan();
        command.env("KUBECONFIG", &self.kubeconfig).args(arguments);
        command
    }

    fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the command reads its input");
        child.wait_with_output().expect("the command ends").into()
    }

    pub fn apply(&self, objects: &[Value]) {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.run_with_input(&["apply", "-f", "-"], &text.join("\n---\n")).succeeded();
    }

    /// A process of the operator, not started yet; what it logs is kept under its name.
    pub fn operator(&self, name: &str, role: &str) -> Command {
        let log = std::fs::File::options().create(true).append(true).open(self.log_of(name)).expect("a log");
        let mut command =
            self.command(&["run", "--controllers", "zerotrust", "--metrics", "127.0.0.1:0", "--health", "0"]);
        command
            .env("CLOUDFLARE_API_BASE", &self.cloudflare)
            .env("POD_NAME", name)
            .env("ROLE", role)
            .env("LOG_LEVEL", "DEBUG")
            .stderr(log);
        command
    }

    fn log_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    /// What a process logged.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.log_of(name)).unwrap_or_default()
    }

    pub fn admin(&self, what: &str) -> Value {
        let text = http_get(&self.cloudflare.replace("/client/v4", &format!("/admin/{what}")));
        serde_json::from_str(&text).expect("JSON")
    }

    /// All requests that the simulator answered.
    pub fn requests(&self) -> Vec<Value> {
        match self.admin("requests") {
            Value::Array(all) => all,
            other => other["requests"].as_array().cloned().unwrap_or_default(),
        }
    }

    pub fn get(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let listed = self.run(&["get", kind, "-n", namespace, "-o", "json"]).succeeded();
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        listed["items"].as_array().cloned().unwrap_or_default()
    }

    /// The status that the edge answers with.
    pub fn visit(&self, host: &str, headers: &[(&str, &str)]) -> u16 {
        visit(&self.edge, host, headers)
    }

    /// Where the edge is.
    pub fn edge(&self) -> &str {
        &self.edge
    }

    /// How many objects of a collection stand at Cloudflare.
    pub fn count(&self, collection: &str) -> usize {
        let state = self.admin("state");
        let scopes = state[collection].as_object().into_iter().flatten();
        scopes.filter_map(|(_, objects)| objects.as_array()).map(Vec::len).sum()
    }

    /// How many rules the tunnel has, besides the last one.
    pub fn rules(&self) -> usize {
        let state = self.admin("state");
        let rules = state["configurations"][TUNNEL]["config"]["ingress"].as_array();
        rules.into_iter().flatten().filter(|rule| rule["hostname"].is_string()).count()
    }

    /// Whether all routes of a namespace are carried out as they are now, and nothing is left to do.
    pub fn is_done(&self, namespace: &str, routes: usize) -> bool {
        let listed = self.get("httproutes", namespace);
        let written = |one: &Value| one["metadata"]["annotations"]["cfzt.cloudflare.com/lastReconcile"].is_string();
        listed.len() == routes && listed.iter().all(written) && self.get("cloudflaretasks", NAMESPACE).is_empty()
    }
}

/// The status of an edge's answer.
pub fn visit(edge: &str, host: &str, headers: &[(&str, &str)]) -> u16 {
    let answer = ask_edge(edge, host, headers);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

/// An account with a zone, a tunnel and a token.
fn seeds() -> Value {
    let zone = json!({ "id": "d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0", "name": "example.com", "account": ACCOUNT, "plan": "enterprise" });
    let tunnel = json!({ "account": ACCOUNT, "id": TUNNEL, "name": "edge", "config_src": "cloudflare" });
    json!({
        "accounts": [{ "id": ACCOUNT, "name": "Example" }],
        "zones": [zone],
        "tokens": [{ "token": API_TOKEN }],
        "tunnels": [tunnel],
    })
}

pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// A tenant with its Secret.
pub fn tenant(namespace: &str) -> [Value; 2] {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloudflare-api-token", "namespace": namespace },
        "stringData": { "token": API_TOKEN },
    });
    let tenant = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustTenant",
        "metadata": { "name": "prod", "namespace": namespace },
        "spec": {
            "accountId": ACCOUNT, "tunnelId": TUNNEL, "credentialRef": { "name": "cloudflare-api-token", "key": "token" },
            "defaults": { "originService": "http://traefik.traefik.svc:80" },
        },
    });
    [secret, tenant]
}

/// A protected route `name` in a namespace, published as `host`.
pub fn route(namespace: &str, name: &str, host: &str, more: &[(&str, &str)]) -> Value {
    let mut annotations: BTreeMap<String, &str> = BTreeMap::new();
    let usual = [("enabled", "true"), ("hostname", host), ("accessApp", "true")];
    for (name, value) in usual.into_iter().chain(more.iter().copied()) {
        annotations.insert(format!("cfzt.cloudflare.com/{name}"), value);
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": { "name": name, "namespace": namespace, "annotations": annotations },
        "spec": { "rules": [{ "backendRefs": [{ "name": "web", "port": 80 }] }] },
    })
}

/// One value of a Secret.
pub fn decoded(secret: &Value, key: &str) -> String {
    let text = secret["data"][key].as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    String::from_utf8(bytes).expect("text")
}
