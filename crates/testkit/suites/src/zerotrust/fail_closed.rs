//! Fail closed, by the request log: a pure fold over recorded requests and their answers, with what users wished in
//! between. No instant may show a rule or a record of a name that must be protected without its application and policy.
//!
//! An answer that was lost leaves two possibilities; only what is certain counts, and reads make it certain again.

mod revived;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::revived::Revivals;
use super::wishes::{Duties, Exposed, KnownObject, NameWish, Sight};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Moment {
    /// Users wish something for a name.
    Wished(String, NameWish),
    /// A request and its answer, as they are recorded.
    Asked(Value),
    /// Somebody else changed something: everything as it stands now, as the simulator shows it.
    Changed(Value),
    /// Somebody else took a name's protection away, at that time.
    Forgiven(String, i64),
    /// Another cluster works on the same account, with this credential.
    Neighbour(String),
    /// The operator has nothing left to do.
    Rested,
}

/// What the fold tells.
#[derive(Clone, Debug, Default)]
pub struct FoldVerdict {
    /// Every instant at which a name stood open.
    pub exposed: Vec<Exposed>,
    /// Names whose rule stands at the end only because another cluster's stale write brought it back.
    pub revived: BTreeSet<String>,
}

/// Every instant at which a name stood open.
pub fn check(moments: impl IntoIterator<Item = Moment>) -> Vec<Exposed> {
    judge(moments).exposed
}

/// Goes through everything that happened.
pub fn judge(moments: impl IntoIterator<Item = Moment>) -> FoldVerdict {
    let (mut standing, mut duties, mut found) = (LoggedState::default(), Duties::default(), Vec::new());
    for moment in moments {
        match moment {
            Moment::Wished(hostname, wish) => duties.wish(&hostname, wish),
            Moment::Rested => duties.rest(|name| standing.sight(name, None)),
            Moment::Changed(state) => {
                let LoggedState { taken, revivals, .. } = standing;
                standing = LoggedState { taken, revivals, ..LoggedState::of(&state) };
            }
            Moment::Neighbour(credential) => standing.revivals.neighbour = Some(credential),
            Moment::Forgiven(hostname, at) => {
                duties.forgive(&hostname);
                standing.taken.insert(hostname, at);
            }
            Moment::Asked(line) => {
                standing.learn(&line);
                found.extend(standing.exposed(&mut duties, &line));
            }
        }
    }
    FoldVerdict { exposed: found, revived: standing.revivals.names() }
}

/// One thing that may or may not stand, for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thing {
    hostname: String,
    certain: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct App {
    hostname: String,
    policies: BTreeSet<String>,
}

/// What stands at Cloudflare, as far as the log tells.
#[derive(Clone, Debug, Default)]
struct LoggedState {
    /// Hostnames with a rule, for each tunnel: one set for each possible document.
    tunnels: BTreeMap<String, Vec<BTreeSet<String>>>,
    records: BTreeMap<String, Thing>,
    /// Each application, as it may be: several where an answer was lost; `None` where it may be gone.
    apps: BTreeMap<String, Vec<Option<App>>>,
    /// Applications that may have been made, though their answer was lost: account and hostname.
    lost: BTreeSet<(String, String)>,
    /// When somebody else took a name's application away.
    taken: BTreeMap<String, i64>,
    /// Names for which the last request put out a rule that was not there.
    added: BTreeSet<String>,
    revivals: Revivals,
}

/// Whoever looked at an application and then publishes its name has so long until an application that went in between
/// is no excuse any more: three requests that nobody answers, one after the other.
const GRACE_MS: i64 = 120_000;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn hostnames(config: &Value) -> BTreeSet<String> {
    let rules = config["ingress"].as_array().into_iter().flatten();
    // Rules with a path belong to others.
    rules
        .filter(|rule| rule["path"].is_null())
        .filter_map(|rule| rule["hostname"].as_str())
        .map(str::to_owned)
        .collect()
}

