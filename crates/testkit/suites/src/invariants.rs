//! What must hold whatever happened, checked on the simulator's state and log and on the cluster's objects.

mod wanted;

use std::collections::BTreeMap;
use std::fmt;

use portolan_cloudflare_sim::RecordedRequest;
use portolan_core::{Claim, Mark, ObjectKey, OwnerId};
use serde_json::{Value, json};

use crate::cloudflare::live;
use crate::cluster::ready_of;
use crate::manifests::{CANARY, id};
use crate::world::World;

/// Where marks stand, and which kind puts them there.
const MARKED: [(&str, &str); 3] =
    [("dns_records", "DNSRecord"), ("virtual_networks", "VirtualNetwork"), ("routes", "NetworkRoute")];

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The simulator's requests, one recorded line each.
    pub log: Vec<Value>,
    /// The simulator's objects.
    pub state: Value,
    /// All objects of the job in the cluster.
    pub objects: Vec<Value>,
    /// Objects that somebody else has at Cloudflare, as they were made: collection and object.
    pub foreign: Vec<(String, Value)>,
    /// Texts that may stand nowhere.
    pub secrets: Vec<String>,
    /// Other texts in which they may not stand: logs, metrics, events.
    pub texts: Vec<String>,
    /// Whose marks are ours.
    pub owner: OwnerId,
    /// Writes that were made after everything was as wanted.
    pub late_writes: Vec<String>,
}

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two objects stand for the same one.
    Duplicate(String),
    /// Something of somebody else was changed or is gone.
    ForeignTouched(String),
    /// A secret stands where it may not.
    SecretSeen(String),
    /// An object with our mark stands for nothing.
    LeftBehind(String),
    /// An object says it is ready, and what it wants is not there.
    NotAsWanted(String),
    /// A world at rest was written to.
    WroteAtRest(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(what) => write!(f, "two objects stand for one: {what}"),
            Self::ForeignTouched(what) => write!(f, "something foreign was touched: {what}"),
            Self::SecretSeen(place) => write!(f, "a secret stands in {place}"),
            Self::LeftBehind(what) => write!(f, "an object of ours stands for nothing: {what}"),
            Self::NotAsWanted(what) => write!(f, "ready, but not as wanted: {what}"),
            Self::WroteAtRest(what) => write!(f, "written at rest: {what}"),
        }
    }
}

/// Everything that does not hold.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    found.extend(duplicates(evidence));
    found.extend(foreign_touched(evidence));
    found.extend(secrets_seen(evidence));
    found.extend(left_behind(evidence));
    found.extend(not_as_wanted(evidence));
    found.extend(evidence.late_writes.iter().cloned().map(Violation::WroteAtRest));
    found
}

impl Evidence {
    /// What the invariants are checked on: one more pass over everything, which must write nothing, and all there is.
    pub async fn of(world: &World) -> Self {
        let late_writes = world.late_writes().await;
        let mut objects = Vec::new();
        for kind in world.job().kinds() {
            objects.extend(world.cluster.list(kind).await);
        }
        let events = world.cluster.list("Event").await;
        let texts = events.iter().map(Value::to_string).chain(world.plans()).chain([world.metrics().await]);
        Self {
            log: world.cloudflare.simulator.requests().iter().map(RecordedRequest::to_json).collect(),
            state: world.cloudflare.simulator.state(),
            objects,
            foreign: world.cloudflare.foreign(),
            secrets: vec![CANARY.to_owned()],
            texts: texts.collect(),
            owner: world.owner().clone(),
            late_writes,
        }
    }
}

/// What a run is compared by: everything live at Cloudflare, and what the users see.
pub(crate) async fn canonical_form(world: &World) -> Value {
    let mut all = crate::cloudflare::canonical_form(&world.cloudflare.simulator.state());
    for kind in world.job().kinds() {
        let mut objects: Vec<String> =
            world.cluster.list(kind).await.iter().map(|one| crate::cluster::essence(one).to_string()).collect();
        objects.sort();
        all[kind] = json!(objects);
    }
    all
}

/// What does not hold in a world that is at rest; one more pass over everything must write nothing.
pub async fn found(world: &World) -> Vec<String> {
    check(&Evidence::of(world).await).iter().map(ToString::to_string).collect()
}

/// Panics where something does not hold.
pub async fn assert_all(world: &World, place: &str) {
    let found = found(world).await;
    assert!(found.is_empty(), "{place}: {}", found.join("; "));
}

fn mark(object: &Value, owner: &OwnerId) -> Mark {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    let key = ObjectKey { namespace: meta["namespace"].as_str().map(str::to_owned), name: text(&meta["name"]) };
    Mark { kind: text(&object["kind"]), key, owner: owner.clone(), adopted: false }
}

fn comment(object: &Value) -> &str {
    object["comment"].as_str().unwrap_or_default()
}

