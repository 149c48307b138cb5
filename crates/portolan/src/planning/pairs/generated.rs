//! Pairs of manifests from a seed: what is applied first, and what it is changed to.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Map, Value, json};

use super::{ACCOUNT, TUNNELS};

/// The same objects, twice.
pub(super) struct ManifestPair {
    pub(super) namespace: String,
    pub(super) zone: String,
    pub(super) before: Vec<Value>,
    pub(super) after: Vec<Value>,
}

/// A field that an object may have, and its values.
type GeneratedField = (&'static str, &'static [&'static str]);

/// Annotations of routes, behind their prefix.
const ROUTE: &[GeneratedField] = &[
    ("access.enabled", &["true", "true", "true", "false"]),
    ("access.allowEmails", &["a@example.com", "a@example.com,b@example.com", "c@example.com"]),
    ("access.sessionDuration", &["1h", "8h"]),
    ("accessApp", &["true"]),
    ("template", &["wide"]),
    ("origin.url", &["http://web.example.net:80", "https://web.example.net:443"]),
    ("origin.noTLSVerify", &["true", "false"]),
    ("origin.httpHostHeader", &["inside.example.com"]),
    ("serviceToken.enabled", &["true", "false"]),
    ("origin.httpRedirect", &["true", "false"]),
    ("access.enabel", &["true"]),
    ("dnsOnly.enabled", &["false"]),
];
/// Fields of templates and tenants, by pointer, as JSON.
const TEMPLATE: &[GeneratedField] = &[
    ("/accessApplication/enabled", &["true", "true", "false"]),
    ("/accessApplication/allowEmails", &[r#"["d@example.com"]"#, r#"["d@example.com","e@example.com"]"#]),
    ("/accessApplication/sessionDuration", &[r#""2h""#, r#""3h""#]),
    ("/originService/url", &[r#""http://template.example.net:80""#]),
    ("/originService/originTLS/noTLSVerify", &["true"]),
];
const TENANT: &[GeneratedField] = &[
    ("/defaults/originService", &[r#""http://gate.example.net:80""#, r#""http://gate.example.net:81""#]),
    ("/defaults/sessionDuration", &[r#""6h""#]),
    ("/defaults/originTLS/noTLSVerify", &["true"]),
];
const RECORD: &[GeneratedField] = &[
    ("/ttl", &["120", "300"]),
    ("/comment", &[r#""The handbook""#, r#""Another""#]),
    ("/content", &[r#""192.0.2.1""#, r#""192.0.2.2""#]),
];

impl ManifestPair {
    pub(super) fn of(seed: u64, number: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let (namespace, zone) = (format!("p{number}"), format!("p{number}.test"));
        let first = Wishes::any(&mut random);
        let second = first.edited(&mut random);
        let objects = |wishes: &Wishes| wishes.objects(&namespace, &zone);
        Self { before: objects(&first), after: objects(&second), namespace, zone }
    }
}

/// What the objects say.
#[derive(Clone)]
struct Wishes {
    tenant: Map<String, Value>,
    tunnel: usize,
    templates: Vec<Map<String, Value>>,
    routes: Vec<Map<String, Value>>,
    hostnames: Vec<usize>,
    record: Map<String, Value>,
    record_name: usize,
    /// Kinds that are left out of the files.
    absent: Vec<&'static str>,
}

impl Wishes {
    fn any(random: &mut StdRng) -> Self {
        Self {
            tenant: some(random, TENANT),
            tunnel: 0,
            templates: (0..2).map(|_| some(random, TEMPLATE)).collect(),
            routes: (0..2).map(|_| some(random, ROUTE)).collect(),
            hostnames: vec![0, 0],
            record: some(random, RECORD),
            record_name: 0,
            absent: Vec::new(),
        }
    }

    /// The same with some fields added, changed and removed.
    fn edited(&self, random: &mut StdRng) -> Self {
        let mut wishes = self.clone();
        for route in &mut wishes.routes {
            edit(random, route, ROUTE);
        }
        for template in &mut wishes.templates {
            if random.random_bool(0.4) {
                edit(random, template, TEMPLATE);
            }
        }
        if random.random_bool(0.3) {
            edit(random, &mut wishes.tenant, TENANT);
        }
        if random.random_bool(0.1) {
            wishes.tunnel = 1;
        }
        for hostname in &mut wishes.hostnames {
            *hostname = usize::from(random.random_bool(0.2));
        }
        if random.random_bool(0.6) {
            edit(random, &mut wishes.record, RECORD);
        }
        wishes.record_name = usize::from(random.random_bool(0.2));
        for kind in ["DNSRecord", "CloudflareZeroTrustTemplate", "CloudflareZeroTrustTenant"] {
            if random.random_bool(0.1) {
                wishes.absent.push(kind);
            }
        }
        wishes
    }

    fn objects(&self, namespace: &str, zone: &str) -> Vec<Value> {
        let mut objects = vec![object(
            "cfzt.cloudflare.com/v1alpha1",
            "CloudflareZeroTrustTenant",
            (namespace, "main"),
            &spec(
                &json!({"accountId": ACCOUNT, "tunnelId": TUNNELS[self.tunnel], "credentialRef": {"name": "token"}}),
                &self.tenant,
            ),
        )];
        for (name, template) in ["wide", "base-main"].iter().zip(&self.templates) {
            let kind = "CloudflareZeroTrustTemplate";
            // Of a spec that loses its last field server-side apply leaves a null, which the server refuses.
            let spec = spec(&json!({"originService": {"originTLS": {"tlsTimeout": 10}}}), template);
            objects.push(object("cfzt.cloudflare.com/v1alpha1", kind, (namespace, name), &spec));
        }
        for (number, annotations) in self.routes.iter().enumerate() {
            objects.push(self.route(number, annotations, namespace, zone));
        }
        let name = format!("record{}.{zone}", self.record_name);
        let record = json!({"name": name, "type": "A", "content": "192.0.2.9", "cloudflare": {}});
        let version = "networking.cloudflare-operator.io/v1alpha2";
        objects.push(object(version, "DNSRecord", (namespace, "record"), &spec(&record, &self.record)));
        objects.retain(|object| !self.absent.iter().any(|kind| object["kind"] == **kind));
        objects
    }

    fn route(&self, number: usize, asked: &Map<String, Value>, namespace: &str, zone: &str) -> Value {
        let name = format!("web{number}-{namespace}");
        let hostname = format!("{name}-{}.{zone}", self.hostnames[number]);
        let mut annotations: Map<String, Value> =
            asked.iter().map(|(name, value)| (format!("cfzt.cloudflare.com/{name}"), value.clone())).collect();
        annotations.insert("cfzt.cloudflare.com/enabled".to_owned(), json!("true"));
        annotations.insert("cfzt.cloudflare.com/hostname".to_owned(), json!(hostname));
        let spec = json!({
            "parentRefs": [{"name": "gate", "namespace": "gate"}], "hostnames": [hostname],
            "rules": [{"backendRefs": [{"name": name, "port": 8080}]}],
        });
        let mut route = object("gateway.networking.k8s.io/v1", "HTTPRoute", (namespace, &name), &spec);
        route["metadata"]["annotations"] = Value::Object(annotations);
        route
    }
}

fn object(version: &str, kind: &str, (namespace, name): (&str, &str), spec: &Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// Fields by pointer, laid over others.
fn spec(base: &Value, fields: &Map<String, Value>) -> Value {
    let mut spec = base.clone();
    for (pointer, text) in fields {
        let value: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        let mut place = &mut spec;
        for name in pointer.trim_start_matches('/').split('/') {
            place = &mut place[name];
        }
        *place = value;
    }
    spec
}

fn some(random: &mut StdRng, fields: &[GeneratedField]) -> Map<String, Value> {
    let mut chosen = Map::new();
    for (name, values) in fields {
        // A word that nobody knows is rare, since nothing else of the route counts then.
        if random.random_bool(if *name == "access.enabel" { 0.02 } else { 0.4 }) {
            chosen.insert((*name).to_owned(), json!(values.choose(random)));
        }
    }
    chosen
}

fn edit(random: &mut StdRng, fields: &mut Map<String, Value>, known: &[GeneratedField]) {
    for (name, value) in some(random, known) {
        match random.random_range(0..3) {
            0 => drop(fields.remove(&name)),
            _ => drop(fields.insert(name, value)),
        }
    }
}