fn app_of(object: &Value) -> App {
    let policies = object["policies"].as_array().into_iter().flatten();
    let id = |policy: &Value| policy["id"].as_str().or(policy["name"].as_str()).unwrap_or("inline").to_owned();
    App { hostname: text(&object["domain"]), policies: policies.map(id).collect() }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Whether a list shows everything there is.
fn is_complete(line: &Value) -> bool {
    let pages = line["response"]["result_info"]["total_pages"].as_u64().unwrap_or(1);
    let filtered = line["query"]
        .as_object()
        .is_some_and(|all| all.keys().any(|name| !matches!(name.as_str(), "page" | "per_page")));
    pages <= 1 && !filtered
}

/// Whether a request wrote an application for a name, for certain.
fn writes_app(line: &Value, name: &str) -> bool {
    let path = line["path"].as_str().unwrap_or_default();
    matches!(line["method"].as_str(), Some("POST" | "PUT"))
        && path.contains("/access/apps")
        && outcome(line) == WriteOutcome::Done
        && (line["body"]["domain"] == name || path.contains("/policies"))
}

/// Whether a request makes a record for a name.
fn makes_record(line: &Value, name: &str) -> bool {
    let path = line["path"].as_str().unwrap_or_default();
    let body = &line["body"];
    match line["method"].as_str() {
        Some("POST") if path.ends_with("/dns_records") => body["name"] == name,
        Some("POST") if path.ends_with("/batch") => list(&body["posts"]).iter().any(|one| one["name"] == name),
        _ => false,
    }
}

/// What became of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteOutcome {
    Done,
    Refused,
    Unknown,
}

fn outcome(line: &Value) -> WriteOutcome {
    match line["status"].as_u64().unwrap_or_default() {
        200..300 => WriteOutcome::Done,
        // A request over the limit, or one that is refused, has no effect.
        400..500 => WriteOutcome::Refused,
        _ => WriteOutcome::Unknown,
    }
}

impl LoggedState {
    /// Everything as the simulator shows it.
    fn of(state: &Value) -> Self {
        let mut standing = Self::default();
        for (tunnel, document) in state["configurations"].as_object().into_iter().flatten() {
            standing.tunnels.insert(tunnel.clone(), vec![hostnames(&document["config"])]);
        }
        for record in crate::cloudflare::live(state, "dns_records") {
            standing.see_record(&record);
        }
        for app in crate::cloudflare::live(state, "access_apps") {
            standing.apps.insert(text(&app["id"]), vec![Some(app_of(&app))]);
        }
        standing
    }

    fn learn(&mut self, line: &Value) {
        let path = text(&line["path"]);
        let path = path.strip_prefix("/client/v4").unwrap_or(&path).trim_matches('/').to_owned();
        let method = text(&line["method"]);
        let parts: Vec<&str> = path.split('/').collect();
        self.added.clear();
        match parts.as_slice() {
            ["accounts", _, "cfd_tunnel", tunnel, "configurations"] => self.learn_document(tunnel, &method, line),
            ["zones", _, "dns_records", "batch"] => self.learn_batch(line),
            ["zones", _, "dns_records", rest @ ..] => self.learn_record(rest.first().copied(), &method, line),
            ["accounts", _, "access", "apps", app, "policies", rest @ ..] => {
                self.learn_app_policy(app, rest.first().copied(), &method, line);
            }
            ["accounts", account, "access", "apps", rest @ ..] => {
                self.learn_app(account, rest.first().copied(), &method, line);
            }
            ["accounts", _, "access", "policies", policy] if method == "DELETE" => self.learn_policy(policy, line),
            _ => {}
        }
    }

    fn learn_document(&mut self, tunnel: &str, method: &str, line: &Value) {
        let possible = self.tunnels.entry(tunnel.to_owned()).or_insert_with(|| vec![BTreeSet::new()]);
        let known: BTreeSet<String> = possible.iter().flatten().cloned().collect();
        if method == "PUT" && outcome(line) == WriteOutcome::Done {
            self.added = hostnames(&line["body"]["config"]).difference(&known).cloned().collect();
        }
        match (method, outcome(line)) {
            ("GET", WriteOutcome::Done) => {
                self.revivals.read(tunnel, line, &hostnames(&line["response"]["result"]["config"]));
            }
            ("PUT", WriteOutcome::Done | WriteOutcome::Unknown) => {
                self.revivals.wrote(tunnel, line, &known, &line["body"]["config"]);
            }
            _ => {}
        }
        match (method, outcome(line)) {
            ("GET", WriteOutcome::Done) => *possible = vec![hostnames(&line["response"]["result"]["config"])],
            ("PUT", WriteOutcome::Done) => *possible = vec![hostnames(&line["body"]["config"])],
            ("PUT", WriteOutcome::Unknown) => possible.push(hostnames(&line["body"]["config"])),
            _ => {}
        }
    }

