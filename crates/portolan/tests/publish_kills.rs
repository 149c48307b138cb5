//! `kill -9` of `portolan run` while protected routes with service tokens converge: in the end there is one of everything,
//! every Secret opens its name at the edge, and no client secret stands anywhere else.
//!
//! `PORTOLAN_PUBLISH_KILLS` sets the number of kills (50 where unset).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use support::process::{Process, ask_edge, eventually, http_get};
use support::{Run, Server, portolan};

const ROUTES: usize = 40;
/// An operator that has little to do is not waited for.
const LONGEST_LIFE: Duration = Duration::from_secs(4);
const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";

/// API server, simulator with its edge, an origin, and where they are.
struct Ground {
    server: Server,
    _simulator: Process,
    cloudflare: String,
    edge: SocketAddr,
    log: std::path::PathBuf,
    folder: tempfile::TempDir,
}

/// An origin that says yes to everything.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
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

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Ground {
    fn prepare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let seed = folder.path().join("seed.json");
        let tunnel = json!({ "account": ACCOUNT, "id": TUNNEL, "name": "edge", "config_src": "cloudflare" });
        let document = json!({
            "accounts": [{ "id": ACCOUNT, "name": "Example" }],
            "zones": [{ "id": "d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0", "name": "example.com", "account": ACCOUNT, "plan": "enterprise" }],
            "tokens": [{ "token": "canary-api-token" }],
            "tunnels": [tunnel],
        });
        std::fs::write(&seed, document.to_string()).unwrap();
        let edge = free_port();
        let mapped = format!("traefik.traefik.svc={}", origin());
        let (simulator, cloudflare) = support::process::simulator(&[
            "--seed",
            seed.to_str().unwrap(),
            "--latency",
            "15ms",
            "--rate-limit",
            "off",
            "--edge",
            &edge.to_string(),
            "--edge-origin",
            &mapped,
        ]);
        let log = folder.path().join("run.log");
        Self { server: Server::start(), _simulator: simulator, cloudflare, edge, log, folder }
    }

    fn apply(&self, objects: &[Value]) {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.server.run_with_input(&["apply", "-f", "-"], &text.join("\n---\n")).succeeded();
    }

    /// The operator, not started yet; what it logs is kept.
    fn operator(&self) -> std::process::Command {
        let log = std::fs::File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command =
            self.server.command(&["run", "--controllers", "zerotrust", "--metrics", "127.0.0.1:0", "--health", "0"]);
        command
            .env("CLOUDFLARE_API_BASE", &self.cloudflare)
            .env("CLOUDFLARE_API_BASE_URL", &self.cloudflare)
            .env("POD_NAME", "worker-0")
            .env("LOG_LEVEL", "DEBUG")
            .stderr(log);
        command
    }

    fn admin(&self, what: &str) -> Value {
        serde_json::from_str(&http_get(&self.cloudflare.replace("/client/v4", &format!("/admin/{what}")))).unwrap()
    }

    fn requests(&self) -> usize {
        match self.admin("requests") {
            Value::Array(all) => all.len(),
            other => other["requests"].as_array().map_or(0, Vec::len),
        }
    }

    fn get(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let listed = self.server.run(&["get", kind, "-n", namespace, "-o", "json"]).succeeded();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed["items"].as_array().cloned().unwrap_or_default()
    }

    /// The status that the edge answers with.
    fn visit(&self, host: &str, headers: &[(&str, &str)]) -> u16 {
        let answer = ask_edge(&format!("http://{}", self.edge), host, headers);
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn tenant() -> [Value; 2] {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloudflare-api-token", "namespace": "default" },
        "stringData": { "token": "canary-api-token" },
    });
    let tenant = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustTenant",
        "metadata": { "name": "prod", "namespace": "default" },
        "spec": {
            "accountId": ACCOUNT, "tunnelId": TUNNEL, "credentialRef": { "name": "cloudflare-api-token", "key": "token" },
            "defaults": { "originService": "http://traefik.traefik.svc:80" },
        },
    });
    [secret, tenant]
}

fn route(number: usize, emails: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {
            "name": format!("r{number}"), "namespace": "default",
            "annotations": {
                "cfzt.cloudflare.com/enabled": "true",
                "cfzt.cloudflare.com/hostname": format!("r{number}.example.com"),
                "cfzt.cloudflare.com/accessApp": "true",
                "cfzt.cloudflare.com/allowEmails": emails,
                "cfzt.cloudflare.com/serviceToken": "true",
            },
        },
        "spec": { "rules": [{ "backendRefs": [{ "name": "web", "port": 80 }] }] },
    })
}

/// A route as it is after a round: other addresses, and now and then another secret.
fn edited(number: usize, emails: &str, round: usize) -> Value {
    let mut route = route(number, emails);
    if number.is_multiple_of(3) {
        route["metadata"]["annotations"]["cfzt.cloudflare.com/serviceToken.rotate"] = json!(format!("round {round}"));
    }
    route
}

