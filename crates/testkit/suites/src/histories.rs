//! Random histories of the cloudflare job: users apply and delete networks, routes and records, somebody clicks in the
//! dashboard, Cloudflare fails, the operator is killed; in the end everything is as the users last said.

mod users;

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use crate::cluster::ready_of;
use crate::history::{History, HistoryEvent, HistoryJob, misfortune};
use crate::invariants;
use crate::manifests::{self as m, ZONE};
use crate::world::World;
use users::Users;

/// What is the cloudflare job's own of a history: what its users said.
#[derive(Clone, Debug, Default)]
pub struct CloudflareHistory {
    users: Users,
}

/// What happens in these histories alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudflareDeed {
    /// A user applies an object.
    Applies,
    /// A user deletes one.
    Deletes,
    /// Somebody edits one of ours in the dashboard.
    DashboardEdits,
    /// Somebody deletes one of ours there.
    DashboardDeletes,
}

impl HistoryJob for CloudflareHistory {
    type Deed = CloudflareDeed;

    const CHANCES: &'static [(u32, HistoryEvent<CloudflareDeed>)] = &[
        (40, HistoryEvent::Own(CloudflareDeed::Applies)),
        (12, HistoryEvent::Own(CloudflareDeed::Deletes)),
        (10, HistoryEvent::Own(CloudflareDeed::DashboardEdits)),
        (7, HistoryEvent::Own(CloudflareDeed::DashboardDeletes)),
        (10, HistoryEvent::OperatorDies),
        (7, HistoryEvent::DriftPass),
        (4, HistoryEvent::TokenRotated),
        (10, HistoryEvent::TimePasses(90)),
    ];
    const EVENTS: usize = 14;
    const PASSES: usize = 12;

    async fn begin(seed: u64, random: &mut StdRng) -> (World, Self) {
        let latency = Duration::from_millis(random.random_range(0..300));
        let world = crate::cloudflare_world().seed(seed).latency(latency).start().await;
        for record in records_of_others() {
            world.cloudflare.plant_foreign("dns_records", &record);
        }
        misfortune(&world);
        (world, Self::default())
    }

    fn token_secret(token: &str) -> Value {
        m::token_secret(m::OPERATOR_NAMESPACE, "cloudflare-api", token)
    }

    async fn happens(&mut self, history: &mut History, deed: CloudflareDeed) {
        match deed {
            CloudflareDeed::Applies => self.user_applies(history).await,
            CloudflareDeed::Deletes => self.user_deletes(history).await,
            CloudflareDeed::DashboardEdits => dashboard_edits(history),
            CloudflareDeed::DashboardDeletes => dashboard_deletes(history),
        }
    }

    async fn unfinished(&self, world: &World) -> Vec<String> {
        unfinished(world).await
    }

    async fn unsound(&mut self, history: &mut History) -> Vec<String> {
        let world = &history.world;
        let mut found = self.users.contradictions(&owned(world).await);
        world.drift_pass().await;
        world.settle().await;
        found.extend(invariants::found(world).await);
        found
    }

    async fn story(&self, world: &World) -> String {
        let state = crate::cloudflare::canonical_form(&world.cloudflare.simulator.state());
        format!("{state:#}\n{:#?}", world.cloudflare.take_requests())
    }
}

/// Three of other names, one that users will want too, and one that another operator has.
fn records_of_others() -> Vec<Value> {
    let record = |name: &str, address: &str| json!({ "type": "A", "name": format!("{name}.{ZONE}"), "content": address, "ttl": 1 });
    let noted = |mut record: Value, comment: &str| {
        record["comment"] = json!(comment);
        record
    };
    let theirs = (0..3).map(|n| noted(record(&format!("theirs{n}"), "203.0.113.7"), "by hand"));
    let marked = noted(record("marked", "203.0.113.9"), "[managed:DNSRecord/elsewhere/marked]");
    theirs.chain([record("taken", "203.0.113.8"), marked]).collect()
}

impl CloudflareHistory {
    async fn user_applies(&mut self, history: &mut History) {
        let manifest = any_manifest(&mut history.random);
        history.tell(format!("apply {} {}", m::id(&manifest), manifest["spec"]));
        let answer = history.world.cluster.apply(&manifest).await;
        self.users.applied(&manifest, &answer);
    }

    async fn user_deletes(&mut self, history: &mut History) {
        let id = m::id(&any_manifest(&mut history.random));
        history.tell(format!("delete {id}"));
        history.world.cluster.delete(&id).await;
        self.users.deleted(&id);
    }
}

/// A random object of ours at Cloudflare.
fn one_of_ours(history: &mut History) -> Option<(&'static str, Value)> {
    let collection = *["dns_records", "dns_records", "virtual_networks", "routes"].choose(&mut history.random)?;
    let owner = format!("#{}", history.world.owner());
    let all = history.world.cloudflare.marked(collection);
    let ours: Vec<Value> =
        all.into_iter().filter(|one| one["comment"].as_str().is_some_and(|text| text.contains(&owner))).collect();
    Some((collection, ours.choose(&mut history.random)?.clone()))
}

