//! The Helm chart with the real helm: it renders what `portolan install` prints, refuses what that refuses, and is
//! installed, upgraded and uninstalled on a real kube-apiserver.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::helm::{Helm, tell};
use crate::support::{Run, portolan};
use portolan_parity::{ControlPlane, Durability};
use serde_json::{Value, json};

const NAMESPACE: &str = "cloudflare-zero-trust";
const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
const OWN_KINDS: [&str; 3] =
    ["CloudflareZeroTrustOperatorConfig", "CloudflareZeroTrustTenant", "CloudflareZeroTrustTemplate"];

/// The values that the tests install: none, three roles, as little as possible, and everything.
fn known_values() -> [(&'static str, Value); 4] {
    let minimal = json!({
        "metrics": {"enabled": false}, "networkPolicy": {"enabled": false}, "podDisruptionBudget": {"enabled": false},
        "resources": null,
    });
    [
        ("default", json!({})),
        ("roles", json!({"operator": {"mode": "roles"}})),
        ("minimal", minimal),
        ("everything", everything()),
    ]
}

fn everything() -> Value {
    json!({
        "image": {"registry": "registry.example.com", "repository": "sea/portolan", "tag": "v1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "fullnameOverride": "harbour",
        "operator": {
            "mode": "roles", "watchNamespaces": "shop, apps", "allowOrigins": "bastion, unix:/run/app.sock", "pollIntervalSeconds": 120, "driftResyncSeconds": 0,
            "logLevel": "DEBUG", "logFormat": "json", "cloudflareApiBase": "https://api.example.com/client/v4",
            "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        },
        "replicaCount": 2,
        "serviceAccount": {"name": "sailor", "annotations": {"example.com/role": "sea"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "sea", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"a": "b"}}}],
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"example.com/a": "yes"}, "podLabels": {"team": "sea"},
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "extraEgress": [{"ports": [{"port": 3128, "protocol": "TCP"}]}], "egressPorts": [443]},
        "podDisruptionBudget": {"maxUnavailable": 2},
        "metrics": {"serviceMonitor": {"enabled": true, "interval": "1m", "labels": {"release": "prometheus"}},
            "alerts": {"enabled": true, "labels": {"release": "prometheus"}},
            "dashboard": {"enabled": true}},
        "operatorConfig": {"create": true, "spec": {"replicas": 2, "environmentVariables": {"logLevel": "DEBUG"}}},
        "tenant": {"create": true, "instanceName": "prod", "namespace": "apps", "accountId": ACCOUNT, "tunnelId": TUNNEL,
            "zoneId": ACCOUNT, "apiToken": "t: \"k#n"},
        "exampleTemplates": {"install": true},
    })
}

#[test]
fn the_chart_is_clean_for_all_known_values() {
    let Some(helm) = Helm::find("helm lint") else { return };
    for (name, values) in known_values() {
        let file = helm.file(&values);
        let linted = helm.run(&["lint", "--strict", &chart(), "--values", &file]);
        assert_eq!(linted.code, Some(0), "{name}: {linted}");
    }
}

#[test]
fn the_chart_renders_what_portolan_install_prints() {
    let Some(helm) = Helm::find("helm template against portolan install") else { return };
    for (name, values) in known_values() {
        helm.compare(name, &values);
    }
    let (seed, sets) = (seed(), 60);
    for number in 0..sets {
        let values = Dice::new(seed.wrapping_add(number)).values();
        helm.compare(&format!("failing seed: {} (SEED={} replays it)", seed.wrapping_add(number), seed), &values);
    }
    tell(&format!(
        "helm: the chart renders what portolan install prints for 4 known and {sets} random sets of values (seed {seed})"
    ));
}

