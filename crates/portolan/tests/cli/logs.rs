//! The log of the built binary: levels, formats, colours, and what must never be in it.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;
use std::process::Command;

use crate::support::process::{Process, eventually, simulator, up};
use crate::support::{Run, Server, example, portolan};
use base64::Engine as _;
use serde_json::Value;

/// The token that the quickstart's Secret holds.
const TOKEN: &str = "not-a-real-token";

/// The log of publishing the quickstart, line by line.
fn published(change: impl FnOnce(&mut Command) -> &mut Command) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = up(&folder.path().join("data"));
    command.args(["--once", &example("quickstart")]);
    let run: Run = change(&mut command).output().unwrap().into();
    assert_eq!(run.code, Some(0), "{run}");
    run.stderr.lines().map(str::to_owned).collect()
}

#[test]
fn debug_tells_every_api_call_as_json_and_no_secret() {
    let lines = published(|command| command.env("LOG_LEVEL", "DEBUG").env("LOG_FORMAT", "json"));

    let logged: Vec<Value> =
        lines.iter().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<&Value> = logged.iter().filter(|line| line["message"] == "Asked Cloudflare").collect();
    let batch =
        calls.iter().find(|line| line["path"].as_str().is_some_and(|path| path.ends_with("/dns_records/batch")));
    let batch = batch.expect("the records go out in one call");
    assert_eq!(
        (&batch["method"], &batch["status"], &batch["kind"]),
        (&"POST".into(), &200.into(), &"DNSRecord".into())
    );
    assert!(batch["duration_ms"].is_u64() && batch["level"] == "DEBUG", "{batch}");
    assert!(lines.iter().all(|line| !line.contains(TOKEN)), "{lines:#?}");
}

#[test]
fn text_is_coloured_without_a_terminal_unless_the_user_refuses() {
    let info = |line: &&String| line.contains("INFO") && line.contains("The job starts here");
    let coloured = published(|command| command.env("LOG_LEVEL", "INFO").env_remove("NO_COLOR"));
    let plain = published(|command| command.env("LOG_LEVEL", "INFO"));

    assert!(coloured.iter().find(info).is_some_and(|line| line.contains("\u{1b}[32m INFO\u{1b}[0m")), "{coloured:#?}");
    assert!(plain.iter().find(info).is_some_and(|line| !line.contains('\u{1b}')), "{plain:#?}");
}

#[test]
fn an_unknown_level_is_told_and_the_work_goes_on_at_info() {
    let lines = published(|command| command.env("LOG_LEVEL", "LOUD"));

    assert!(lines.iter().any(|line| line.contains("WARN LOG_LEVEL \"LOUD\" is not known")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("INFO The job starts here")), "{lines:#?}");
}

/// Two tenants of one account, one of which wants to be told everything, with a route each.
const TENANTS: &str = r"
apiVersion: v1
kind: Secret
metadata: {name: cloudflare-api-token, namespace: default}
stringData: {token: canary-api-token}
---
apiVersion: cfzt.cloudflare.com/v1alpha1
kind: CloudflareZeroTrustTenant
metadata: {name: loud, namespace: default}
spec:
  accountId: 0123456789abcdef0123456789abcdef
  tunnelId: 11111111-2222-3333-4444-555555555555
  credentialRef: {name: cloudflare-api-token}
  logLevel: DEBUG
---
apiVersion: cfzt.cloudflare.com/v1alpha1
kind: CloudflareZeroTrustTenant
metadata: {name: usual, namespace: default}
spec:
  accountId: 0123456789abcdef0123456789abcdef
  tunnelId: 11111111-2222-3333-4444-555555555555
  credentialRef: {name: cloudflare-api-token}
";