fn dashboard_edits(history: &mut History) {
    let Some((collection, object)) = one_of_ours(history) else { return };
    let id = object["id"].as_str().unwrap_or_default();
    history.tell(format!("somebody edits {collection} {}", object["comment"]));
    let choice = history.random.random_range(0..3);
    history.world.cloudflare.edit(collection, id, |there| match (collection, choice) {
        ("dns_records", 0..2) => edit_value(there, choice),
        ("virtual_networks", 0..2) => there["name"] = json!("renamed-by-hand"),
        _ => {
            let kept = there["comment"].as_str().unwrap_or_default().to_owned();
            there["comment"] = json!(format!("{kept} by hand"));
        }
    });
}

fn dashboard_deletes(history: &mut History) {
    let Some((collection, object)) = one_of_ours(history) else { return };
    // The API lets nobody delete a network that routes lie in.
    if collection == "virtual_networks" {
        return;
    }
    history.tell(format!("somebody deletes {collection} {}", object["comment"]));
    history.world.cloudflare.remove(collection, object["id"].as_str().unwrap_or_default());
}

/// An object out of a small world of names, so that histories meet.
fn any_manifest(random: &mut StdRng) -> Value {
    let address = format!("192.0.2.{}", random.random_range(1..5));
    match random.random_range(0..10) {
        0 => m::record("taken", &address),
        1 => m::record("marked", &address),
        2..7 => any_record(random, &address),
        7 => m::with(m::network(&format!("net{}", random.random_range(0..2))), "comment", any_comment(random)),
        _ => any_route(random),
    }
}

fn any_record(random: &mut StdRng, address: &str) -> Value {
    let number = random.random_range(0..4);
    let renamed = if random.random_bool(0.2) { "-renamed" } else { "" };
    let mut spec = any_value(random, &format!("r{number}{renamed}.{ZONE}"), address);
    spec["ttl"] = json!([1, 120, 300].choose(random).copied().unwrap_or(1));
    spec["comment"] = any_comment(random);
    spec["cloudflare"] = json!({});
    m::object("DNSRecord", &format!("r{number}"), spec)
}

/// A record of one of four types.
fn any_value(random: &mut StdRng, name: &str, address: &str) -> Value {
    let number = random.random_range(0..3);
    match random.random_range(0..10) {
        0..2 => json!({ "name": name, "type": "TXT", "content": format!("text \"{address}\"") }),
        2 => json!({ "name": name, "type": "MX", "content": "mx.example.net", "priority": number }),
        3 => json!({
            "name": format!("_sip._tcp.{name}"), "type": "SRV", "priority": number,
            "data": { "weight": 0, "port": 5060 + number, "target": "sip.example.net" },
        }),
        _ => json!({ "name": name, "type": "A", "content": address, "proxied": random.random_bool(0.5) }),
    }
}

/// Somebody changes the value of a record, or what goes with it.
fn edit_value(record: &mut Value, choice: u32) {
    match record["type"].as_str() {
        Some("SRV") => record["data"]["port"] = json!(99),
        Some("MX") if choice == 0 => record["priority"] = json!(7),
        _ if choice == 0 && record["proxied"] != true => record["ttl"] = json!(3600),
        _ => record["content"] = json!("198.51.100.77"),
    }
}

fn any_route(random: &mut StdRng) -> Value {
    let number = random.random_range(0..3);
    let mut route = m::route(&format!("route{number}"), &format!("10.{number}.{}.0/24", random.random_range(0..3)));
    if random.random_bool(0.4) {
        route["spec"]["virtualNetworkRef"] = json!({ "name": format!("net{}", random.random_range(0..2)) });
    }
    m::with(route, "comment", any_comment(random))
}

fn any_comment(random: &mut StdRng) -> Value {
    json!(["", "ours", "a longer comment"].choose(random).copied().unwrap_or_default())
}

/// Everything in the cluster that owns something at Cloudflare.
async fn owned(world: &World) -> Vec<Value> {
    let mut all = Vec::new();
    for kind in ["VirtualNetwork", "NetworkRoute", "DNSRecord"] {
        all.extend(world.cluster.list(kind).await);
    }
    all
}

/// Objects that are not as they should be in the end, with what they say.
async fn unfinished(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    let all = owned(world).await;
    for object in &all {
        let ready = ready_of(object);
        let going = !object["metadata"]["deletionTimestamp"].is_null();
        let as_expected = if going { is_held_by(object, &all) } else { ready == expected(object, &all) };
        if !as_expected {
            found.push(format!("{} is {ready}: {}", m::id(object), world.cluster.message(&m::id(object)).await));
        }
    }
    found
}

/// A network cannot go while routes lie in it.
fn is_held_by(network: &Value, all: &[Value]) -> bool {
    let id = &network["status"]["virtualNetworkId"];
    let lies_in = |one: &Value| one["kind"] == "NetworkRoute" && one["status"]["virtualNetworkId"] == *id;
    network["kind"] == "VirtualNetwork" && ready_of(network) == "False/DependencyError" && all.iter().any(lies_in)
}

fn expected(object: &Value, all: &[Value]) -> &'static str {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let network = &object["spec"]["virtualNetworkRef"]["name"];
    if matches!(name, "taken" | "marked") {
        return "False/ConflictError";
    }
    let is_there = |one: &Value| one["kind"] == "VirtualNetwork" && one["metadata"]["name"] == *network;
    if !network.is_null() && !all.iter().any(is_there) {
        return "False/DependencyError";
    }
    "True/Synced"
}
