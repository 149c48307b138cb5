//! The simulator as tests look at it: objects by collection, requests as short texts, changes behind the API's back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_cloudflare_sim::{Fault, RecordedRequest, Simulator};
use serde_json::{Value, json};

use crate::hooks::Hooks;
use crate::job::WorldJob;
use crate::transport::SharedTransport;

/// The API's side of a world.
pub struct Cloudflare {
    /// The simulator itself.
    pub simulator: Simulator,
    /// Who looks on while the operator asks.
    pub hooks: Hooks,
    job: &'static WorldJob,
    told: Arc<Mutex<BTreeSet<String>>>,
    seeded: Mutex<Value>,
    foreign: Mutex<Vec<(String, Value)>>,
}

impl Cloudflare {
    pub(crate) fn new(line: &SharedTransport, job: &'static WorldJob) -> Self {
        let (simulator, hooks, told) = (line.simulator.clone(), line.hooks.clone(), line.told.clone());
        Self { simulator, hooks, job, told, seeded: Mutex::default(), foreign: Mutex::default() }
    }

    /// Keeps what stands now as what was there before the operator came.
    pub fn keep_seeded(&self) {
        *self.seeded.lock().unwrap_or_else(PoisonError::into_inner) = self.simulator.state();
    }

    /// What was there before the operator came.
    pub fn seeded(&self) -> Value {
        self.seeded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One-time secrets that the API ever answered with.
    pub fn told_secrets(&self) -> Vec<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// All live objects of a collection, over all accounts and zones.
    pub fn all(&self, collection: &str) -> Vec<Value> {
        live(&self.simulator.state(), collection)
    }

    /// All live objects that carry a mark.
    pub fn marked(&self, collection: &str) -> Vec<Value> {
        let marked = |object: &Value| object["comment"].as_str().is_some_and(|comment| comment.contains("[managed"));
        self.all(collection).into_iter().filter(marked).collect()
    }

    /// The one live object that fits.
    pub fn one(&self, collection: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut found: Vec<Value> = self.all(collection).into_iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "one object of {collection} fits: {found:#?}");
        found.remove(0)
    }

    /// Writes since the last time, shortest first glance: `POST dns_records A www.example.com`.
    pub fn take_writes(&self) -> Vec<String> {
        let requests = self.simulator.take_requests();
        requests.iter().filter(|request| request.is_write()).map(shown).collect()
    }

    /// All requests since the last time, in the same form.
    pub fn take_requests(&self) -> Vec<String> {
        self.simulator.take_requests().iter().map(shown).collect()
    }

    /// Plans a fault.
    pub fn fault(&self, fault: Fault) {
        self.simulator.fault(fault);
    }

    /// Makes an object as somebody else would; returns its id.
    pub fn plant(&self, collection: &str, object: &Value) -> String {
        let scope = if collection == "dns_records" { self.job.zone } else { self.job.account };
        self.simulator.put(collection, scope, object.clone()).expect("the simulator takes the object")
    }

    /// Makes an object of somebody else in an account or zone, which must stay as it is; returns its id.
    pub fn plant_in(&self, collection: &str, scope: &str, object: &Value) -> String {
        let id = self.simulator.put(collection, scope, object.clone()).expect("the simulator takes the object");
        let made = self.simulator.object(collection, &id).expect("it was made just now");
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner).push((collection.to_owned(), made));
        id
    }

    /// Makes an object of somebody else, which must stay as it is; returns its id.
    pub fn plant_foreign(&self, collection: &str, object: &Value) -> String {
        let id = self.plant(collection, object);
        let made = self.simulator.object(collection, &id).expect("it was made just now");
        let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        foreign.push((collection.to_owned(), made));
        id
    }

    /// What somebody else has, as it was made.
    pub fn foreign(&self) -> Vec<(String, Value)> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes an object behind the API's back.
    pub fn edit(&self, collection: &str, id: &str, edit: impl FnOnce(&mut Value)) {
        assert!(self.simulator.edit(collection, id, edit), "{collection} has {id}");
    }

    /// Removes an object behind the API's back.
    pub fn remove(&self, collection: &str, id: &str) {
        assert!(self.simulator.remove(collection, id), "{collection} has {id}");
    }
}

/// Live objects of a collection in a dump of the simulator.
pub fn live(state: &Value, collection: &str) -> Vec<Value> {
    let all: Vec<Value> = match &state[collection] {
        Value::Array(objects) => objects.clone(),
        Value::Object(scopes) => scopes.values().filter_map(Value::as_array).flatten().cloned().collect(),
        _ => Vec::new(),
    };
    all.into_iter().filter(|object| object["deleted_at"].is_null()).collect()
}

/// A request as a short text: method, what, and for a batch how many of each.
pub fn shown(request: &RecordedRequest) -> String {
    let route = request.route();
    let parts: Vec<&str> = route.trim_matches('/').split('/').collect();
    let rest = match parts.as_slice() {
        ["accounts" | "zones", _, rest @ ..] if !rest.is_empty() => rest.join("/"),
        all => all.join("/"),
    };
    let status = if (200..300).contains(&request.status) { String::new() } else { format!(" → {}", request.status) };
    format!("{} {rest}{}{status}", request.method, details(&request.body))
}

fn details(body: &Value) -> String {
    let count = |verb: &str| body[verb].as_array().map_or(0, Vec::len);
    let verbs: Vec<String> = ["deletes", "patches", "puts", "posts"]
        .iter()
        .filter(|verb| count(verb) > 0)
        .map(|verb| format!("{} {verb}", count(verb)))
        .collect();
    if verbs.is_empty() { String::new() } else { format!(" ({})", verbs.join(", ")) }
}

/// How many objects the writes of a request touch: one, or as many as a batch holds.
pub fn operations(request: &RecordedRequest) -> usize {
    if !request.is_write() {
        return 0;
    }
    let batch: usize = ["deletes", "patches", "puts", "posts"]
        .iter()
        .map(|verb| request.body[*verb].as_array().map_or(0, Vec::len))
        .sum();
    batch.max(1)
}

/// An object without what differs between two runs that ended alike: ids, times, what the service derives.
pub fn essence(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        const DIFFERENT: [&str; 9] = [
            "id",
            "uid",
            "created_on",
            "modified_on",
            "created_at",
            "updated_at",
            "meta",
            "comment_modified_on",
            "tags_modified_on",
        ];
        for field in DIFFERENT {
            fields.remove(field);
        }
    }
    object
}

/// Everything live at Cloudflare that a world's end is compared by; ids of networks are replaced by their names.
pub fn canonical_form(state: &Value) -> Value {
    let networks = live(state, "virtual_networks");
    let mut all = json!({});
    for collection in
        ["dns_records", "virtual_networks", "routes", "cfd_tunnel", "access_groups", "gateway_configuration"]
    {
        let mut objects: Vec<String> =
            live(state, collection).iter().map(|one| named(&essence(one), &networks)).collect();
        objects.sort();
        all[collection] = json!(objects);
    }
    all
}

fn named(object: &Value, networks: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    networks
        .iter()
        .fold(object.to_string(), |shown, network| shown.replace(&text(&network["id"]), &text(&network["name"])))
}
