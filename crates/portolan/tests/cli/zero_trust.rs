//! The examples of the zerotrust job, applied as users apply them, and what then stands at Cloudflare.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::{Path, PathBuf};

use crate::support::process::{Process, ask_edge, eventually, simulator, up};
use crate::support::{Run, example, portolan};
use serde_json::{Value, json};
use tempfile::TempDir;

const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const STAGING: &str = "fedcba9876543210fedcba9876543210";
const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";

/// A data directory, and the examples' files.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs `up --once` over the tenant and more files.
    fn once(&self, paths: &[&str]) -> Run {
        let paths = paths.iter().map(|path| example(&format!("zero-trust/{path}")));
        let mut command = up(&self.data());
        command.args(["--once", "--timeout", "60s", "--seed", &example("zero-trust/seed.yaml")]).args(paths);
        command.output().unwrap().into()
    }

    /// What the simulator held when it stopped.
    fn kept(&self) -> Kept {
        let text = std::fs::read_to_string(self.data().join("simulator.json")).unwrap();
        Kept(serde_json::from_str(&text).unwrap())
    }

    /// Leaves `up` running over the tenant and more files.
    fn stay(&self, paths: &[&str]) -> (Process, Value) {
        let paths = paths.iter().map(|path| example(&format!("zero-trust/{path}")));
        let mut command = up(&self.data());
        command.args(["--edge-origin", "*=echo", "--seed", &example("zero-trust/seed.yaml")]).args(paths);
        let mut process = Process::start(&mut command);
        process.line_with("objects Ready");
        let urls = std::fs::read_to_string(self.data().join("urls.json")).unwrap();
        (process, serde_json::from_str(&urls).unwrap())
    }

    /// A command against the running server.
    fn run(&self, arguments: &[&str]) -> Run {
        portolan().env("KUBECONFIG", self.data().join("kubeconfig")).args(arguments).output().unwrap().into()
    }

    fn get(&self, kind: &str, namespace: &str, name: &str) -> Value {
        let said = self.run(&["get", kind, name, "-n", namespace, "-o", "json"]).succeeded();
        serde_json::from_str(&said).unwrap()
    }
}

/// A simulator's state.
struct Kept(Value);

impl Kept {
    fn all(&self, collection: &str, scope: &str) -> Vec<Value> {
        self.0["objects"][collection][scope].as_array().cloned().unwrap_or_default()
    }

    fn records(&self) -> Vec<Value> {
        let zones = self.0["objects"]["dns_records"].as_object().cloned().unwrap_or_default();
        zones.values().flat_map(|records| records.as_array().cloned().unwrap_or_default()).collect()
    }

    fn rules(&self, tunnel: &str) -> Vec<Value> {
        let config = &self.0["tunnels"][tunnel]["configuration"]["config"];
        config["ingress"].as_array().cloned().unwrap_or_default()
    }

    fn apps(&self, account: &str) -> Vec<Value> {
        self.all("access_apps", account)
    }
}

fn members(object: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| object[*name].clone()).collect()
}

#[test]
fn plain_publishes_a_rule_and_a_record_and_nothing_else() {
    let stage = Stage::new();

    let said = stage.once(&["tenant.yaml", "plain"]).succeeded();

    assert!(said.contains("simple.example.com") && said.contains("http://traefik.traefik.svc:80"), "{said}");
    let kept = stage.kept();
    let rule = json!({"hostname": "simple.example.com", "service": "http://traefik.traefik.svc:80"});
    assert_eq!(kept.rules(TUNNEL), [rule, json!({"service": "http_status:404"})]);
    let record = &kept.records()[0];
    assert_eq!(
        members(record, &["type", "name", "content", "proxied", "ttl"]),
        [
            json!("CNAME"),
            json!("simple.example.com"),
            json!(format!("{TUNNEL}.cfargotunnel.com")),
            json!(true),
            json!(1)
        ]
    );
    assert!(kept.apps(ACCOUNT).is_empty());
}

#[test]
fn a_second_start_changes_nothing_at_cloudflare() {
    let stage = Stage::new();
    stage.once(&["tenant.yaml", "emails"]).succeeded();

    let said = stage.once(&["tenant.yaml", "emails"]).succeeded();

    for verb in ["POST", "PUT", "PATCH", "DELETE"] {
        assert!(!said.contains(verb), "{said}");
    }
}