#[test]
fn objects_of_kinds_that_the_cluster_does_not_know_yet_are_made_by_a_hook() {
    let Some(helm) = Helm::find("helm template of our own kinds") else { return };
    let file = helm.file(&everything());
    let fresh = helm.template(&file, &[]);
    let printed = installed(&file);

    for (key, object) in &fresh {
        let mut plain = object.clone();
        if OWN_KINDS.iter().any(|kind| object["kind"] == *kind) {
            assert_eq!(object["metadata"]["annotations"]["helm.sh/hook"], "post-install,post-upgrade");
            let labels = plain["metadata"]["labels"].as_object_mut().unwrap();
            assert_eq!(
                labels.remove("app.kubernetes.io/managed-by"),
                Some(json!("Helm")),
                "the next upgrade adopts it"
            );
            let annotations = plain["metadata"]["annotations"].as_object_mut().unwrap();
            annotations.retain(|name, _| name == "helm.sh/resource-policy");
        }
        assert_eq!(Some(&plain), printed.get(key), "{key}");
    }
}

#[test]
fn what_portolan_install_refuses_the_chart_refuses_too() {
    let Some(helm) = Helm::find("helm template of wrong values") else { return };
    let tenant = |more: Value| {
        let mut tenant = json!({"create": true, "accountId": ACCOUNT, "tunnelId": TUNNEL});
        tenant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"tenant": tenant})
    };
    let said_by_both = [
        json!({"serviceAccount": {"create": false}}),
        json!({"operator": {"mode": "roles"}, "controllers": ["zerotrust", "cloudflare"]}),
        json!({"operator": {"mode": "roles"}, "controllers": ["cloudflare"]}),
        json!({"tenant": {"create": true}, "controllers": ["cloudflare"]}),
        json!({"operatorConfig": {"create": true}, "controllers": ["cloudflare"]}),
        json!({"exampleTemplates": {"install": true}, "controllers": ["cloudflare"]}),
        json!({"metrics": {"enabled": false, "serviceMonitor": {"enabled": true}}}),
        json!({"podLabels": {"app.kubernetes.io/component": "x"}}),
        json!({"operator": {"extraEnv": [{"name": "LOG_LEVEL", "value": "DEBUG"}]}}),
        json!({"operator": {"extraEnv": [{"value": "DEBUG"}]}}),
        json!({"tenant": {"create": true}}),
        json!({"tenant": {"create": true, "accountId": ACCOUNT}}),
        tenant(json!({})),
        tenant(json!({"apiToken": "t", "existingSecret": {"name": "s"}})),
    ];
    for values in said_by_both {
        let file = helm.file(&values);
        let ours = install(&["--values", &file]).failed();
        let message = ours.lines().next().unwrap().replace(&format!("error: {file}: "), "");
        let theirs = helm.run(&["template", "x", &chart(), "--values", &file]);
        assert!(theirs.code != Some(0) && theirs.stderr.contains(&message), "{values}: {message}\n{theirs}");
    }
    let refused_by_the_schema = [
        json!({"replicacount": 1}),
        json!({"operator": {"mode": "double"}}),
        json!({"replicaCount": "many"}),
        json!({"replicaCount": null}),
        json!({"tenant": {"accountId": "xyz"}}),
        json!({"controllers": []}),
        json!({"controllers": ["zerotrust", "zerotrust"]}),
        json!({"image": {"digest": "sha256:short"}}),
        json!({"podLabels": {"a": 1}}),
        json!({"networkPolicy": {"egressPorts": [70000]}}),
    ];
    for values in refused_by_the_schema {
        let file = helm.file(&values);
        install(&["--values", &file]).failed();
        let theirs = helm.run(&["template", "x", &chart(), "--values", &file]);
        assert!(theirs.code != Some(0) && theirs.stderr.contains("values don't meet"), "{values}: {theirs}");
    }
}

#[test]
fn a_release_is_installed_upgraded_and_uninstalled_on_a_real_api_server() {
    let Some(helm) = Helm::find("helm install on a real API server") else { return };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let plane = match runtime.block_on(ControlPlane::start(Durability::None)) {
        Ok(plane) => plane,
        Err(why) => return tell(&format!("helm: NOT RUN: helm install on a real API server: {why}")),
    };
    let cluster = Cluster { helm: &helm, kubeconfig: plane.kubeconfig() };

    cluster.a_first_release_with_a_tenant_keeps_it_over_its_whole_life();
    for (name, values) in known_values().into_iter().take(3) {
        cluster.installs_and_goes(name, &values);
    }
    cluster.takes_over_what_portolan_install_applied();

    tell("helm: installed, upgraded with a changed definition, uninstalled and taken over on kube-apiserver");
}