/// The part of a comment that names the owner: `DNSRecord/apps/www#1a2b3c4d`.
fn marked_by(comment: &str) -> Option<&str> {
    let inside = comment.strip_prefix("[managed:")?.split_once(']')?.0;
    Some(inside.strip_suffix("+adopted").unwrap_or(inside))
}

fn ours<'a>(evidence: &'a Evidence, object: &Value) -> Option<&'a Value> {
    evidence
        .objects
        .iter()
        .find(|candidate| matches!(mark(candidate, &evidence.owner).claim(comment(object)), Claim::Ours { .. }))
}

fn duplicates(evidence: &Evidence) -> Vec<Violation> {
    let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (collection, _) in MARKED {
        for object in live(&evidence.state, collection) {
            let Some(owner) = marked_by(comment(&object)) else { continue };
            // Kinds with several objects for one are told apart by what they contain.
            let several = ours(evidence, &object).is_some_and(|one| one["spec"]["addressSelection"] == "All");
            let content = if several { object["content"].to_string() } else { String::new() };
            *counted.entry((collection.to_owned(), format!("{owner} {content}"))).or_default() += 1;
        }
    }
    let doubled = counted.into_iter().filter(|(_, count)| *count > 1);
    doubled
        .map(|((collection, owner), count)| Violation::Duplicate(format!("{count} in {collection} of {owner}")))
        .collect()
}

fn foreign_touched(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    for (collection, planted) in &evidence.foreign {
        let now = live(&evidence.state, collection).into_iter().find(|object| object["id"] == planted["id"]);
        match now {
            None => found.push(Violation::ForeignTouched(format!("{collection} {} is gone", planted["id"]))),
            Some(now) if now != *planted => {
                found.push(Violation::ForeignTouched(format!("{collection} {planted} became {now}")));
            }
            Some(_) => {}
        }
        found.extend(writes_to(evidence, planted["id"].as_str().unwrap_or_default()));
    }
    found
}

/// Writes that name an id and were not refused, whether or not they changed anything.
fn writes_to<'a>(evidence: &'a Evidence, id: &'a str) -> impl Iterator<Item = Violation> + 'a {
    let names = move |line: &&Value| {
        let writes = line["method"] != "GET" && !matches!(line["status"].as_u64(), Some(400..));
        let path = line["path"].as_str().is_some_and(|path| path.ends_with(id));
        let batched = ["deletes", "patches", "puts"]
            .iter()
            .any(|verb| line["body"][*verb].as_array().is_some_and(|all| all.iter().any(|one| one["id"] == id)));
        writes && (path || batched)
    };
    evidence
        .log
        .iter()
        .filter(names)
        .map(|line| Violation::ForeignTouched(format!("{} {}", line["method"], line["path"])))
}

fn secrets_seen(evidence: &Evidence) -> Vec<Violation> {
    let log = evidence.log.iter().map(|line| (format!("the log: {}", line["path"]), line.to_string()));
    let objects = evidence.objects.iter().map(|object| (id(object), object.to_string()));
    let state = [("the simulator's state".to_owned(), evidence.state.to_string())];
    let texts = evidence.texts.iter().map(|text| ("a text".to_owned(), text.clone()));
    let places: Vec<(String, String)> = log.chain(objects).chain(state).chain(texts).collect();
    let holds = |text: &String| evidence.secrets.iter().any(|secret| text.contains(secret.as_str()));
    places.into_iter().filter(|(_, text)| holds(text)).map(|(place, _)| Violation::SecretSeen(place)).collect()
}

fn left_behind(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    for (collection, _) in MARKED {
        for object in live(&evidence.state, collection) {
            let own = marked_by(comment(&object)).is_some_and(|by| by.ends_with(&format!("#{}", evidence.owner)));
            if own && ours(evidence, &object).is_none() {
                found.push(Violation::LeftBehind(format!("{collection} {}", comment(&object))));
            }
        }
    }
    found
}

fn not_as_wanted(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    for (collection, kind) in MARKED {
        let there = live(&evidence.state, collection);
        let ready = |object: &&Value| object["kind"] == kind && ready_of(object) == "True/Synced";
        for object in evidence.objects.iter().filter(ready) {
            let mark = mark(object, &evidence.owner);
            let mine: Vec<&Value> =
                there.iter().filter(|one| matches!(mark.claim(comment(one)), Claim::Ours { .. })).collect();
            if mine.is_empty() {
                found.push(Violation::NotAsWanted(format!("{} has nothing in {collection}", id(object))));
            }
            let differing =
                mine.iter().flat_map(|one| wanted::differences(object, one, &evidence.objects, &evidence.state));
            found.extend(differing.map(|difference| Violation::NotAsWanted(format!("{}: {difference}", id(object)))));
        }
    }
    found
}

#[cfg(test)]
mod tests;