#[test]
fn emails_are_the_policy_of_an_application() {
    let stage = Stage::new();

    stage.once(&["tenant.yaml", "emails"]).succeeded();

    let kept = stage.kept();
    let app = &kept.apps(ACCOUNT)[0];
    assert_eq!(
        members(app, &["name", "domain", "type", "session_duration"]),
        [json!("admin-panel"), json!("admin.example.com"), json!("self_hosted"), json!("8h")]
    );
    let policies = app["policies"].as_array().unwrap();
    assert_eq!((policies.len(), &policies[0]["decision"]), (1, &json!("allow")));
    let addresses =
        [json!({"email": {"email": "admin@example.com"}}), json!({"email": {"email": "manager@example.com"}})];
    assert_eq!(policies[0]["include"], json!(addresses));
}

#[test]
fn a_group_and_a_token_open_the_edge_and_nobody_else_does() {
    let stage = Stage::new();
    let (mut process, urls) = stage.stay(&["tenant.yaml", "group-and-token"]);
    let edge = urls["edge"].as_str().unwrap();
    let secret = stage.get("secret", "default", "api-service-cfzt-service-token");
    let value = |key: &str| {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    };

    let stranger = ask_edge(edge, "api.example.com", &[]);
    let engineer = ask_edge(edge, "api.example.com", &[("Cf-Access-Test-Email", "ann@example.com")]);
    let guest = ask_edge(edge, "api.example.com", &[("Cf-Access-Test-Email", "ann@example.net")]);
    let (id, password) = (value("client_id"), value("client_secret"));
    let program =
        ask_edge(edge, "api.example.com", &[("CF-Access-Client-Id", &id), ("CF-Access-Client-Secret", &password)]);
    let forger = ask_edge(edge, "api.example.com", &[("CF-Access-Client-Id", &id), ("CF-Access-Client-Secret", "no")]);

    assert!(stranger.starts_with("HTTP/1.0 302") && stranger.contains("cloudflareaccess.com"), "{stranger}");
    assert!(engineer.starts_with("HTTP/1.0 200"), "{engineer}");
    assert!(guest.starts_with("HTTP/1.0 403"), "{guest}");
    assert!(program.starts_with("HTTP/1.0 200") && program.contains("http://traefik.traefik.svc:80"), "{program}");
    assert!(forger.starts_with("HTTP/1.0 302"), "{forger}");
    assert_eq!(value("CF_ACCESS_CLIENT_ID"), id);
    assert_eq!(process.terminate(), Some(0));
    assert!(!std::fs::read_to_string(stage.data().join("simulator.json")).unwrap().contains(&password));
}

#[test]
fn why_and_status_tell_of_a_name_from_its_route_to_the_edge() {
    let stage = Stage::new();
    let (_process, _) = stage.stay(&["tenant.yaml", "group-and-token"]);

    let told = stage.run(&["why", "API.example.com."]).succeeded();
    let json: Value = serde_json::from_str(&stage.run(&["why", "api.example.com", "-o", "json"]).succeeded()).unwrap();
    let status = stage.run(&["status"]).succeeded();
    let unknown = stage.run(&["why", "other.example.com"]).failed();

    assert!(told.contains("HTTPRoute default/api-service: Ready"), "{told}");
    assert!(told.contains("(annotation accessApp)") && told.contains("(tenant default/prod)"), "{told}");
    assert!(told.contains("302 to https://example.cloudflareaccess.com/"), "{told}");
    assert!(told.contains("api-service-cfzt-service-token"), "{told}");
    let route = &json["routes"][0];
    assert_eq!((&route["health"], &route["tenant"]["name"]), (&json!("ready"), &json!("default/prod")));
    assert_eq!(route["published"]["accessPolicyIds"].as_array().unwrap().len(), 2);
    assert_eq!(json["edge"]["outcome"]["kind"], "login");
    assert!(status.contains("tenant default/prod") && status.contains("1 name, 1 protected: 1 Ready"), "{status}");
    assert!(status.contains("api.example.com → http://traefik.traefik.svc:80, protected"), "{status}");
    assert!(unknown.contains("api.example.com"), "{unknown}");
}

#[test]
fn an_update_keeps_the_application_and_its_policy() {
    let stage = Stage::new();
    stage.once(&["tenant.yaml", "update-in-place"]).succeeded();
    let before = stage.kept().apps(ACCOUNT);

    let said = stage.once(&["tenant.yaml", "update-in-place/after"]).succeeded();

    let kept = stage.kept();
    let after = kept.apps(ACCOUNT);
    assert_eq!((after.len(), &after[0]["id"]), (1, &before[0]["id"]));
    assert_eq!(after[0]["policies"][0]["id"], before[0]["policies"][0]["id"]);
    assert_eq!(after[0]["policies"][0]["include"].as_array().unwrap().len(), 2);
    let writes = said.lines().filter(|line| ["POST", "PUT", "PATCH", "DELETE"].iter().any(|verb| line.contains(verb)));
    assert_eq!(writes.count(), 1, "{said}");
}

