//! A cluster that an older operator was in, switched over with the binary: planned, taken over, let go, taken over again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::process::{Process, eventually, http_get, simulator};
use crate::support::{Run, Server, portolan};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Config};
use portolan_parity::{ControlPlane, Durability};
use serde_json::{Value, json};

/// A file of `tests/migration/`.
fn left(file: &str) -> String {
    format!("{}/../../tests/migration/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// An API server and a simulator with what an older operator left.
struct Switch<'a> {
    kubeconfig: &'a Path,
    older: &'static str,
    simulator: Option<Process>,
    cloudflare: String,
}

impl<'a> Switch<'a> {
    /// Lays everything down.
    fn prepare(kubeconfig: &'a Path, gateway: &Path, older: &'static str) -> Self {
        let mut switch = Self { kubeconfig, older, simulator: None, cloudflare: String::new() };
        switch.run(&["apply", "-f", &gateway.display().to_string()]).succeeded();
        switch.run(&["apply", "-f", &left(&format!("{older}/definitions.yaml"))]).succeeded();
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: cloudflare-zero-trust}\n";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("namespace.yaml"), namespace).unwrap();
        switch.run(&["apply", "-f", &folder.path().display().to_string()]).succeeded();
        switch.run(&["apply", "-f", &left(&format!("{older}/objects.yaml"))]).succeeded();
        switch.write_statuses();
        // What a worker made without reporting it was made after its task.
        let (simulator, cloudflare) =
            simulator(&["--seed", &left(&format!("{older}/cloudflare.yaml")), "--rate-limit", "off"]);
        (switch.simulator, switch.cloudflare) = (Some(simulator), cloudflare);
        switch
    }

    /// Statuses are not applied with their objects.
    fn write_statuses(&self) {
        let text = std::fs::read_to_string(left(&format!("{}/objects.yaml", self.older))).unwrap();
        let documents = text.split("\n---\n").map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
        let with_status: Vec<Value> = documents.filter(|object| object.get("status").is_some()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(self.kubeconfig).unwrap();
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
            let client = Client::try_from(config).unwrap();
            let kind =
                ApiResource::from_gvk(&GroupVersionKind::gvk("cfzt.cloudflare.com", "v1alpha1", "CloudflareTask"));
            let tasks: Api<DynamicObject> = Api::namespaced_with(client, "cloudflare-zero-trust", &kind);
            for object in with_status {
                let (name, patch) = (object["metadata"]["name"].as_str().unwrap(), json!({"status": object["status"]}));
                tasks.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
            }
        });
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let mut command = portolan();
        command.env("KUBECONFIG", self.kubeconfig).env("CLOUDFLARE_API_BASE", &self.cloudflare);
        command.args(arguments).output().unwrap().into()
    }

    fn operator(&self) -> Command {
        let mut command = portolan();
        command.env("KUBECONFIG", self.kubeconfig).env("CLOUDFLARE_API_BASE", &self.cloudflare).env_remove("POD_NAME");
        command.args(["run", "--metrics", "0", "--health", "0", "--leader-elect", "--controllers", "zerotrust"]);
        command.env("LOG_LEVEL", "warn");
        command
    }

    fn list(&self, arguments: &[&str]) -> Vec<Value> {
        let arguments: Vec<&str> = ["get"].iter().chain(arguments).chain(&["-o", "json"]).copied().collect();
        let list: Value = serde_json::from_str(&self.run(&arguments).succeeded()).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    fn states(&self) -> Vec<Value> {
        let mut maps = self.list(&["configmaps", "-n", "cloudflare-zero-trust"]);
        maps.retain(|map| map["data"]["httproute_name"].is_string());
        maps
    }

    /// Starts the operator and waits until everything is taken over.
    fn taken_over(&self) -> Process {
        let operator = Process::start(&mut self.operator());
        eventually("everything is taken over", || {
            let ours = |state: &Value| state["data"]["schema_version"] == "1" && state["data"]["annotation_hash"] != "";
            let states = self.states();
            let done = states.len() >= 9 && states.iter().all(ours) && self.list(&["cloudflaretasks", "-A"]).is_empty();
            let held = |route: &Value| route["metadata"]["finalizers"].to_string().contains("kopf");
            (done && !self.list(&["httproutes", "-A"]).iter().any(held)).then_some(())
        });
        operator
    }

    /// How many objects were made and deleted at Cloudflare so far.
    fn made_and_deleted(&self) -> (usize, usize) {
        let log: Value = serde_json::from_str(&http_get(&self.cloudflare.replace("/client/v4", "/admin/requests")))
            .unwrap_or_default();
        let log = log.as_array().cloned().or_else(|| log["requests"].as_array().cloned()).unwrap_or_default();
        assert!(!log.is_empty(), "something was asked");
        let count = |request: &Value, verb: &str| request["body"][verb].as_array().map_or(0, Vec::len);
        let is = |request: &Value, method: &str| request["method"] == method;
        let ends = |request: &Value, end: &str| request["path"].as_str().is_some_and(|path| path.ends_with(end));
        let plain =
            |request: &&Value| !ends(request, "/batch") && !ends(request, "/rotate") && !ends(request, "/refresh");
        let made = log.iter().filter(plain).filter(|one| is(one, "POST")).count();
        let deleted = log.iter().filter(|one| is(one, "DELETE")).count();
        let batches = |verb: &str| log.iter().map(|one| count(one, verb)).sum::<usize>();
        (made + batches("posts"), deleted + batches("deletes"))
    }

    fn plan(&self) -> (Option<i32>, Value) {
        let run = self.run(&["plan", "-o", "json"]);
        let plan = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
        (run.code, plan)
    }
}

