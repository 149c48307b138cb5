//! Random histories: users edit, somebody clicks in the dashboard, Cloudflare fails, the operator is killed; then all is
//! calm, and everything must be as the users last said. The same seed gives the same history.

mod users;

use std::time::Duration;

use portolan_cloudflare_sim::{Count, Effect, Fault, Grant};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::cluster::ready_of;
use crate::invariants;
use crate::manifests::{self as m, ZONE};
use crate::world::World;
use users::Users;

/// A history has an hour to come to rest once nothing fails any more: so many drift passes, and time between them.
const PASSES: usize = 12;
const BETWEEN_PASSES: Duration = Duration::from_secs(300);
/// How many things happen in a history.
const EVENTS: usize = 14;

/// What a history was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryTally {
    /// Requests that Cloudflare got until all was calm.
    pub requests: usize,
    /// Of those, how many went wrong.
    pub failed: usize,
    /// How often the operator was killed.
    pub crashes: usize,
    /// What happened, in order; the same seed gives the same.
    pub events: Vec<String>,
}

/// Lives through the history of a seed. Panics where something does not hold at its end.
pub async fn live(seed: u64) -> HistoryTally {
    let mut history = History::begin(seed).await;
    for _ in 0..EVENTS {
        history.something_happens().await;
    }
    history.calm_down().await;
    history.told
}

struct History {
    world: World,
    random: StdRng,
    token: String,
    users: Users,
    told: HistoryTally,
}

impl History {
    async fn begin(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let latency = Duration::from_millis(random.random_range(0..300));
        let world = crate::cloudflare_world().seed(seed).latency(latency).start().await;
        for n in 0..3 {
            world.cloudflare.plant_foreign("dns_records", &json!({
                "type": "A", "name": format!("theirs{n}.{ZONE}"), "content": "203.0.113.7", "ttl": 1, "comment": "by hand",
            }));
        }
        // One name that users will want too, and one that another operator has.
        world.cloudflare.plant_foreign(
            "dns_records",
            &json!({
                "type": "A", "name": format!("taken.{ZONE}"), "content": "203.0.113.8", "ttl": 1,
            }),
        );
        world.cloudflare.plant_foreign(
            "dns_records",
            &json!({
                "type": "A", "name": format!("marked.{ZONE}"), "content": "203.0.113.9", "ttl": 1,
                "comment": "[managed:DNSRecord/elsewhere/marked]",
            }),
        );
        misfortune(&world);
        Self { world, random, token: m::CANARY.to_owned(), users: Users::default(), told: HistoryTally::default() }
    }

    fn tell(&mut self, event: String) {
        self.told.events.push(event);
    }

    async fn something_happens(&mut self) {
        match self.random.random_range(0..100) {
            0..40 => self.user_applies().await,
            40..52 => self.user_deletes().await,
            52..62 => self.dashboard_edits(),
            62..69 => self.dashboard_deletes(),
            69..79 => self.operator_dies().await,
            79..86 => self.drift_is_looked_for().await,
            86..90 => self.token_is_rotated().await,
            _ => self.time_passes().await,
        }
        // Often the next thing happens while the operator is still at work.
        let pause = Duration::from_millis(*[0, 0, 30, 400, 5_000].choose(&mut self.random).unwrap_or(&0));
        tokio::time::sleep(pause).await;
    }

    async fn user_applies(&mut self) {
        let manifest = any_manifest(&mut self.random);
        self.tell(format!("apply {} {}", m::id(&manifest), manifest["spec"]));
        let answer = self.world.cluster.apply(&manifest).await;
        self.users.applied(&manifest, &answer);
    }

    async fn user_deletes(&mut self) {
        let id = m::id(&any_manifest(&mut self.random));
        self.tell(format!("delete {id}"));
        self.world.cluster.delete(&id).await;
        self.users.deleted(&id);
    }

    /// A random object of ours at Cloudflare.
    fn one_of_ours(&mut self) -> Option<(&'static str, Value)> {
        let collection = *["dns_records", "dns_records", "virtual_networks", "routes"].choose(&mut self.random)?;
        let owner = format!("#{}", self.world.owner());
        let all = self.world.cloudflare.marked(collection);
        let ours: Vec<Value> =
            all.into_iter().filter(|one| one["comment"].as_str().is_some_and(|text| text.contains(&owner))).collect();
        Some((collection, ours.choose(&mut self.random)?.clone()))
    }

