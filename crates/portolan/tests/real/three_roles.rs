//! The roles as processes of their own on a real API server, each with a token of its own account and the rights that an
//! installation gives it: the worked examples live, nothing that they need is refused, and no right is there for nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::support::site::{NAMESPACE, Site};
use crate::support::worked;
use portolan_core::job::JobRole;
use portolan_core::rights::{Reach, RoleRule};
use portolan_parity::Audited;
use serde_json::{Value, json};

/// Rights that the worked examples do not make use of, and what they are for: role, resource, verb, why.
const RARE: [(&str, &str, &str, &str); 7] = [
    ("manager", "leases", "get", "another process wrote the lease while this one led"),
    ("kube_worker", "leases", "get", "another process wrote the lease while this one led"),
    ("kube_worker", "cloudflaretasks", "update", "a route changed while its task was waiting"),
    ("kube_worker", "referencegrants", "list", "a route leads to a Service of another namespace"),
    ("cloudflare_worker", "leases", "get", "another worker has a task: does it live?"),
    ("cloudflare_worker", "leases", "watch", "another worker writes the same tunnel's configuration"),
    ("cloudflare_worker", "configmaps", "list", "an application or token was found that may be another route's"),
];

/// The roles of processes apart.
fn apart() -> &'static [JobRole] {
    &portolan_zerotrust::JOB.sheet.roles[1..]
}

fn account_of(component: &str) -> String {
    match component {
        JobRole::OPERATOR => "cloudflare-zero-trust-operator".to_owned(),
        other => format!("cloudflare-zero-trust-operator-{other}"),
    }
}

/// One at a time: every test has a control plane of its own.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn the_worked_examples_live_with_a_token_for_each_role() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut site) = prepare("three roles with a token each") else { return };
    site.install(&["operator.mode=roles"], &["cloudflare-worker", "kube-worker", "operator"]);

    configure(&mut site);
    worked::live(&mut site);
    site.pods.stop();

    let asked = site.cluster.audited();
    assert_eq!(refused(&asked), Vec::<String>::new());
    assert_eq!(forbidden_in_logs(&site), Vec::<String>::new());
    let unused: Vec<String> = apart().iter().flat_map(|role| unused(role, &asked)).collect();
    assert_eq!(unused, Vec::<String>::new(), "rights that nothing made use of");
    let refusals = refusals(&site);
    tell(&format!(
        "real: three roles with a token each on kube-apiserver: {} requests, none refused; {refusals} others refused",
        asked.len()
    ));
}

#[test]
fn the_worked_examples_live_with_one_token_for_everything() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut site) = prepare("one process with its own account") else { return };
    site.install(&[], &["operator"]);

    configure(&mut site);
    worked::live(&mut site);
    site.pods.stop();

    let asked = site.cluster.audited();
    assert_eq!(refused(&asked), Vec::<String>::new());
    assert_eq!(forbidden_in_logs(&site), Vec::<String>::new());
    tell(&format!("real: one process with its own account on kube-apiserver: {} requests, none refused", asked.len()));
}

/// A site, unless there is no cluster to be had; the summary of `make test` repeats what was not run.
fn prepare(what: &str) -> Option<Site> {
    Site::prepare().map_err(|why| tell(&format!("real: NOT RUN: {what} on a real API server: {why}"))).ok()
}

/// The operator changes its own Deployments.
fn configure(site: &mut Site) {
    let spec = json!({"podAnnotations": {"example.com/checked": "yes"}, "environmentVariables": {"logLevel": "DEBUG"}});
    site.cluster.apply([&json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustOperatorConfig",
        "metadata": {"name": "operator-config", "namespace": NAMESPACE}, "spec": spec,
    })]);
    site.eventually("the configuration is applied and the Deployments are ready", |site| {
        let config = site.cluster.get("cloudflarezerotrustoperatorconfig", NAMESPACE, "operator-config")?;
        let holds = |kind: &str| {
            let conditions = config["status"]["conditions"].as_array()?;
            conditions.iter().find(|one| one["type"] == kind).filter(|one| one["status"] == "True").map(drop)
        };
        holds("Applied").and(holds("Ready"))?;
        let pods = site.cluster.list("pods", NAMESPACE);
        let is_new = |pod: &Value| pod["metadata"]["annotations"]["example.com/checked"] == "yes";
        pods.iter().all(is_new).then_some(())
    });
}