/// A cluster and helm.
struct Cluster<'a> {
    helm: &'a Helm,
    kubeconfig: &'a Path,
}

impl Cluster<'_> {
    /// The cluster is empty at first: the tenant's kind comes with the same release.
    fn a_first_release_with_a_tenant_keeps_it_over_its_whole_life(&self) {
        let tenant = |zone: &str| {
            json!({"tenant": {"create": true, "instanceName": "prod", "accountId": ACCOUNT, "tunnelId": TUNNEL,
                "zoneId": zone, "apiToken": "canary-token"}})
        };
        let path = ["cloudflarezerotrusttenant", "prod", "-n", NAMESPACE];
        self.install(&chart(), &tenant(""));
        let uid = self.get(&path)["metadata"]["uid"].clone();

        let changed = self.chart_with_a_changed_definition();
        self.upgrade(&changed, &tenant(ACCOUNT));

        let after = self.get(&path);
        assert_eq!((&after["metadata"]["uid"], &after["spec"]["zoneId"]), (&uid, &json!(ACCOUNT)), "changed in place");
        let definition = self.get(&["customresourcedefinition", "cloudflarezerotrusttenants.cfzt.cloudflare.com"]);
        assert!(definition.to_string().contains("\"newerField\""), "definitions are upgraded with the chart");

        self.uninstall();
        assert_eq!(self.get(&path)["metadata"]["uid"], uid, "the tenant stays");
        assert!(self.get(&path)["metadata"].get("deletionTimestamp").is_none());
        self.get(&["secret", "prod-cloudflare-api-token", "-n", NAMESPACE]);

        self.install(&chart(), &tenant(""));
        assert_eq!(self.get(&path)["metadata"]["uid"], uid, "a second life takes it over");
        self.uninstall();
    }

    fn installs_and_goes(&self, name: &str, values: &Value) {
        self.install(&chart(), values);

        let deployment = ["deployment", "cloudflare-zero-trust-operator", "-n", NAMESPACE];
        let live = self.get(&deployment);
        let file = self.helm.file(values);
        let printed = installed(&file);
        let wanted = printed.values().find(|object| object["kind"] == "Deployment").unwrap();
        let variables = |object: &Value| {
            let environment = object["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
            // The server leaves out what is empty, and says in which version a field is read.
            let pair = |one: &Value| (one["name"].clone(), one["value"].as_str().unwrap_or_default().to_owned());
            environment.iter().map(pair).collect::<Vec<_>>()
        };
        assert_eq!(variables(&live), variables(wanted), "{name}");
        for object in printed.values() {
            if !self.exists(object) {
                missing(name, object);
            }
        }

        self.uninstall();

        for object in printed.values() {
            let kept = object["kind"] == "CustomResourceDefinition";
            assert_eq!(self.exists(object), kept, "{name}: {} after uninstall", key_of(object));
        }
    }

    /// A namespace that enforces the standard `restricted` takes the pods, and refuses less hardened ones.
    fn pods_meet_the_strictest_standard(&self) {
        let standard = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        assert_eq!(self.apply(&standard, &[]).code, Some(0));
        let template =
            self.get(&["deployment", "cloudflare-zero-trust-operator", "-n", NAMESPACE])["spec"]["template"].clone();
        let pod = |spec: &Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "try", "namespace": NAMESPACE}, "spec": spec});

        let taken = self.apply(&pod(&template["spec"]), &["--dry-run"]);
        assert_eq!(taken.code, Some(0), "{taken}");

        let mut weaker = template["spec"].clone();
        weaker["containers"][0]["securityContext"] = json!({});
        let refused = self.apply(&pod(&weaker), &["--dry-run"]);
        assert!(refused.code != Some(0) && refused.stderr.contains("restricted"), "{refused}");
    }

    fn apply(&self, object: &Value, more: &[&str]) -> Run {
        let file = self.helm.file(object);
        self.portolan(&[&["apply", "-f", &file], more].concat())
    }

    fn takes_over_what_portolan_install_applied(&self) {
        let apply = || self.portolan(&["install", "--apply"]);
        let first = apply().succeeded();
        assert!(first.contains("deployment.apps/cloudflare-zero-trust-operator created"), "{first}");
        assert!(first.contains("does not know HTTPRoute"), "{first}");
        let again = apply().succeeded();
        let changed: Vec<&str> =
            again.lines().take_while(|line| !line.is_empty()).filter(|line| !line.ends_with(" unchanged")).collect();
        assert_eq!(changed, [""; 0], "a second time changes nothing");
        let waited = self.portolan(&["install", "--apply", "--wait", "--timeout", "1s"]).failed();
        assert!(waited.contains("0 of 1 pods are ready"), "{waited}");

        self.pods_meet_the_strictest_standard();
        let arguments = ["install", "portolan", &chart(), "--namespace", NAMESPACE];
        let refused = self.helm(&arguments);
        assert!(refused.code != Some(0) && refused.stderr.contains("invalid ownership metadata"), "{refused}");
        let taken = self.helm(&[&arguments[..], &["--take-ownership", "--force-conflicts"]].concat());
        assert_eq!(taken.code, Some(0), "{taken}");
        self.uninstall();
    }

    /// The chart as a later version would be.
    fn chart_with_a_changed_definition(&self) -> String {
        let copy = self.helm.folder().join("changed");
        let copied = Command::new("cp").arg("-r").arg(chart()).arg(&copy).status().unwrap();
        assert!(copied.success());
        let file = copy.join("files/definitions/zerotrust/cloudflarezerotrusttenants.yaml");
        let mut definition: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        definition.pointer_mut(spec).unwrap()["newerField"] = json!({"type": "string"});
        std::fs::write(&file, definition.to_string()).unwrap();
        copy.display().to_string()
    }

    /// As docs/installation.md has it for a tenant in the first step: Helm asks for the kinds of its hooks once, right after
    /// it made their definitions, which an API server that is busy does not serve yet.
    fn install(&self, chart: &str, values: &Value) {
        let file = self.helm.file(values);
        let rest = ["portolan", chart, "--namespace", NAMESPACE, "--create-namespace", "--values", &file];
        let mut run = self.helm(&[&["install"][..], &rest].concat());
        if run.stderr.contains("no matches for kind") {
            run = self.helm(&[&["upgrade", "--install"][..], &rest].concat());
        }
        assert_eq!(run.code, Some(0), "{values}: {run}");
    }

    fn upgrade(&self, chart: &str, values: &Value) {
        let file = self.helm.file(values);
        let run = self.helm(&["upgrade", "portolan", chart, "--namespace", NAMESPACE, "--values", &file]);
        assert_eq!(run.code, Some(0), "{values}: {run}");
    }

    fn uninstall(&self) {
        let run = self.helm(&["uninstall", "portolan", "--namespace", NAMESPACE, "--wait=watcher", "--timeout", "60s"]);
        assert_eq!(run.code, Some(0), "{run}");
    }

    fn helm(&self, arguments: &[&str]) -> Run {
        self.helm.command(arguments).env("KUBECONFIG", self.kubeconfig).output().unwrap().into()
    }

    fn portolan(&self, arguments: &[&str]) -> Run {
        portolan().args(arguments).env("KUBECONFIG", self.kubeconfig).output().unwrap().into()
    }

    fn get(&self, arguments: &[&str]) -> Value {
        let text = self.portolan(&[&["get", "-o", "json"], arguments].concat()).succeeded();
        serde_json::from_str(&text).unwrap()
    }

    fn exists(&self, object: &Value) -> bool {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let group = object["apiVersion"].as_str().unwrap().split_once('/').map_or("", |(group, _)| group);
        let kind = format!("{}.{group}", object["kind"].as_str().unwrap().to_lowercase());
        let mut arguments = vec!["get", "-o", "name", kind.trim_end_matches('.'), text("name")];
        if !text("namespace").is_empty() {
            arguments.extend(["-n", text("namespace")]);
        }
        self.portolan(&arguments).code == Some(0)
    }
}

