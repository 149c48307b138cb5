//! What must hold in a world of this job whatever happened: everything at Cloudflare is somebody else's, as it was, or
//! recorded in a state; secrets stand only where they belong; a world at rest is not written to.

use std::collections::BTreeSet;
use std::fmt;

use portolan_cloudflare_sim::RecordedRequest;
use serde_json::{Value, json};

use super::SOMEBODY;
use super::canonical::{is_state, steady};
use super::edge_monitor::EdgeMonitor;
use crate::cloudflare::live;
use crate::manifests::{CANARY, id};
use crate::world::World;
use crate::zerotrust::RouteWorld as _;

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The simulator's objects.
    pub state: Value,
    /// What stood there before the operator came: the simulator's objects then.
    pub seeded: Value,
    /// Objects that somebody else has at Cloudflare, as they were made.
    pub foreign: Vec<(String, Value)>,
    /// All routes.
    pub routes: Vec<Value>,
    /// All `ConfigMap`s of the operator.
    pub config_maps: Vec<Value>,
    /// All tasks.
    pub tasks: Vec<Value>,
    /// All Secrets.
    pub secrets: Vec<Value>,
    /// One-time secrets that the API ever answered with.
    pub told: Vec<String>,
    /// Texts in which no secret may stand, and what they are.
    pub texts: Vec<(String, String)>,
    /// Names whose Secret does not open them.
    pub locked: Vec<String>,
    /// Writes that were made after everything was as wanted.
    pub late_writes: Vec<String>,
}

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Something stands at Cloudflare that nobody knows of.
    LeftBehind(String),
    /// A state names something that does not stand.
    Missing(String),
    /// Two things stand for one.
    Duplicate(String),
    /// Something of somebody else was changed or is gone.
    ForeignTouched(String),
    /// A secret stands where it may not.
    SecretSeen(String),
    /// A Secret does not open the name it is for.
    LockedOut(String),
    /// A state or a task without its route, a result that was not collected.
    Forgotten(String),
    /// A world at rest was written to.
    WroteAtRest(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftBehind(what) => write!(f, "nobody knows of {what}"),
            Self::Missing(what) => write!(f, "recorded, but not there: {what}"),
            Self::Duplicate(what) => write!(f, "two stand for one: {what}"),
            Self::ForeignTouched(what) => write!(f, "something foreign was touched: {what}"),
            Self::SecretSeen(place) => write!(f, "a secret stands in {place}"),
            Self::LockedOut(what) => write!(f, "the Secret does not open {what}"),
            Self::Forgotten(what) => write!(f, "forgotten: {what}"),
            Self::WroteAtRest(what) => write!(f, "written at rest: {what}"),
        }
    }
}

impl Evidence {
    /// All there is, after one more pass over everything.
    pub async fn of(world: &World) -> Self {
        let before = tenants(world).await;
        let mut late_writes = world.late_writes().await;
        let after = tenants(world).await;
        if !late_writes.is_empty() && before != after {
            late_writes.push(format!("tenants were {before:?} and are {after:?}"));
        }
        let mut texts = Vec::new();
        for kind in ["Event", "ConfigMap", "Lease"].into_iter().chain(world.job().kinds()) {
            texts.extend(
                world.cluster.list(kind).await.iter().map(|one| (format!("{kind} {}", id(one)), one.to_string())),
            );
        }
        let log = world.cloudflare.simulator.requests();
        texts.extend(log.iter().map(|one: &RecordedRequest| {
            (format!("the request {} {}", one.method, one.path), one.to_json().to_string())
        }));
        texts.extend(world.plans().into_iter().map(|plan| ("a plan".to_owned(), plan)));
        texts.push(("the metrics".to_owned(), world.metrics().await));
        let config_maps = world.cluster.list("ConfigMap").await;
        let mut locked = Vec::new();
        for record in records_in(&config_maps) {
            let token =
                !texts_of(&record.ids["serviceTokenId"]).is_empty() && !texts_of(&record.ids["accessAppId"]).is_empty();
            let name = world.name(&record.hostname);
            if token && name.is_published() && !name.opens_with_token_of(&record.route).await {
                locked.push(record.hostname);
            }
        }
        Self {
            locked,
            state: world.cloudflare.simulator.state(),
            seeded: world.cloudflare.seeded(),
            foreign: world.cloudflare.foreign(),
            routes: world.cluster.list("HTTPRoute").await,
            config_maps,
            tasks: world.cluster.list("CloudflareTask").await,
            secrets: world.cluster.list("Secret").await,
            told: world.cloudflare.told_secrets(),
            texts,
            late_writes,
        }
    }
}