    fn dashboard_edits(&mut self) {
        let Some((collection, object)) = self.one_of_ours() else { return };
        let id = object["id"].as_str().unwrap_or_default();
        self.tell(format!("somebody edits {collection} {}", object["comment"]));
        let choice = self.random.random_range(0..3);
        self.world.cloudflare.edit(collection, id, |there| match (collection, choice) {
            ("dns_records", 0..2) => edit_value(there, choice),
            ("virtual_networks", 0..2) => there["name"] = json!("renamed-by-hand"),
            _ => {
                let kept = there["comment"].as_str().unwrap_or_default().to_owned();
                there["comment"] = json!(format!("{kept} by hand"));
            }
        });
    }

    fn dashboard_deletes(&mut self) {
        let Some((collection, object)) = self.one_of_ours() else { return };
        // The API lets nobody delete a network that routes lie in.
        if collection == "virtual_networks" {
            return;
        }
        self.tell(format!("somebody deletes {collection} {}", object["comment"]));
        self.world.cloudflare.remove(collection, object["id"].as_str().unwrap_or_default());
    }

    async fn operator_dies(&mut self) {
        let after = Duration::from_millis(self.random.random_range(0..20_000));
        self.tell(format!("the operator dies and comes back after {after:?}"));
        self.told.crashes += 1;
        self.world.crash().await;
        tokio::time::sleep(after).await;
        self.world.restart().await;
    }

    async fn drift_is_looked_for(&mut self) {
        self.tell("drift is looked for".to_owned());
        // A pass may hang on a silent API; what follows does not wait for it for ever.
        let _ = tokio::time::timeout(Duration::from_secs(20), self.world.drift_pass()).await;
    }

    async fn token_is_rotated(&mut self) {
        let number: u32 = self.random.random();
        self.tell("the token is rotated".to_owned());
        let (simulator, token) = (&self.world.cloudflare.simulator, format!("canary-token-{number}"));
        simulator.add_token(&token, Grant::all());
        let secret = m::token_secret(m::OPERATOR_NAMESPACE, "cloudflare-api", &token);
        self.world.cluster.apply(&secret).await;
        tokio::time::sleep(Duration::from_millis(self.random.random_range(0..5_000))).await;
        simulator.revoke_token(&self.token);
        self.token = token;
    }

    async fn time_passes(&mut self) {
        let time = Duration::from_secs(self.random.random_range(1..90));
        self.tell(format!("{time:?} pass"));
        tokio::time::sleep(time).await;
    }

    async fn calm_down(&mut self) {
        self.world.cloudflare.simulator.clear_faults();
        let world = &self.world;
        let requests = world.cloudflare.simulator.requests();
        self.told.requests = requests.len();
        self.told.failed = requests.iter().filter(|request| !(200..300).contains(&request.status)).count();
        // As in real life, drift is looked for from time to time.
        for _ in 0..PASSES {
            world.drift_pass().await;
            world.settle().await;
            let finished = async |world: &World| unfinished(world).await.is_empty();
            if world.holds_within(BETWEEN_PASSES, finished).await {
                break;
            }
        }
        let rest = unfinished(world).await;
        assert!(rest.is_empty(), "not as wanted after an hour of calm: {rest:#?}\n{}", self.whole_story());
        let contradictions = self.users.contradictions(&owned(world).await);
        assert!(contradictions.is_empty(), "{contradictions:#?}\n{}", self.whole_story());
        world.drift_pass().await;
        world.settle().await;
        invariants::assert_all(world, "at the end of the history").await;
    }
}

impl History {
    /// What happened, and what stands at Cloudflare now.
    fn whole_story(&self) -> String {
        let state = crate::cloudflare::essentials(&self.world.cloudflare.simulator.state());
        format!("{:#?}\n{state:#}\n{:#?}", self.told.events, self.world.cloudflare.take_requests())
    }
}

/// Three of ten requests go wrong before they have their effect, and a sixth of all writes after it.
fn misfortune(world: &World) {
    let before = [
        Fault::on("", "", Effect::status(429)).retry_after(Duration::from_secs(2)),
        Fault::on("", "", Effect::status(500)),
        Fault::on("", "", Effect::status(502)),
        Fault::on("", "", Effect::Timeout),
        Fault::on("", "", Effect::Reset),
        Fault::on("", "", Effect::Refused),
    ];
    let after =
        [Effect::status(500), Effect::Timeout, Effect::Reset].map(|effect| Fault::on("", "", effect).after_write());
    for fault in before.into_iter().chain(after) {
        world.cloudflare.fault(fault.count(Count::Probability(0.06)));
    }
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