/// Requests that a role must not make, each made with its token: a method, and a path.
fn refusals(site: &Site) -> usize {
    let bystander = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "bystander", "namespace": "default"}, "spec": {"hostnames": ["bystander.example.com"]},
    });
    site.cluster.apply([&bystander]);
    let route = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/bystander";
    let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    let own = format!("{deployments}/cloudflare-zero-trust-operator");
    let tasks = format!("/apis/cfzt.cloudflare.com/v1alpha1/namespaces/{NAMESPACE}/cloudflaretasks");
    let (token, secrets) = ("/api/v1/namespaces/default/secrets/cloudflare-api-token", "/api/v1/secrets");
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let tried: [(&str, &[(&str, &str)]); 3] = [
        (
            "cloudflare-worker",
            &[
                ("PATCH", route),
                ("GET", route),
                ("PUT", route),
                ("GET", secrets),
                ("GET", "/api/v1/namespaces/default/secrets"),
                ("DELETE", token),
                ("PATCH", token),
                ("PATCH", &own),
                ("POST", &tasks),
                ("POST", &pods),
            ],
        ),
        (
            "kube-worker",
            &[
                ("PATCH", &own),
                ("GET", &own),
                ("GET", &deployments),
                ("POST", &deployments),
                ("DELETE", &own),
                ("PATCH", &format!("{own}/scale")),
                ("POST", &pods),
                ("DELETE", route),
            ],
        ),
        (
            JobRole::OPERATOR,
            &[
                ("GET", token),
                ("GET", secrets),
                ("PATCH", route),
                ("GET", route),
                ("GET", &tasks),
                ("PATCH", "/apis/apps/v1/namespaces/default/deployments/other"),
                ("DELETE", &own),
                ("POST", &pods),
            ],
        ),
    ];
    for (component, requests) in &tried {
        let client = site.cluster.client_of(NAMESPACE, &account_of(component));
        for (method, path) in *requests {
            assert_eq!(answer(site, &client, method, path), 403, "{component} {method} {path}");
        }
    }
    tried.iter().map(|(_, requests)| requests.len()).sum()
}

/// The status that a request is answered with.
fn answer(site: &Site, client: &kube::Client, method: &str, path: &str) -> u16 {
    let (content, body) = match method {
        "PATCH" => ("application/merge-patch+json", r#"{"metadata":{"annotations":{"touched":"yes"}}}"#),
        "GET" | "DELETE" => ("application/json", ""),
        _ => ("application/json", "{}"),
    };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content);
    let request = request.body(body.as_bytes().to_vec()).unwrap();
    match site.cluster.wait(client.request_text(request)) {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{method} {path}: {other}"),
    }
}

/// Requests that were refused for want of a right.
fn refused(asked: &[Audited]) -> Vec<String> {
    let refused: BTreeSet<String> = asked.iter().filter(|one| one.code == 403).map(|one| format!("{one:?}")).collect();
    refused.into_iter().collect()
}

/// Lines of logs that tell of a refusal.
fn forbidden_in_logs(site: &Site) -> Vec<String> {
    let logs = site.pods.logs(&site.cluster);
    let tells = |line: &&str| {
        let line = line.to_lowercase();
        line.contains("forbidden") || line.contains("cannot list") || line.contains("cannot get")
    };
    logs.lines().filter(tells).map(str::to_owned).collect()
}

/// Rights of a role that no request made use of.
fn unused(role: &JobRole, asked: &[Audited]) -> Vec<String> {
    let account = format!("{NAMESPACE}:{}", account_of(role.component));
    let asked: Vec<&Audited> = asked.iter().filter(|one| one.account == account).collect();
    let mut unused = Vec::new();
    for rule in (role.rules)() {
        for (resource, verb) in
            rule.resources.iter().flat_map(|resource| rule.verbs.iter().map(move |verb| (*resource, *verb)))
        {
            let is_rare =
                RARE.iter().any(|(whose, there, rare, _)| (*whose, *there, *rare) == (role.name, resource, verb));
            if !is_rare && !asked.iter().any(|one| needs(one, &rule, resource, verb)) {
                unused.push(format!("{} {:?} {verb} {resource}", role.name, rule.reach));
            }
        }
    }
    unused
}

/// Whether a request needs this part of a rule, and needs it to reach as far as it does.
fn needs(asked: &Audited, rule: &RoleRule, resource: &str, verb: &str) -> bool {
    // What is applied and was not there is made.
    let makes = verb == "create" && asked.verb == "patch" && asked.code == 201;
    let is_inside = asked.namespace.as_deref() == Some(NAMESPACE);
    let is_far = match rule.reach {
        Reach::Cluster => !is_inside,
        Reach::OperatorNamespace => is_inside,
    };
    let is_named = rule.names.is_empty() || asked.name.as_deref().is_some_and(|name| rule.names.contains(&name));
    asked.group == rule.group && asked.resource == resource && (asked.verb == verb || makes) && is_far && is_named
}

/// Written to the handle itself: what `println!` says is kept back.
fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