/// What tenants say of themselves.
async fn tenants(world: &World) -> Vec<String> {
    let all = world.cluster.list("CloudflareZeroTrustTenant").await;
    all.iter().map(|one| one["status"].to_string()).collect()
}

/// What does not hold in a world that is at rest; one more pass over everything must write nothing.
pub async fn found(world: &World) -> Vec<String> {
    check(&Evidence::of(world).await).iter().map(ToString::to_string).collect()
}

/// Panics where something does not hold.
pub async fn assert_all(world: &World, place: &str) {
    let found = found(world).await;
    assert!(found.is_empty(), "{place}: {}", found.join("; "));
    if let Some(monitor) = world.kept::<EdgeMonitor>() {
        monitor.assert_closed(world, place);
    }
}

/// Everything that does not hold.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let recorded = recorded(evidence);
    let mut found = Vec::new();
    found.extend(unknown_objects(evidence, &recorded));
    found.extend(missing_objects(evidence, &recorded));
    found.extend(documents(evidence, &recorded));
    found.extend(foreign_touched(evidence));
    found.extend(forgotten(evidence));
    found.extend(secrets_seen(evidence));
    found.extend(evidence.locked.iter().cloned().map(Violation::LockedOut));
    found.extend(evidence.late_writes.iter().cloned().map(Violation::WroteAtRest));
    found
}

/// What one state says is ours.
struct StateRecord {
    route: String,
    hostname: String,
    ids: Value,
}

fn recorded(evidence: &Evidence) -> Vec<StateRecord> {
    records_in(&evidence.config_maps)
}

fn records_in(config_maps: &[Value]) -> Vec<StateRecord> {
    let states = config_maps.iter().filter(|one| is_state(one));
    states
        .map(|state| {
            let data = &state["data"];
            let text = |field: &str| data[field].as_str().unwrap_or_default().to_owned();
            StateRecord {
                route: format!("{}/{}", text("httproute_namespace"), text("httproute_name")),
                hostname: text("hostname"),
                ids: serde_json::from_str(&text("cloudflare_ids")).unwrap_or_default(),
            }
        })
        .collect()
}

/// Collections of which a state records ids, and under which keys.
const RECORDED: [(&str, &[&str]); 4] = [
    ("dns_records", &["cnameRecordId", "dnsRecordId"]),
    ("access_apps", &["accessAppId"]),
    ("access_policies", &["accessPolicyIds", "reusablePolicyIds"]),
    ("service_tokens", &["serviceTokenId"]),
];

fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => {
            text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
        }
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}

fn ids_in(recorded: &[StateRecord], keys: &[&str]) -> BTreeSet<String> {
    recorded.iter().flat_map(|one| keys.iter().flat_map(|key| texts_of(&one.ids[*key]))).collect()
}

fn is_seeded(evidence: &Evidence, collection: &str, object: &Value) -> bool {
    let same = |one: &Value| one["id"] == object["id"];
    live(&evidence.seeded, collection).iter().any(same)
        || evidence.foreign.iter().any(|(place, one)| place == collection && same(one))
}

fn unknown_objects(evidence: &Evidence, recorded: &[StateRecord]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (collection, keys) in RECORDED {
        let known = ids_in(recorded, keys);
        for object in live(&evidence.state, collection) {
            let id = object["id"].as_str().unwrap_or_default();
            if !known.contains(id) && !is_seeded(evidence, collection, &object) {
                let name = object["name"].as_str().unwrap_or_default();
                found.push(Violation::LeftBehind(format!("{collection} {name} ({id})")));
            }
        }
    }
    found
}

fn missing_objects(evidence: &Evidence, recorded: &[StateRecord]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (collection, key) in [
        ("dns_records", "cnameRecordId"),
        ("dns_records", "dnsRecordId"),
        ("access_apps", "accessAppId"),
        ("service_tokens", "serviceTokenId"),
    ] {
        let there: BTreeSet<String> =
            live(&evidence.state, collection).iter().filter_map(|one| one["id"].as_str()).map(str::to_owned).collect();
        for record in recorded {
            let gone = texts_of(&record.ids[key]).into_iter().filter(|id| !there.contains(id));
            found.extend(gone.map(|id| Violation::Missing(format!("{key} {id} of {}", record.route))));
        }
    }
    found
}