#[expect(clippy::panic, reason = "a missing object is a failed test")]
fn missing(name: &str, object: &Value) {
    panic!("{name}: {} was not installed", key_of(object));
}

impl Helm {
    fn template(&self, values: &str, known: &[String]) -> BTreeMap<String, Value> {
        let mut arguments = vec!["template", "portolan", "CHART", "--namespace", NAMESPACE, "--values", values];
        let chart = chart();
        arguments[2] = &chart;
        for version in known {
            arguments.extend(["--api-versions", version]);
        }
        keyed(&self.run(&arguments).succeeded())
    }

    fn compare(&self, name: &str, values: &Value) {
        let file = self.file(values);
        let known = OWN_KINDS.map(|kind| format!("cfzt.cloudflare.com/v1alpha1/{kind}"));
        let (theirs, ours) = (self.template(&file, &known), installed(&file));
        let keys = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&theirs), keys(&ours), "{name}: {values}");
        for (key, object) in &ours {
            assert_eq!(&theirs[key], object, "{name}: {key} with {values}");
        }
    }
}

fn chart() -> String {
    format!("{}/../../charts/portolan", env!("CARGO_MANIFEST_DIR"))
}

fn install(arguments: &[&str]) -> Run {
    portolan().args(["install", "--namespace", NAMESPACE, "--no-namespace"]).args(arguments).output().unwrap().into()
}

