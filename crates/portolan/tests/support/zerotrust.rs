//! A route's whole life with `portolan run` against some API server: published, asked for at the edge, taken down.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::process::{Process, ask_edge, eventually, http_get, simulator};
use super::{Run, example, portolan};

/// A simulator with its edge, and an API server.
pub struct Life<'a> {
    kubeconfig: &'a Path,
    _simulator: Process,
    cloudflare: String,
    edge: String,
}

impl<'a> Life<'a> {
    /// Installs the definitions, and starts a simulator.
    pub fn prepare(kubeconfig: &'a Path, gateway: &Path) -> Self {
        let seed = example("zero-trust/seed.yaml");
        let (mut simulator, cloudflare) =
            simulator(&["--seed", &seed, "--edge", "127.0.0.1:0", "--edge-origin", "*=echo"]);
        let edge = simulator.line_with("Its edge at ").rsplit(' ').next().expect("an address").to_owned();
        let life = Self { kubeconfig, _simulator: simulator, cloudflare, edge };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let crds = folder.path().join("crds.yaml");
        std::fs::write(&crds, Run::from(portolan().arg("crds").output().expect("it runs")).succeeded())
            .expect("written");
        life.run(&["apply", "-f", &crds.display().to_string()]).succeeded();
        life.run(&["apply", "-f", &gateway.display().to_string()]).succeeded();
        life
    }

    /// Publishes an open and a protected route, asks for them, deletes them, and finds nothing left.
    pub fn live(&self) {
        let mut operator = Process::start(&mut self.operator());
        for file in ["tenant.yaml", "plain", "group-and-token"] {
            self.run(&["apply", "-f", &example(&format!("zero-trust/{file}"))]).succeeded();
        }
        self.eventually("simple.example.com", &[], "200");
        self.eventually("api.example.com", &[], "302");
        eventually("the Secret is there", || (self.run(&SECRET).code == Some(0)).then_some(()));
        let (id, secret) = (self.secret("client_id"), self.secret("client_secret"));
        let token = [("CF-Access-Client-Id", id.as_str()), ("CF-Access-Client-Secret", secret.as_str())];
        self.eventually("api.example.com", &token, "200");
        let told = eventually("both are settled", || {
            let told = self.run(&["why", "api.example.com"]).succeeded();
            told.contains("task      none").then_some(told)
        });
        assert!(told.contains("HTTPRoute default/api-service: Ready"), "{told}");

        self.run(&["delete", "httproute", "simple-app", "api-service", "-n", "default"]).succeeded();

        self.eventually("simple.example.com", &[], "530");
        self.eventually("api.example.com", &[], "530");
        eventually("nothing is left", || self.is_empty().then_some(()));
        assert_eq!(operator.terminate(), Some(0));
    }

    fn operator(&self) -> Command {
        let mut command = portolan();
        command.env("KUBECONFIG", self.kubeconfig).args(["run", "--metrics", "127.0.0.1:0", "--health", "0"]);
        command.env("CLOUDFLARE_API_BASE", &self.cloudflare).env("LOG_LEVEL", "warn").env_remove("POD_NAME");
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        portolan().env("KUBECONFIG", self.kubeconfig).args(arguments).output().expect("the binary runs").into()
    }

    fn eventually(&self, name: &str, headers: &[(&str, &str)], status: &str) {
        let wanted = format!("HTTP/1.0 {status}");
        eventually(&format!("{name} answers {status}"), || {
            ask_edge(&self.edge, name, headers).starts_with(&wanted).then_some(())
        });
    }

    fn secret(&self, key: &str) -> String {
        use base64::Engine as _;
        let secret: Value = serde_json::from_str(&self.run(&SECRET).succeeded()).expect("JSON");
        let text = secret["data"][key].as_str().unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
        String::from_utf8(bytes).expect("text")
    }

    /// Whether routes, states, tasks, Secrets and everything at Cloudflare are gone.
    fn is_empty(&self) -> bool {
        let state: Value =
            serde_json::from_str(&http_get(&self.cloudflare.replace("/client/v4", "/admin/state"))).expect("JSON");
        let count = |collection: &str| -> usize {
            let scopes = state[collection].as_object().cloned().unwrap_or_default();
            scopes.values().filter_map(Value::as_array).map(Vec::len).sum()
        };
        let remote = ["dns_records", "access_apps", "service_tokens"].map(count).iter().sum::<usize>();
        let routes = self.run(&["get", "httproutes", "-A", "-o", "json"]).succeeded();
        let tasks = self.run(&["get", "cloudflaretasks", "-A", "-o", "json"]).succeeded();
        let maps = self.run(&["get", "configmaps", "-n", "cloudflare-zero-trust", "-o", "json"]).succeeded();
        let is_gone = |list: &str, part: &str| !list.contains(part);
        remote == 0
            && is_gone(&routes, "\"HTTPRoute\"")
            && is_gone(&tasks, "\"CloudflareTask\"")
            && is_gone(&maps, "httproute_name")
            && self.run(&SECRET).code != Some(0)
    }
}

const SECRET: [&str; 7] = ["get", "secret", "api-service-cfzt-service-token", "-n", "default", "-o", "json"];