/// Starts the operator, lets it come a little further, and kills it.
fn come_further_and_die(ground: &Ground, round: usize) {
    let before = ground.requests();
    let operator = Process::start(&mut ground.operator());
    let further = before + 1 + round * 7 % 11;
    let until = Instant::now() + LONGEST_LIFE;
    while ground.requests() < further && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis((round * 37 % 60) as u64));
    // Dropped, it is killed by SIGKILL.
    drop(operator);
}

fn decoded(secret: &Value, key: &str) -> String {
    let text = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text).unwrap()).unwrap()
}

fn is_done(ground: &Ground) -> bool {
    let routes = ground.get("httproutes", "default");
    let written = |one: &Value| one["metadata"]["annotations"]["cfzt.cloudflare.com/lastReconcile"].is_string();
    routes.len() == ROUTES
        && routes.iter().all(written)
        && ground.get("cloudflaretasks", "cloudflare-zero-trust").is_empty()
}

fn count(state: &Value, collection: &str) -> usize {
    state[collection]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, objects)| objects.as_array())
        .map(Vec::len)
        .sum()
}

#[test]
fn killed_fifty_times_there_is_one_of_everything_and_the_secrets_open_their_names() {
    let kills: usize = std::env::var("PORTOLAN_PUBLISH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
    let ground = Ground::prepare();
    let crds = Run::from(portolan().arg("crds").output().unwrap()).succeeded();
    ground.server.run_with_input(&["apply", "-f", "-"], &crds).succeeded();
    let routes_definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/httproutes.yaml");
    ground.server.run(&["apply", "-f", routes_definition.to_str().unwrap()]).succeeded();
    ground.apply(&[namespace("cloudflare-zero-trust")]);
    ground.apply(&tenant());
    ground.apply(&(0..ROUTES).map(|number| route(number, "first@example.com")).collect::<Vec<_>>());

    for round in 0..kills {
        // Users go on working, so that there is always something to do.
        let emails = format!("user{round}@example.com");
        ground.apply(&(0..6).map(|n| edited((round * 6 + n) % ROUTES, &emails, round)).collect::<Vec<_>>());
        come_further_and_die(&ground, round);
    }
    let mut last = Process::start(&mut ground.operator());
    eventually("everything is done", || is_done(&ground).then_some(()));

    let state = ground.admin("state");
    for collection in ["access_apps", "service_tokens", "dns_records"] {
        assert_eq!(count(&state, collection), ROUTES, "{collection}");
    }
    let rules = state["configurations"][TUNNEL]["config"]["ingress"].as_array().map_or(0, Vec::len);
    assert_eq!(rules, ROUTES + 1, "one rule each and the catch-all");
    let secrets = ground.get("secrets", "default");
    let mut told = Vec::new();
    for number in 0..ROUTES {
        let name = format!("r{number}-cfzt-service-token");
        let secret = secrets.iter().find(|one| one["metadata"]["name"] == name).expect("every route has its Secret");
        let (id, key) = (decoded(secret, "client_id"), decoded(secret, "client_secret"));
        let host = format!("r{number}.example.com");
        let shown = [("CF-Access-Client-Id", id.as_str()), ("CF-Access-Client-Secret", key.as_str())];
        assert_eq!(ground.visit(&host, &shown), 200, "the Secret opens {host}");
        assert_eq!(ground.visit(&host, &[]), 302, "nobody else enters {host}");
        told.push(key);
    }
    assert_eq!(last.terminate(), Some(0));
    assert_nowhere_else(&ground, &told);
    // Written to the handle itself: what `println!` says is kept back when a test passes.
    let _ = writeln!(
        std::io::stderr(),
        "kills: {kills} of portolan run, {ROUTES} routes with tokens: one of everything, all Secrets open their names"
    );
}

/// No client secret stands in an object, an event or the log.
fn assert_nowhere_else(ground: &Ground, told: &[String]) {
    let mut places = vec![("the log".to_owned(), std::fs::read_to_string(&ground.log).unwrap())];
    for (kind, namespace) in [
        ("httproutes", "default"),
        ("cloudflarezerotrusttenants", "default"),
        ("events", "default"),
        ("cloudflaretasks", "cloudflare-zero-trust"),
        ("configmaps", "cloudflare-zero-trust"),
        ("secrets", "cloudflare-zero-trust"),
    ] {
        let objects = ground.get(kind, namespace);
        places.push((kind.to_owned(), json!(objects).to_string()));
    }
    places.push(("recorded requests".to_owned(), ground.admin("requests").to_string()));
    for (place, text) in &places {
        let seen = told.iter().chain([&"canary-api-token".to_owned()]).any(|secret| text.contains(secret.as_str()));
        assert!(!seen, "a secret stands in {place}");
    }
    assert!(places[0].1.len() > 1000, "something was logged in {}", ground.folder.path().display());
}