fn installed(values: &str) -> BTreeMap<String, Value> {
    keyed(&install(&["--values", values]).succeeded())
}

/// Objects of a YAML stream by kind, namespace and name; each stands there once.
fn keyed(text: &str) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for document in text.split("\n---\n").map(|document| document.trim_start_matches("---\n")) {
        let mut object: Value = serde_saphyr::from_str(document).unwrap_or_else(|error| unreadable(document, &error));
        plain_numbers(&mut object);
        if !object.is_null() {
            let before = objects.insert(key_of(&object), object);
            assert!(before.is_none(), "twice: {before:?}");
        }
    }
    objects
}

/// 1.0 and 1 are one number in JSON.
fn plain_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = format!("{number}").strip_suffix(".0").and_then(|digits| digits.parse::<i64>().ok());
            if let Some(whole) = whole {
                *value = json!(whole);
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(plain_numbers),
        Value::Object(fields) => fields.values_mut().for_each(plain_numbers),
        _ => {}
    }
}

#[expect(clippy::panic, reason = "an unreadable document is a failed test")]
fn unreadable(document: &str, error: &serde_saphyr::Error) -> Value {
    panic!("{error}\n{document}");
}

fn key_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    format!(
        "{} {} {}/{}",
        text(&object["apiVersion"]),
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"])
    )
}

fn seed() -> u64 {
    let chosen = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    chosen.unwrap_or_else(|| u64::from(std::process::id()) * 1000)
}