    fn see_record(&mut self, record: &Value) {
        if matches!(record["type"].as_str(), Some("A" | "AAAA" | "CNAME")) {
            let thing = Thing { hostname: text(&record["name"]), certain: true };
            self.records.insert(text(&record["id"]), thing);
        }
    }

    fn learn_record(&mut self, id: Option<&str>, method: &str, line: &Value) {
        let result = &line["response"]["result"];
        match (method, outcome(line), id) {
            ("GET", WriteOutcome::Done, None) => list(result).iter().for_each(|record| self.see_record(record)),
            ("GET" | "POST" | "PATCH" | "PUT", WriteOutcome::Done, _) => self.see_record(result),
            ("DELETE", _, Some(id)) => self.lose_record(id, line),
            ("PATCH" | "PUT", WriteOutcome::Unknown, Some(id)) => self.doubt_record(id),
            _ => {}
        }
    }

    fn lose_record(&mut self, id: &str, line: &Value) {
        match outcome(line) {
            WriteOutcome::Done => drop(self.records.remove(id)),
            WriteOutcome::Refused if line["status"] == 404 => drop(self.records.remove(id)),
            WriteOutcome::Refused => {}
            WriteOutcome::Unknown => self.doubt_record(id),
        }
    }

    fn doubt_record(&mut self, id: &str) {
        if let Some(thing) = self.records.get_mut(id) {
            thing.certain = false;
        }
    }

    fn learn_batch(&mut self, line: &Value) {
        let named = |verb: &str| list(&line["body"][verb]).into_iter().map(|one| text(&one["id"]));
        match outcome(line) {
            WriteOutcome::Refused => {}
            WriteOutcome::Unknown => {
                for id in ["deletes", "patches", "puts"].iter().flat_map(|verb| named(verb)) {
                    self.doubt_record(&id);
                }
            }
            WriteOutcome::Done => {
                named("deletes").for_each(|id| drop(self.records.remove(&id)));
                for verb in ["patches", "puts", "posts"] {
                    for record in list(&line["response"]["result"][verb]) {
                        self.see_record(&record);
                    }
                }
            }
        }
    }

    fn learn_app(&mut self, account: &str, id: Option<&str>, method: &str, line: &Value) {
        let result = &line["response"]["result"];
        match (method, outcome(line), id) {
            ("GET", WriteOutcome::Done, None) => {
                for app in list(result) {
                    self.see_app(&app);
                }
                if is_complete(line) {
                    self.lost.retain(|(place, _)| place != account);
                }
            }
            ("GET" | "POST" | "PUT", WriteOutcome::Done, _) => self.see_app(result),
            ("POST", WriteOutcome::Unknown, None) => {
                self.lost.insert((account.to_owned(), text(&line["body"]["domain"])));
            }
            ("PUT", WriteOutcome::Unknown, Some(id)) => {
                self.apps.entry(id.to_owned()).or_default().push(Some(app_of(&line["body"])));
            }
            ("DELETE", outcome, Some(id)) => match outcome {
                WriteOutcome::Done => drop(self.apps.remove(id)),
                WriteOutcome::Refused if line["status"] == 404 => drop(self.apps.remove(id)),
                WriteOutcome::Refused => {}
                WriteOutcome::Unknown => self.apps.entry(id.to_owned()).or_default().push(None),
            },
            _ => {}
        }
    }

    fn see_app(&mut self, object: &Value) {
        let app = app_of(object);
        self.lost.retain(|(_, lost)| *lost != app.hostname);
        self.apps.insert(text(&object["id"]), vec![Some(app)]);
    }