fn route(tenant: &str) -> String {
    format!(
        r#"
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: {tenant}-app
  namespace: default
  annotations:
    cfzt.cloudflare.com/enabled: "true"
    cfzt.cloudflare.com/tenant: {tenant}
    cfzt.cloudflare.com/hostname: {tenant}.example.com
    cfzt.cloudflare.com/accessApp: "true"
    cfzt.cloudflare.com/allowEmails: "a@example.com"
    cfzt.cloudflare.com/serviceToken: "true"
spec: {{rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}
"#
    )
}

/// The credentials in a route's Secret.
fn credentials(kubeconfig: &Path, route: &str) -> Vec<String> {
    let secret = format!("{route}-cfzt-service-token");
    let mut command = portolan();
    let run: Run =
        command.env("KUBECONFIG", kubeconfig).args(["get", "secret", &secret, "-o", "json"]).output().unwrap().into();
    let secret: Value = serde_json::from_str(&run.succeeded()).unwrap();
    let decode = |value: &Value| base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
    let key = |key: &str| String::from_utf8(decode(&secret["data"][key])).unwrap();
    vec![key("client_secret"), key("CF_ACCESS_CLIENT_SECRET")]
}

#[test]
fn scenario_70_a_tenants_level_counts_for_its_own_work_in_both_workers_and_no_line_tells_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (data, files, log) = (folder.path().join("data"), folder.path().join("files"), folder.path().join("log"));
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("all.yaml"), [TENANTS, &route("loud"), &route("usual")].concat()).unwrap();
    let mut command = up(&data);
    command.arg(&files).env("LOG_LEVEL", "INFO").stderr(std::fs::File::create(&log).unwrap());
    let mut process = Process::start(&mut command);
    process.line_with("objects Ready");
    let mut secrets = vec!["canary-api-token".to_owned()];
    secrets.extend(["loud-app", "usual-app"].iter().flat_map(|route| credentials(&data.join("kubeconfig"), route)));
    process.terminate();

    let log = std::fs::read_to_string(&log).unwrap();
    assert_details(&log, &["kind=HTTPRoute", "kind=CloudflareTask"]);
    for tenant in ["loud", "usual"] {
        let told = lines(&log, &format!("{tenant}.example.com"));
        assert!(told.iter().any(|line| line.contains("INFO") && line.contains("outcome=changed")), "{log}");
        assert!(told.iter().all(|line| line.contains(&format!(" tenant={tenant}"))), "{log}");
    }
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret} is in the log");
    }
}

fn lines<'a>(log: &'a str, part: &str) -> Vec<&'a str> {
    log.lines().filter(|line| line.contains(part)).collect()
}

/// There are details of the loud tenant's work on these kinds, and of nobody else's.
fn assert_details(log: &str, kinds: &[&str]) {
    let details = lines(log, " DEBUG ");
    for kind in kinds {
        assert!(details.iter().any(|line| line.contains(kind)), "no details of {kind}:\n{log}");
    }
    assert!(details.iter().all(|line| line.contains(" tenant=loud")), "{log}");
}

#[test]
fn scenario_70_a_tenants_level_counts_in_each_of_two_roles_from_the_moment_it_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let (_simulator, cloudflare) = simulator(&["--seed", &example("zero-trust/seed.yaml")]);
    let crds = Run::from(portolan().arg("crds").output().unwrap()).succeeded();
    server.run_with_input(&["apply", "-f", "-"], &crds).succeeded();
    server.run(&["apply", "-f", &format!("{}/data/httproutes.yaml", env!("CARGO_MANIFEST_DIR"))]).succeeded();
    let log = |role: &str| folder.path().join(role);
    let start = |role: &str| {
        let mut command = server.command(&["run", "--controllers", "zerotrust", "--metrics", "0", "--health", "0"]);
        command.env("ROLE", role).env("POD_NAME", role).env("CLOUDFLARE_API_BASE", &cloudflare);
        Process::start(command.env("LOG_LEVEL", "INFO").stderr(std::fs::File::create(log(role)).unwrap()))
    };
    let mut roles = ["kube_worker", "cloudflare_worker"].map(start);
    let settled = |route: &str| {
        let described = server.run(&["get", "httproute", route, "-o", "json"]).succeeded();
        described.contains("lastReconcile").then_some(())
    };
    let quiet = TENANTS.replace("  logLevel: DEBUG\n", "");
    server.run_with_input(&["apply", "-f", "-"], &[&quiet, &*route("loud"), &*route("usual")].concat()).succeeded();
    for name in ["loud-app", "usual-app"] {
        eventually(&format!("{name} is published"), || settled(name));
    }
    for role in ["kube_worker", "cloudflare_worker"] {
        let told = std::fs::read_to_string(log(role)).unwrap();
        assert!(lines(&told, " DEBUG ").is_empty(), "nobody asked for details of {role}:\n{told}");
    }

    server.run_with_input(&["apply", "-f", "-"], TENANTS).succeeded();
    let louder =
        |role: &str| (!lines(&std::fs::read_to_string(log(role)).unwrap(), " DEBUG ").is_empty()).then_some(());
    eventually("the kube_worker tells more", || louder("kube_worker"));
    let changed = |name: &str| route(name).replace("a@example.com", "b@example.com");
    server.run_with_input(&["apply", "-f", "-"], &[changed("loud"), changed("usual")].concat()).succeeded();
    eventually("the cloudflare_worker tells more", || louder("cloudflare_worker"));
    eventually("both are changed", || {
        let told = std::fs::read_to_string(log("cloudflare_worker")).unwrap();
        (lines(&told, "outcome=changed").iter().filter(|line| line.contains("HTTPRoute")).count() == 4).then_some(())
    });

    assert!(roles.iter_mut().all(|role| role.terminate() == Some(0)));
    assert_details(&std::fs::read_to_string(log("kube_worker")).unwrap(), &["kind=HTTPRoute"]);
    assert_details(&std::fs::read_to_string(log("cloudflare_worker")).unwrap(), &["kind=CloudflareTask"]);
}