/// Rules that are neither seeded nor recorded, rules that stand twice, and everything else that differs.
fn documents(evidence: &Evidence, recorded: &[StateRecord]) -> Vec<Violation> {
    let mut found = Vec::new();
    let ours: BTreeSet<&str> = recorded.iter().map(|one| one.hostname.as_str()).collect();
    for (tunnel, document) in evidence.state["configurations"].as_object().into_iter().flatten() {
        let seeded = &evidence.seeded["configurations"][tunnel]["config"];
        let mut rest = document["config"].clone();
        let seeded_rules = seeded["ingress"].as_array().cloned().unwrap_or_default();
        let mut seen = BTreeSet::new();
        if let Some(rules) = rest["ingress"].as_array_mut() {
            for rule in rules.iter().filter(|rule| rule["path"].is_null()) {
                let hostname = rule["hostname"].as_str().unwrap_or_default();
                if !hostname.is_empty() && !seen.insert(hostname.to_owned()) {
                    found.push(Violation::Duplicate(format!("two rules for {hostname}")));
                }
            }
            rules.retain(|rule| {
                let hostname = rule["hostname"].as_str().unwrap_or_default();
                seeded_rules.contains(rule) || !ours.contains(hostname)
            });
        }
        if rest != *seeded && !(seeded.is_null() && is_empty_document(&rest)) {
            found.push(Violation::ForeignTouched(format!("the rest of tunnel {tunnel} is {rest}, was {seeded}")));
        }
    }
    found
}

/// What we leave of a document that nobody had written.
fn is_empty_document(config: &Value) -> bool {
    config["ingress"] == json!([{ "service": "http_status:404" }]) || config.is_null()
}

fn foreign_touched(evidence: &Evidence) -> Vec<Violation> {
    let seeded = ["dns_records", "access_apps", "access_policies", "access_groups", "service_tokens"].iter().flat_map(
        |collection| live(&evidence.seeded, collection).into_iter().map(|one| ((*collection).to_owned(), one)),
    );
    let mut found = Vec::new();
    for (collection, planted) in seeded.chain(evidence.foreign.iter().cloned()) {
        let now = live(&evidence.state, &collection).into_iter().find(|object| object["id"] == planted["id"]);
        match now {
            None => found.push(Violation::ForeignTouched(format!("{collection} {} is gone", planted["id"]))),
            Some(now) if steady(&now) != steady(&planted) => {
                found.push(Violation::ForeignTouched(format!("{collection} {planted} became {now}")));
            }
            Some(_) => {}
        }
    }
    found
}

fn forgotten(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    let routes: BTreeSet<String> = evidence
        .routes
        .iter()
        .map(|one| {
            format!(
                "{}/{}",
                one["metadata"]["namespace"].as_str().unwrap_or_default(),
                one["metadata"]["name"].as_str().unwrap_or_default()
            )
        })
        .collect();
    for record in recorded(evidence) {
        if !routes.contains(&record.route) {
            found.push(Violation::Forgotten(format!("the state of {}, which is gone", record.route)));
        }
    }
    for task in evidence.tasks.iter().filter(|task| task["status"]["phase"] == "Completed") {
        found.push(Violation::Forgotten(format!("the result of {}", id(task))));
    }
    found
}

fn secrets_seen(evidence: &Evidence) -> Vec<Violation> {
    let hidden: Vec<&str> = evidence.told.iter().map(String::as_str).chain([CANARY, SOMEBODY]).collect();
    let mut places: Vec<(String, String)> = evidence.texts.clone();
    places.push(("the simulator's state".to_owned(), evidence.state.to_string()));
    for secret in &evidence.secrets {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        if !name.ends_with("-cfzt-service-token") && !name.starts_with("cfzt-svctoken-") {
            let decoded: String =
                secret["data"].as_object().into_iter().flatten().map(|(_, value)| decoded(value)).collect();
            // Users keep the API token themselves.
            places.push((format!("Secret {name}"), decoded.replace(CANARY, "").replace(SOMEBODY, "")));
        }
    }
    let holds = |text: &String| hidden.iter().any(|secret| text.contains(secret));
    places.into_iter().filter(|(_, text)| holds(text)).map(|(place, _)| Violation::SecretSeen(place)).collect()
}

fn decoded(value: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap_or_default());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