#[test]
fn names_without_a_tunnel_have_an_address_and_nothing_else() {
    for (folder, name, address) in [
        ("dns-only-static", "printer.example.com", "10.0.0.53"),
        ("dns-only-loadbalancer", "game.example.com", "203.0.113.10"),
    ] {
        let stage = Stage::new();

        stage.once(&["tenant.yaml", folder]).succeeded();

        let kept = stage.kept();
        let records = kept.records();
        assert_eq!(records.len(), 1, "{folder}");
        assert_eq!(
            members(&records[0], &["type", "name", "content", "proxied", "ttl"]),
            [json!("A"), json!(name), json!(address), json!(false), json!(120)]
        );
        assert!(kept.rules(TUNNEL).is_empty() && kept.apps(ACCOUNT).is_empty(), "{folder}");
    }
}

#[test]
fn two_tenants_of_one_namespace_keep_apart() {
    let stage = Stage::new();

    stage.once(&["two-tenants"]).succeeded();

    let kept = stage.kept();
    let hosts = |tunnel: &str| -> Vec<String> {
        kept.rules(tunnel).iter().filter_map(|rule| Some(rule["hostname"].as_str()?.to_owned())).collect()
    };
    assert_eq!(hosts(TUNNEL), ["web.example.com"]);
    assert_eq!(hosts("66666666-7777-8888-9999-000000000000"), ["web.example.org"]);
    assert!(kept.apps(ACCOUNT).is_empty());
    assert_eq!(kept.apps(STAGING)[0]["domain"], "web.example.org");
}

fn misspelt(folder: &Path) -> String {
    let route = std::fs::read_to_string(example("zero-trust/group-and-token/route.yaml")).unwrap();
    let file = folder.join("route.yaml");
    std::fs::write(&file, route.replace("allowGroups: Engineering", "allowGroups: Enginering")).unwrap();
    file.display().to_string()
}

#[test]
fn a_misspelt_group_publishes_nothing_and_says_which() {
    let stage = Stage::new();
    let route = misspelt(stage.folder.path());
    let mut command = up(&stage.data());
    command.args(["--once", "--timeout", "4s", "--seed", &example("zero-trust/seed.yaml")]);

    let run: Run = command.args([example("zero-trust/tenant.yaml"), route]).output().unwrap().into();

    let error = run.failed();
    assert!(error.contains("HTTPRoute default/api-service") && error.contains("Enginering"), "{error}");
    let kept = stage.kept();
    assert!(kept.rules(TUNNEL).is_empty() && kept.records().is_empty());
}

#[test]
fn a_deleted_route_takes_its_name_with_it() {
    let stage = Stage::new();
    let (mut process, urls) = stage.stay(&["tenant.yaml", "emails"]);
    let edge = urls["edge"].as_str().unwrap();

    stage.run(&["delete", "httproute", "admin-panel", "-n", "default"]).succeeded();

    eventually("the name is gone", || {
        ask_edge(edge, "admin.example.com", &[]).starts_with("HTTP/1.0 530").then_some(())
    });
    eventually("the route is gone", || (stage.run(&["get", "httproute", "admin-panel"]).code != Some(0)).then_some(()));
    process.terminate();
    let kept = stage.kept();
    assert!(kept.apps(ACCOUNT).is_empty() && kept.records().is_empty());
}

#[test]
fn a_plan_shows_what_a_route_would_change_and_after_that_nothing() {
    let stage = Stage::new();
    let files = ["tenant.yaml", "emails"].map(|path| example(&format!("zero-trust/{path}")));
    let (_sim, url) = simulator(&["--seed", &example("zero-trust/seed.yaml")]);
    let nowhere = stage.folder.path().join("nowhere");
    let mut alone = portolan();
    alone.env("KUBECONFIG", &nowhere).args(["plan", "--cloudflare", &url, "-f"]).args(&files);
    stage.once(&["tenant.yaml", "emails"]).succeeded();

    let first: Run = alone.output().unwrap().into();
    let second = stage.run(&["plan"]);
    let changed = stage.run(&["plan", "-f", &example("zero-trust/plain")]);

    assert_eq!(first.code, Some(2), "{first}");
    for part in ["Access application", "tunnel rule", "DNS record", "admin.example.com"] {
        assert!(first.stdout.contains(part), "{part}: {first}");
    }
    assert!(!first.stdout.contains("not-a-real-token"), "{first}");
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(changed.code, Some(2), "{changed}");
    assert!(
        changed.stdout.contains("simple.example.com") && !changed.stdout.contains("admin.example.com"),
        "{changed}"
    );
}