    fn learn_app_policy(&mut self, app: &str, policy: Option<&str>, method: &str, line: &Value) {
        let outcome = outcome(line);
        if method == "GET" || outcome == WriteOutcome::Refused {
            return;
        }
        let made = text(&line["response"]["result"]["id"]);
        let change = |app: &App| {
            let mut app = app.clone();
            match (method, policy) {
                ("DELETE", Some(policy)) => drop(app.policies.remove(policy)),
                _ => drop(app.policies.insert(if made.is_empty() { "lost".to_owned() } else { made.clone() })),
            }
            app
        };
        let Some(possible) = self.apps.get_mut(app) else { return };
        let changed: Vec<Option<App>> = possible.iter().map(|one| one.as_ref().map(change)).collect();
        if outcome == WriteOutcome::Done {
            *possible = changed;
        } else {
            possible.extend(changed);
        }
    }

    /// A reusable policy goes from every application that links to it.
    fn learn_policy(&mut self, policy: &str, line: &Value) {
        if outcome(line) != WriteOutcome::Done {
            return;
        }
        for app in self.apps.values_mut().flatten().flatten() {
            app.policies.remove(policy);
        }
    }

    fn published(&self, name: &str) -> KnownObject {
        let records: Vec<bool> =
            self.records.values().filter(|one| one.hostname == name).map(|one| one.certain).collect();
        let rules: Vec<KnownObject> =
            self.tunnels.iter().map(|(tunnel, possible)| self.has_rule(tunnel, possible, name)).collect();
        if records.contains(&true) || rules.contains(&KnownObject::Yes) {
            KnownObject::Yes
        } else if records.is_empty() && rules.iter().all(|one| *one == KnownObject::No) {
            KnownObject::No
        } else {
            KnownObject::Perhaps
        }
    }

    fn has_rule(&self, tunnel: &str, possible: &[BTreeSet<String>], name: &str) -> KnownObject {
        let counts = !self.revivals.has(tunnel, name);
        agreed(possible.iter().map(|one| counts && one.contains(name)))
    }

    fn sight(&self, name: &str, line: Option<&Value>) -> Sight {
        let fits = |app: &Option<App>| app.as_ref().is_some_and(|app| app.hostname == name);
        let guards =
            |app: &Option<App>| app.as_ref().is_some_and(|app| app.hostname == name && !app.policies.is_empty());
        let (app, policy) = (self.any_app(fits), self.any_app(guards));
        let is_lost = self.lost.iter().any(|(_, lost)| lost == name);
        let lost = |known| if known == KnownObject::No && is_lost { KnownObject::Perhaps } else { known };
        let just_written = line.is_some_and(|line| writes_app(line, name));
        let just_published = line.is_some_and(|line| self.publishes_late(line, name));
        Sight { published: self.published(name), app: lost(app), policy: lost(policy), just_written, just_published }
    }

    /// Whether a request put out a rule or a record for a name, long after somebody else took its application.
    fn publishes_late(&self, line: &Value, name: &str) -> bool {
        let late = self.taken.get(name).is_some_and(|at| line["at_ms"].as_i64().unwrap_or_default() - at > GRACE_MS);
        late && outcome(line) == WriteOutcome::Done && (self.added.contains(name) || makes_record(line, name))
    }

    fn any_app(&self, fits: impl Fn(&Option<App>) -> bool) -> KnownObject {
        let each: Vec<KnownObject> = self.apps.values().map(|possible| agreed(possible.iter().map(&fits))).collect();
        if each.contains(&KnownObject::Yes) {
            KnownObject::Yes
        } else if each.contains(&KnownObject::Perhaps) {
            KnownObject::Perhaps
        } else {
            KnownObject::No
        }
    }

    fn exposed(&self, duties: &mut Duties, line: &Value) -> Vec<Exposed> {
        let after = format!("{} {} ({})", text(&line["method"]), text(&line["path"]), line["status"]);
        let mut found = Vec::new();
        for hostname in duties.names() {
            if let Some(missing) = duties.see(&hostname, self.sight(&hostname, Some(line))) {
                found.push(Exposed { hostname, missing, after: after.clone() });
            }
        }
        found
    }
}

/// Whether all possibilities agree.
fn agreed(possible: impl Iterator<Item = bool>) -> KnownObject {
    let all: Vec<bool> = possible.collect();
    match (all.contains(&true), all.contains(&false)) {
        (true, false) => KnownObject::Yes,
        (true, true) => KnownObject::Perhaps,
        (false, _) => KnownObject::No,
    }
}