/// Random values, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn throw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one(&mut self, choices: &[Value]) -> Value {
        let number = usize::try_from(self.throw() % choices.len() as u64).unwrap();
        choices[number].clone()
    }

    /// Any values that go together.
    fn values(&mut self) -> Value {
        let mut values = json!({});
        let text =
            [json!(""), json!("a"), json!("with-hyphen"), json!("012"), json!("true"), json!("1e3"), json!("null")];
        let labels = [json!({}), json!({"team": "sea"}), json!({"a.example.com/b": "true", "n": "012"}), json!(null)];
        let flag = [json!(true), json!(false)];
        let choices: [(&str, Vec<Value>); 36] = [
            ("/image/registry", text.to_vec()),
            ("/image/tag", vec![json!(""), json!("1.0"), json!("latest"), json!("0123")]),
            ("/image/digest", vec![json!(""), json!(format!("sha256:{}", "0f".repeat(32)))]),
            ("/image/pullPolicy", vec![json!("Always"), json!("Never"), json!("IfNotPresent")]),
            ("/imagePullSecrets", vec![json!([]), json!([{"name": "a"}, {"name": "b"}])]),
            ("/nameOverride", text.to_vec()),
            ("/fullnameOverride", text.to_vec()),
            ("/namespaceOverride", text.to_vec()),
            ("/operator/watchNamespaces", vec![json!(""), json!("a,b"), json!("shop, apps"), json!(null)]),
            ("/operator/pollIntervalSeconds", vec![json!(10), json!(3600)]),
            ("/operator/driftResyncSeconds", vec![json!(0), json!(604_800)]),
            ("/operator/logLevel", vec![json!("DEBUG"), json!("WARNING"), json!("ERROR")]),
            ("/operator/logFormat", vec![json!("text"), json!("json")]),
            ("/operator/cloudflareApiBase", vec![json!(""), json!("http://127.0.0.1:8787/client/v4?a=b#c")]),
            (
                "/operator/extraEnv",
                vec![
                    json!([]),
                    json!([{"name": "A", "value": "yes"}, {"name": "B", "valueFrom":
                {"secretKeyRef": {"name": "s", "key": "k"}}}]),
                    json!(null),
                ],
            ),
            ("/replicaCount", vec![json!(0), json!(1), json!(3)]),
            (
                "/resources",
                vec![
                    json!(null),
                    json!({}),
                    json!({"limits": {"cpu": 2, "memory": null}}),
                    json!({"requests": {"cpu": "1.5"}}),
                ],
            ),
            ("/serviceAccount/annotations", labels.to_vec()),
            ("/serviceAccount/name", text.to_vec()),
            ("/rbac/create", flag.to_vec()),
            ("/nodeSelector", labels.to_vec()),
            ("/tolerations", vec![json!([]), json!([{"operator": "Exists"}]), json!(null)]),
            ("/affinity", vec![json!({}), json!({"nodeAffinity": {"x": [1, 2.5, "3", true, null]}})]),
            ("/priorityClassName", text.to_vec()),
            ("/podAnnotations", labels.to_vec()),
            ("/podLabels", labels.to_vec()),
            ("/podSecurityContext", vec![json!({}), json!({"runAsUser": 1234, "fsGroup": null}), json!(null)]),
            ("/securityContext", vec![json!({}), json!({"readOnlyRootFilesystem": false}), json!(null)]),
            ("/crds/install", flag.to_vec()),
            ("/crds/keep", flag.to_vec()),
            (
                "/networkPolicy",
                vec![
                    json!({"enabled": false}),
                    json!({"egressPorts": []}),
                    json!({"egressPorts": [1, 65535]}),
                    json!({"metricsFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}),
                    json!({"extraEgress": [{}]}),
                ],
            ),
            ("/podDisruptionBudget", vec![json!({"enabled": false}), json!({"maxUnavailable": 0})]),
            (
                "/metrics",
                vec![
                    json!({"enabled": false}),
                    json!({"serviceMonitor": {"enabled": true, "labels": {"a": "1"}}}),
                    json!({"dashboard": {"enabled": true, "labels": null}, "alerts": {"enabled": true}}),
                ],
            ),
            (
                "/operatorConfig",
                vec![
                    json!({}),
                    json!({"create": true}),
                    json!({"create": true, "spec": {"replicas": 3,
                "podLabels": {"a": "{{ b }}"}}}),
                ],
            ),
            (
                "/tenant",
                vec![
                    json!({}),
                    json!({"create": true, "accountId": ACCOUNT, "tunnelId": TUNNEL, "apiToken": "a'b\"c\\d"}),
                    json!({"create": true, "instanceName": "012", "namespace": "true", "accountId": ACCOUNT, "tunnelId": TUNNEL,
                    "existingSecret": {"name": "5", "key": "null"}}),
                ],
            ),
            ("/exampleTemplates/install", flag.to_vec()),
        ];
        for (pointer, choices) in &choices {
            // Half of the values are left alone.
            if self.throw().is_multiple_of(2) {
                let value = self.one(choices);
                put(&mut values, pointer, value);
            }
        }
        self.choose_the_jobs(&mut values);
        values
    }

    fn choose_the_jobs(&mut self, values: &mut Value) {
        let all =
            [json!({}), json!({"operator": {"mode": "roles"}}), json!({"controllers": ["zerotrust", "cloudflare"]})];
        let chosen = self.one(&all);
        if let Some(mode) = chosen.pointer("/operator/mode") {
            put(values, "/operator/mode", mode.clone());
        }
        if let Some(jobs) = chosen.get("controllers") {
            put(values, "/controllers", jobs.clone());
        }
    }
}

fn put(values: &mut Value, pointer: &str, value: Value) {
    let mut place = values;
    for key in pointer.trim_start_matches('/').split('/') {
        place = &mut place[key];
    }
    *place = value;
}