/// Planned, switched, let go and taken over again.
fn switched(kubeconfig: &Path, gateway: &Path, older: &'static str) {
    let switch = Switch::prepare(kubeconfig, gateway, older);

    let (code, plan) = switch.plan();
    assert_eq!(code, Some(2), "{plan:#}");
    assert_eq!(plan["summary"]["create"], 0, "{plan:#}");
    // What the older operator left of a rename that it did not finish is a rule in a document.
    let unfinished = |change: &&Value| change.to_string().contains("before.example.com");
    let changes = plan["changes"].as_array().cloned().unwrap_or_default();
    let deletes: Vec<&Value> = changes.iter().filter(|change| change["action"] == "delete").collect();
    assert_eq!(deletes.iter().filter(|change| !unfinished(change)).count(), 0, "{plan:#}");
    assert_eq!(plan["summary"]["delete"], deletes.len(), "{plan:#}");
    assert_eq!(plan["unplanned"], json!([]), "{plan:#}");
    assert!(plan["takeOver"]["states"].as_object().is_some_and(|states| !states.is_empty()), "{plan:#}");
    assert!(!plan.to_string().contains("canary-"), "{plan:#}");
    let told = switch.run(&["plan"]);
    assert!(told.stdout.contains("Taken over from an older operator:"), "{told}");
    assert_eq!(switch.made_and_deleted(), (0, 0), "planning changes nothing");

    switch.run(&["crds", "--apply"]).succeeded();
    let mut operator = switch.taken_over();
    assert_eq!(switch.made_and_deleted(), (0, 0), "nothing is made and nothing is deleted");
    assert!(!json!(switch.states()).to_string().contains("canary-client-secret"));
    let refused = switch.run(&["uninstall", "--apply"]).failed();
    assert!(refused.contains("an operator still runs") && refused.contains("--force"), "{refused}");
    eventually("nothing is left to change", || (switch.plan().0 == Some(0)).then_some(()));
    assert_eq!(operator.terminate(), Some(0));

    let shown = switch.run(&["uninstall"]).succeeded();
    assert!(shown.contains("HTTPRoute default/shop: cfzt.cloudflare.com/cleanup"), "{shown}");
    assert!(shown.contains("Nothing was changed"), "{shown}");
    let done: Value = serde_json::from_str(&switch.run(&["uninstall", "--apply", "-o", "json"]).succeeded()).unwrap();
    assert_eq!((&done["applied"], &done["forgotten"]), (&json!(true), &json!(false)));
    let again: Value = serde_json::from_str(&switch.run(&["uninstall", "-o", "json"]).succeeded()).unwrap();
    assert_eq!(again["objects"], json!([]), "nothing is held any more");
    assert!(again["states"].as_array().is_some_and(|states| states.len() >= 9), "states are kept");

    let mut operator = switch.taken_over();
    let is_held = |route: &Value| route["metadata"]["finalizers"] == json!(["cfzt.cloudflare.com/cleanup"]);
    let enabled = |route: &Value| route["metadata"]["annotations"]["cfzt.cloudflare.com/enabled"] == "true";
    eventually("every route is held again", || {
        let mut routes = switch.list(&["httproutes", "-A"]);
        routes.retain(enabled);
        routes.iter().all(is_held).then_some(())
    });
    assert_eq!(switch.made_and_deleted(), (0, 0), "a later installation takes over again");
    assert_eq!(operator.terminate(), Some(0));

    switch.run(&["uninstall", "--apply", "--forget"]).succeeded();
    switch.run(&["delete", "httproute", "shop", "-n", "default", "--timeout", "20s"]).succeeded();
    switch.run(&["delete", "cloudflarezerotrusttenant", "prod", "-n", "default", "--timeout", "20s"]).succeeded();
    assert_eq!(switch.states(), Vec::<Value>::new(), "everything is forgotten");
    let there = http_get(&switch.cloudflare.replace("/client/v4", "/admin/state"));
    assert!(there.contains("shop.example.com"), "and everything at Cloudflare stays");
    drop(switch.simulator);
}

fn gateway() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/httproutes.yaml")
}

#[test]
fn a_cluster_of_the_operator_with_tasks_is_switched_over() {
    let server = Server::start();
    switched(&server.kubeconfig(), &gateway(), "a");
}

#[test]
fn a_cluster_of_the_operator_with_finalizers_is_switched_over() {
    let server = Server::start();
    switched(&server.kubeconfig(), &gateway(), "p");
}

#[test]
fn on_a_real_api_server_both_are_switched_over() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let definitions = match portolan_parity::gateway_api() {
        Ok(definitions) => definitions,
        Err(why) => return tell(&format!("migration: NOT RUN: on a real API server: {why}")),
    };
    let folder = tempfile::tempdir().unwrap();
    let routes = definitions.iter().find(|one| one["spec"]["names"]["kind"] == "HTTPRoute").unwrap();
    let gateway = folder.path().join("httproutes.json");
    std::fs::write(&gateway, routes.to_string()).unwrap();
    for older in ["a", "p"] {
        let plane = match runtime.block_on(ControlPlane::start(Durability::None)) {
            Ok(plane) => plane,
            // The summary of `make test` repeats what was not run.
            Err(why) => return tell(&format!("migration: NOT RUN: on a real API server: {why}")),
        };
        switched(plane.kubeconfig(), &gateway, older);
    }
    tell("migration: both older operators' clusters switched over and let go on kube-apiserver");
}

#[test]
fn uninstall_works_in_a_cluster_without_our_definitions() {
    let server = Server::start();

    let shown = server.run(&["uninstall", "--apply"]).succeeded();

    assert!(shown.contains("finalizers of 0 objects"), "{shown}");
}

/// Written to the handle itself: what `println!` says is kept back.
fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
