//! `portolan doctor`, run as a user runs it: against the embedded API server and the simulator.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::path::Path;

use crate::support::process::{Process, simulator};
use crate::support::{Run, Server, example, portolan};
use serde_json::{Value, json};

const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
const CANARY: &str = "canary-doctor-token-77aa";

/// A simulator that knows one token, with all permissions but those that are given otherwise.
fn cloudflare(folder: &Path, permissions: &Value) -> (Process, String) {
    let mut all = json!({
        "tunnel": "edit", "access_apps": "edit", "access_service_tokens": "edit", "access_groups": "read", "zone": "read",
        "dns": "edit", "rulesets": "edit", "ssl": "read",
    });
    for (group, level) in permissions.as_object().unwrap() {
        all[group] = level.clone();
    }
    let seed = json!({
        "accounts": [{"id": ACCOUNT, "name": "Example"}],
        "zones": [{"id": "00000000000000000000000000000001", "name": "example.com", "account": ACCOUNT}],
        "tunnels": [{"account": ACCOUNT, "id": TUNNEL, "name": "prod", "config_src": "cloudflare"}],
        "tokens": [{"token": CANARY, "permissions": all}],
    });
    let file = folder.join("seed.json");
    std::fs::write(&file, seed.to_string()).unwrap();
    let mut arguments = vec!["--seed".to_owned(), file.display().to_string()];
    if let Some(recordings) = std::env::var_os("PORTOLAN_RECORD_DIR") {
        let name = format!("doctor-{}.jsonl", folder.file_name().unwrap().to_string_lossy());
        arguments.extend(["--record".to_owned(), Path::new(&recordings).join(name).display().to_string()]);
    }
    simulator(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs the command on a token alone.
fn with_token(url: &str, arguments: &[&str]) -> Run {
    let mut command = portolan();
    command.env("THE_TOKEN", CANARY).env("CLOUDFLARE_API_BASE", url);
    command.args(["doctor", "--token-env", "THE_TOKEN", "--account", ACCOUNT]).args(arguments);
    quiet(command.output().unwrap().into())
}

/// The run, in which no token was shown.
#[track_caller]
fn quiet(run: Run) -> Run {
    assert!(!run.stdout.contains(CANARY) && !run.stderr.contains(CANARY), "{run}");
    run
}

fn findings(run: &Run) -> Vec<Value> {
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    report["findings"].as_array().unwrap().clone()
}

/// Checks that ended so.
fn ended(run: &Run, result: &str) -> Vec<String> {
    let ended = findings(run).into_iter().filter(|finding| finding["result"] == result);
    ended.map(|finding| finding["check"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_token_alone_is_tried_and_what_it_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_simulator, url) = cloudflare(folder.path(), &json!({"dns": "read"}));

    let text = with_token(&url, &["--zone", "example.com", "--tunnel", TUNNEL]);
    let programs = with_token(&url, &["--zone", "example.com", "--tunnel", TUNNEL, "-o", "json"]);

    assert_eq!(text.code, Some(1), "{text}");
    assert!(text.stdout.contains("failed    Zone · DNS · Edit: the token lacks Zone · DNS · Edit"), "{text}");
    assert!(text.stdout.contains("next: edit the token in the dashboard"), "{text}");
    assert!(text.stdout.contains("ok        Account · Cloudflare Tunnel · Edit: granted"), "{text}");
    assert_eq!(ended(&programs, "failed"), ["permission-dns"], "{programs}");
    assert_eq!(ended(&programs, "warning"), ["connections"], "{programs}");
    assert_eq!(ended(&programs, "notKnown"), Vec::<String>::new(), "{programs}");
}

#[test]
fn read_only_sends_no_deletion_and_a_token_with_everything_passes() {
    let folder = tempfile::tempdir().unwrap();
    let (_simulator, url) = cloudflare(folder.path(), &json!({}));

    let passed = with_token(&url, &["--hostname", "App.Example.com", "-o", "json"]);
    let looked = with_token(&url, &["--hostname", "app.example.com", "--read-only", "-o", "json"]);

    assert_eq!((passed.code, ended(&passed, "failed")), (Some(0), Vec::new()), "{passed}");
    assert_eq!((looked.code, ended(&looked, "notKnown").len()), (Some(0), 5), "{looked}");
    let deeper = with_token(&url, &["--hostname", "a.b.example.com", "-o", "json"]);
    assert_eq!((deeper.code, ended(&deeper, "warning")), (Some(0), vec!["certificate".to_owned()]), "{deeper}");
}

#[test]
fn the_checks_are_listed_without_looking_at_anything() {
    let text = Run::from(portolan().args(["doctor", "--list"]).output().unwrap()).succeeded();
    let json = Run::from(portolan().args(["doctor", "--list", "-o", "json"]).output().unwrap()).succeeded();

    let checks: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert!(checks.len() > 20);
    for check in checks {
        assert!(text.contains(check["check"].as_str().unwrap()) && !check["remedy"].as_str().unwrap().is_empty());
    }
}

#[test]
fn bad_input_says_what_to_write() {
    let missing =
        portolan().args(["doctor", "--token-env", "NO_SUCH_VARIABLE", "--account", ACCOUNT]).output().unwrap();
    assert!(Run::from(missing).failed().contains("NO_SUCH_VARIABLE holds no token"));
    for (arguments, advice) in [
        (&["--tenant", "prod"][..], "default/prod"),
        (&["--hostname", "https://x.example.com"][..], "without a scheme"),
        (&["--token-env", "X"][..], "--account"),
        (&["--role", "captain"][..], "kube_worker"),
    ] {
        let run = Run::from(portolan().arg("doctor").args(arguments).output().unwrap());
        assert_eq!(run.code, Some(2), "{run}");
        assert!(run.stderr.contains(advice), "{run}");
    }
    let nowhere = tempfile::tempdir().unwrap();
    let run = Run::from(portolan().arg("doctor").current_dir(nowhere.path()).output().unwrap());
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("failed    cluster reachable"), "{run}");
    let unreached = with_token("http://127.0.0.1:9/client/v4", &["-o", "json"]);
    assert_eq!(ended(&unreached, "failed"), ["cloudflare"], "{unreached}");
}

#[test]
fn a_cluster_is_looked_at_from_its_definitions_to_its_names() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let (_simulator, url) = cloudflare(folder.path(), &json!({}));
    let doctor = |arguments: &[&str]| -> Run {
        let mut command = server.command(&["doctor", "-o", "json"]);
        quiet(command.env("CLOUDFLARE_API_BASE", &url).args(arguments).output().unwrap().into())
    };

    let empty = doctor(&[]);
    assert_eq!(ended(&empty, "failed"), ["definitions", "gateway-api"], "{empty}");
    assert_eq!(ended(&empty, "warning"), ["tenants"], "{empty}");
    assert!(ended(&empty, "ok").contains(&"rbac".to_owned()), "{empty}");

    install(&server);
    let tenant = std::fs::read_to_string(example("zero-trust/tenant.yaml")).unwrap();
    server.run_with_input(&["apply", "-f", "-"], &tenant).succeeded();
    server.run(&["apply", "-f", &example("zero-trust/plain")]).succeeded();
    let refused = doctor(&[]);
    assert_eq!((refused.code, ended(&refused, "failed")), (Some(1), vec!["token".to_owned()]), "{refused}");

    let tenant = tenant.replace("not-a-real-token", CANARY);
    server.run_with_input(&["apply", "-f", "-"], &tenant).succeeded();
    let right = doctor(&[]);
    assert_eq!((right.code, ended(&right, "failed")), (Some(0), Vec::new()), "{right}");
    let named = |run: &Run| findings(run).iter().any(|one| one["subject"] == "name simple.example.com");
    assert!(named(&right), "{right}");

    let one = doctor(&["--tenant", "default/prod", "--hostname", "other.example.net"]);
    assert_eq!(ended(&one, "failed"), ["name-zone"], "{one}");
    assert!(doctor(&["--tenant", "default/staging"]).failed().contains("no tenant default/staging"));

    server.run(&["delete", "secret", "cloudflare-api-token"]).succeeded();
    assert_eq!(ended(&doctor(&[]), "failed"), ["secret"]);
}

/// Definitions of ours, and an outline of the Gateway API's.
fn install(server: &Server) {
    let crds = Run::from(portolan().arg("crds").output().unwrap()).succeeded();
    server.run_with_input(&["apply", "-f", "-"], &crds).succeeded();
    server.run(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/data/httproutes.yaml")]).succeeded();
}

#[test]
fn a_definition_of_another_version_is_named_with_the_place_and_the_command() {
    let server = Server::start();
    install(&server);
    let crds = Run::from(portolan().arg("crds").output().unwrap()).succeeded();
    let older: Vec<&str> = crds.split("---\n").filter(|one| one.contains("kind: CloudflareTask\n")).collect();
    assert_eq!(older.len(), 1);
    let older = older[0].replace("format: date-time", "format: date");
    server.run_with_input(&["apply", "--force-conflicts", "-f", "-"], &older).succeeded();

    let run = server.run(&["doctor"]);

    assert_eq!(run.code, Some(1), "{run}");
    assert!(
        run.stdout.contains("cloudflaretasks.cfzt.cloudflare.com is of another version (spec.versions[0]"),
        "{run}"
    );
    assert!(run.stdout.contains("portolan crds | kubectl apply"), "{run}");
}
