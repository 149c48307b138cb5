//! The simulator behind the exposure: a world with things of others in it, requests that go wrong on purpose, and a look
//! after every request at whether a name stands open. Clock and seeds are the test kit's; the way to the simulator is this one's own,
//! since nothing runs here but one call at a time, without a cluster and an operator whose steps a gate could number, and since
//! answers are changed on it.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use portolan_cloudflare_api::{Client, Clients, Credential, Lane, Request, Settings, Transport, TransportError};
use portolan_cloudflare_sim::{Options, Simulator};
use portolan_core::{Clock, Hostname, Mark, ObjectKey, OwnerId, Problem};
use portolan_exposure::{
    Access, Applied, Desired, Elsewhere, Exposure, Failed, Footprint, Fresh, Intent, Journal, NewCredential,
    PlanContext, Record, Rule, Token, apply, expose, gather, intend, plan, unexpose,
};
use portolan_testkit::clock::tokio_clock;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

pub(crate) const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const ZONE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(crate) const OTHER_ZONE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// What happens to the n-th request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    CrashBefore,
    CrashAfter,
    FailBefore,
    FailAfter,
}

/// What the transport does and sees.
#[derive(Default)]
struct Watch {
    count: usize,
    hit: Option<(usize, Hit)>,
    /// Names that must not stand open, from the first write on.
    guarded: BTreeSet<String>,
    /// Applications are shown without their policies, as lesser APIs do.
    hides_policies: bool,
    /// Policies inside the request for an application are ignored.
    ignores_policies: bool,
    violations: Vec<String>,
    lines: Vec<String>,
}

/// The way to the simulator.
pub(crate) struct Line {
    sim: Simulator,
    watch: Mutex<Watch>,
    crashed: Notify,
}

impl Line {
    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        let write = request.method() != Method::GET;
        let path = request.uri().path().replace("/client/v4", "");
        let hit = {
            let mut watch = self.watch();
            watch.count += 1;
            watch.lines.push(format!("{} {path}", request.method()));
            watch.hit.filter(|(at, _)| *at == watch.count).map(|(_, hit)| hit)
        };
        let failed = || Err(TransportError { sent: true, message: "the connection broke".to_owned() });
        match hit {
            Some(Hit::CrashBefore) => return self.crash().await,
            Some(Hit::FailBefore) => return failed(),
            _ => {}
        }
        let ignores =
            self.watch().ignores_policies && request.method() == Method::POST && path.ends_with("/access/apps");
        let request = if ignores { request.map(|body| emptied(&body)) } else { request };
        let answer = self.sim.answer(request).await;
        if write {
            self.look(&path);
        }
        match hit {
            Some(Hit::CrashAfter) => self.crash().await,
            Some(Hit::FailAfter) => failed(),
            _ => {
                let answer = answer.map_err(|_| TransportError { sent: true, message: "dropped".to_owned() })?;
                let hides = self.watch().hides_policies && path.contains("/access/apps") && !path.contains("policies");
                Ok(if hides { without_policies(answer) } else { answer })
            }
        }
    }

    async fn crash(&self) -> Result<http::Response<Bytes>, TransportError> {
        self.crashed.notify_one();
        std::future::pending().await
    }

    /// Looks whether a guarded name stands open.
    fn look(&self, path: &str) {
        let state = self.sim.state();
        let mut watch = self.watch();
        let open: Vec<String> = watch.guarded.iter().filter(|name| is_open(&state, name)).cloned().collect();
        for name in open {
            let line = format!("{name} stands open after {path}");
            watch.violations.push(line);
        }
    }
}

fn emptied(body: &Bytes) -> Bytes {
    let mut body: Value = serde_json::from_slice(body).unwrap();
    body["policies"] = json!([]);
    Bytes::from(body.to_string())
}

fn without_policies(answer: http::Response<Bytes>) -> http::Response<Bytes> {
    let (parts, body) = answer.into_parts();
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    let hide = |app: &mut Value| drop(app.as_object_mut().and_then(|app| app.remove("policies")));
    match &mut body["result"] {
        Value::Array(apps) => apps.iter_mut().for_each(hide),
        app => hide(app),
    }
    http::Response::from_parts(parts, Bytes::from(body.to_string()))
}

/// Whether requests for a name arrive though no application with a policy stands before it.
pub(crate) fn is_open(state: &Value, name: &str) -> bool {
    is_published(state, name) && !is_protected(state, name)
}

pub(crate) fn is_published(state: &Value, name: &str) -> bool {
    let rule = |rule: &Value| rule["hostname"] == name && rule["path"].is_null();
    let ruled = state["configurations"]
        .as_object()
        .into_iter()
        .flatten()
        .any(|(_, document)| document["config"]["ingress"].as_array().into_iter().flatten().any(rule));
    let record = |record: &Value| {
        record["name"] == name && record["type"].as_str().is_some_and(|kind| matches!(kind, "A" | "AAAA" | "CNAME"))
    };
    ruled || all(state, "dns_records").iter().any(record)
}

pub(crate) fn is_protected(state: &Value, name: &str) -> bool {
    let app = |app: &Value| app["domain"] == name && app["policies"].as_array().is_some_and(|list| !list.is_empty());
    all(state, "access_apps").iter().any(app)
}

/// All objects of a collection.
pub(crate) fn all(state: &Value, collection: &str) -> Vec<Value> {
    let scopes = state[collection].as_object().into_iter().flatten();
    scopes.flat_map(|(_, objects)| objects.as_array().cloned().unwrap_or_default()).collect()
}

/// Rules of rulesets: an empty ruleset redirects nothing.
pub(crate) fn redirects(state: &Value) -> Vec<Value> {
    all(state, "rulesets").iter().flat_map(|ruleset| ruleset["rules"].as_array().cloned().unwrap_or_default()).collect()
}

struct Wire(Arc<Line>);

impl Transport for Wire {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(self.0.answer(request))
    }
}

/// What survives a crash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Persisted {
    pub(crate) footprint: Footprint,
    pub(crate) credentials: BTreeMap<String, (String, String)>,
    pub(crate) intent: Option<Intent>,
    pub(crate) operations: Vec<&'static str>,
}

pub(crate) struct Diary(Mutex<Persisted>);

impl Diary {
    fn page(&self) -> MutexGuard<'_, Persisted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for Diary {
    async fn credential(&self, new: NewCredential) -> Result<(), Problem> {
        let secret = new.client_secret.expose_secret().to_owned();
        self.page().credentials.insert(new.token_id, (new.client_id, secret));
        Ok(())
    }

    async fn reached(&self, footprint: &Footprint, operation: &'static str) -> Result<(), Problem> {
        let mut page = self.page();
        page.footprint = footprint.clone();
        page.operations.push(operation);
        Ok(())
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Done(Box<Applied>),
    Failed(Box<Failed>),
    Crashed,
}

impl Ended {
    pub(crate) fn applied(self) -> Applied {
        match self {
            Self::Done(applied) => *applied,
            other => panic!("it did not end well: {other:#?}"),
        }
    }

    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::Failed(failed) => failed.problem,
            other => panic!("it did not fail: {other:#?}"),
        }
    }
}

/// One name's world.
pub(crate) struct World {
    pub(crate) sim: Simulator,
    pub(crate) line: Arc<Line>,
    pub(crate) diary: Arc<Diary>,
    pub(crate) tunnels: [String; 2],
    pub(crate) adopt: bool,
    clock: Clock,
    clients: Clients,
    pub(crate) client: Client,
    pub(crate) seeded: Value,
}

impl World {
    /// An account with two tunnels, two zones, and things of others.
    pub(crate) async fn new() -> Self {
        let clock = tokio_clock("2026-11-16T05:00:00Z".parse().unwrap());
        let sim = Simulator::new(Options { clock: clock.clone(), rate_limit: None, ..Options::default() });
        sim.add_account_with_id(ACCOUNT, "Test");
        sim.add_zone_with_id(ZONE, "x.com", ACCOUNT, "enterprise").unwrap();
        sim.add_zone_with_id(OTHER_ZONE, "y.org", ACCOUNT, "enterprise").unwrap();
        let line = Arc::new(Line { sim: sim.clone(), watch: Mutex::default(), crashed: Notify::new() });
        let (clients, client) = connect(&line, &clock);
        let diary = Arc::new(Diary(Mutex::default()));
        let mut world = Self {
            sim,
            line,
            diary,
            tunnels: [String::new(), String::new()],
            adopt: false,
            clock,
            clients,
            client,
            seeded: Value::Null,
        };
        world.furnish().await;
        world
    }

    async fn furnish(&mut self) {
        for index in 0..2 {
            let body = json!({"name": format!("tunnel-{index}"), "config_src": "cloudflare"});
            let request = Request::new(Method::POST, "/accounts/{a}/cfd_tunnel", &[ACCOUNT]).with_body(body);
            let made = self.client.send(Lane::Change, &request).await.unwrap();
            made["id"].as_str().unwrap().clone_into(&mut self.tunnels[index]);
        }
        let config = json!({
            "ingress": [
                {"hostname": "a.x.com", "path": "/theirs", "service": "http://theirs"},
                {"hostname": "other.x.com", "service": "http://theirs", "originRequest": {"noTLSVerify": true}},
                {"hostname": "*.x.com", "service": "http://rest"},
                {"service": "http://custom"},
            ],
            "originRequest": {"connectTimeout": 30},
            "warp-routing": {"enabled": true},
        });
        self.write_config(0, config).await;
        self.write_config(1, json!({"ingress": [{"service": "http_status:404"}]})).await;
        self.put("dns_records", ZONE, json!({"type": "CNAME", "name": "other.x.com", "content": "z.y.org", "ttl": 1}));
        self.put("dns_records", ZONE, json!({"type": "TXT", "name": "a.x.com", "content": "\"theirs\"", "ttl": 300}));
        self.put("access_groups", ACCOUNT, json!({"name": "Engineering", "include": [{"everyone": {}}]}));
        let policy = json!({"name": "Contractors", "decision": "allow", "include": [{"email": {"email": "c@x.com"}}]});
        self.put("access_policies", ACCOUNT, policy);
        self.put(
            "access_apps",
            ACCOUNT,
            json!({"name": "web", "domain": "other.x.com", "type": "self_hosted", "policies": []}),
        );
        self.put("service_tokens", ACCOUNT, json!({"name": "web-service-token", "duration": "8760h"}));
        // What was there before is older than what an attempt may have made.
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        self.seeded = self.sim.state();
        self.line.watch().lines.clear();
    }

    pub(crate) async fn write_config(&self, tunnel: usize, config: Value) {
        let template = "/accounts/{a}/cfd_tunnel/{t}/configurations";
        let request = Request::new(Method::PUT, template, &[ACCOUNT, &self.tunnels[tunnel]]);
        self.client.send(Lane::Change, &request.with_body(json!({"config": config}))).await.unwrap();
    }

    pub(crate) fn put(&self, collection: &str, scope: &str, object: Value) -> String {
        self.sim.put(collection, scope, object).unwrap()
    }

    /// A process starts anew: no snapshot is left.
    pub(crate) fn restart(&mut self) {
        (self.clients, self.client) = connect(&self.line, &self.clock);
    }

    /// From now on our clock is so far ahead of the API's, as the next answer tells.
    pub(crate) async fn skew(&mut self, seconds: i64) {
        let clock = Arc::clone(&self.clock);
        self.clock = Arc::new(move || clock() + SignedDuration::from_secs(seconds));
        self.restart();
        let request = Request::get("/accounts/{a}/access/groups", &[ACCOUNT]);
        self.client.send(Lane::Change, &request).await.unwrap();
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(crate) fn footprint(&self) -> Footprint {
        self.diary.page().footprint.clone()
    }

    /// Another name comes: nothing is recorded for it.
    pub(crate) fn diary_reset(&self) {
        *self.diary.page() = Persisted::default();
    }

    pub(crate) fn persisted(&self) -> MutexGuard<'_, Persisted> {
        self.diary.page()
    }

    pub(crate) fn notes(&self, intent: Option<Intent>) -> PlanContext {
        let page = self.diary.page();
        let token = page.footprint.service_token_id.as_ref();
        PlanContext {
            intent,
            elsewhere: Elsewhere::default(),
            now: self.now(),
            secret_present: token.is_none_or(|token| page.credentials.contains_key(token)),
        }
    }

    /// Applications are shown without their policies from now on.
    pub(crate) fn hide_policies(&self) {
        self.line.watch().hides_policies = true;
    }

    /// Policies inside the request for an application are ignored from now on.
    pub(crate) fn ignore_policies(&self) {
        self.line.watch().ignores_policies = true;
    }

    /// Names that must not stand open during the next runs, from their first write on.
    pub(crate) fn guard(&self, names: impl IntoIterator<Item = String>) {
        self.line.watch().guarded = names.into_iter().collect();
    }

    pub(crate) fn guarded(&self) -> BTreeSet<String> {
        self.line.watch().guarded.clone()
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.line.watch().violations.clone()
    }

    /// Requests since the last time, as `POST /zones/{zone}/dns_records` with ids left out.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        let short = |line: String| {
            let parts: Vec<String> =
                line.split('/').map(|part| if is_id(part) { "*".to_owned() } else { part.to_owned() }).collect();
            parts.join("/").replace("/accounts/*", "").replace("/zones/*", "")
        };
        std::mem::take(&mut self.line.watch().lines).into_iter().map(short).collect()
    }

    pub(crate) fn take_writes(&self) -> Vec<String> {
        self.take_lines().into_iter().filter(|line| !line.starts_with("GET")).collect()
    }

    /// Makes the name what is desired, or takes it away, as a worker would: intent first, then the work.
    pub(crate) async fn run(&mut self, desired: Option<&Desired>, hit: Option<(usize, Hit)>) -> Ended {
        self.run_looking(desired, hit, Fresh::any()).await
    }

    pub(crate) async fn run_looking(
        &mut self,
        desired: Option<&Desired>,
        hit: Option<(usize, Hit)>,
        fresh: Fresh,
    ) -> Ended {
        {
            let mut watch = self.line.watch();
            watch.count = 0;
            watch.hit = hit;
        }
        let earlier = self.diary.page().intent.clone();
        if let Some(desired) = desired {
            let now = self.client.time();
            self.diary.page().intent = Some(intend(desired, earlier.as_ref(), now));
        }
        let notes = self.notes(earlier);
        let recorded = self.footprint();
        let (client, diary, mark) = (self.client.clone(), self.diary.clone(), mark());
        let work = async {
            match desired {
                Some(desired) => expose(&client, desired, &recorded, &notes, fresh, &*diary).await,
                None => unexpose(&client, &mark, &recorded, &notes, fresh, &*diary).await,
            }
        };
        let ended = tokio::select! {
            ended = work => Some(ended),
            () = self.line.crashed.notified() => None,
        };
        self.line.watch().hit = None;
        match ended {
            Some(Ok(applied)) => {
                let mut page = self.diary.page();
                page.footprint = applied.footprint.clone();
                page.intent = None;
                Ended::Done(Box::new(applied))
            }
            Some(Err(failed)) => {
                self.diary.page().footprint = failed.footprint.clone();
                Ended::Failed(Box::new(failed))
            }
            None => {
                self.restart();
                Ended::Crashed
            }
        }
    }

    /// Carries out a plan that was made before.
    pub(crate) async fn carry_out(&self, exposure: &Exposure) {
        assert!(apply(&self.client, exposure, &*self.diary).await.is_ok(), "the plan is carried out");
    }

    /// What a plan on a fresh look would still change.
    pub(crate) async fn left_to_do(&self, desired: &Desired) -> Vec<String> {
        let recorded = self.footprint();
        let live = gather(&self.client.reader(), &mark(), Some(desired), &recorded, Fresh::after_now()).await.unwrap();
        let exposure = plan(desired, &recorded, &live, &self.notes(None)).unwrap();
        exposure.steps.iter().map(|step| format!("{:?}", step.changes)).collect()
    }

    pub(crate) fn rule(&self, tunnel: usize, service: &str) -> Rule {
        Rule { tunnel_id: self.tunnels[tunnel].clone(), service: service.to_owned(), origin_request: Map::new() }
    }

    /// The name through the first tunnel, without anything else.
    pub(crate) fn plain(&self, hostname: &str) -> Desired {
        self.through(hostname, 0)
    }

    pub(crate) fn through(&self, hostname: &str, tunnel: usize) -> Desired {
        let target = format!("{}.cfargotunnel.com", self.tunnels[tunnel]);
        Desired {
            mark: mark(),
            hostname: Hostname::parse(hostname).unwrap(),
            account_id: ACCOUNT.to_owned(),
            rule: Some(self.rule(tunnel, "http://web.shop.svc:80")),
            record: Some(Record::Cname { zone_id: zone_of(hostname).to_owned(), target }),
            access: None,
            token: None,
            redirect: false,
            adopt: self.adopt,
        }
    }

    pub(crate) fn state(&self) -> Value {
        self.sim.state()
    }

    pub(crate) fn all(&self, collection: &str) -> Vec<Value> {
        all(&self.sim.state(), collection)
    }

    /// Objects of a collection that are not of the beginning.
    pub(crate) fn ours(&self, collection: &str) -> Vec<Value> {
        let theirs: BTreeSet<String> = all(&self.seeded, collection).iter().map(|one| one["id"].to_string()).collect();
        self.all(collection).into_iter().filter(|one| !theirs.contains(&one["id"].to_string())).collect()
    }

    /// Rules of the zones' rulesets for redirects.
    pub(crate) fn redirects(&self) -> Vec<Value> {
        redirects(&self.sim.state())
    }

    pub(crate) fn config(&self, tunnel: usize) -> Value {
        self.sim.state()["configurations"][&self.tunnels[tunnel]]["config"].clone()
    }

    /// Hosts of a tunnel's rules that have no path.
    pub(crate) fn hosts(&self, tunnel: usize) -> Vec<String> {
        let config = self.config(tunnel);
        let rules = config["ingress"].as_array().cloned().unwrap_or_default();
        let plain = rules.iter().filter(|rule| rule["path"].is_null());
        plain.filter_map(|rule| rule["hostname"].as_str()).map(str::to_owned).collect()
    }

    /// Everything of others is as it was in the beginning.
    pub(crate) fn assert_theirs_untouched(&self) {
        for collection in ["dns_records", "access_apps", "access_policies", "access_groups", "service_tokens"] {
            for theirs in all(&self.seeded, collection) {
                let found = self.sim.object(collection, theirs["id"].as_str().unwrap());
                assert_eq!(found.as_ref(), Some(&theirs), "{collection}");
            }
        }
        for (tunnel, id) in self.tunnels.iter().enumerate() {
            let before = &self.seeded["configurations"][id]["config"];
            let mut now = self.config(tunnel);
            let theirs = before["ingress"].as_array().unwrap();
            now["ingress"].as_array_mut().unwrap().retain(|rule| theirs.contains(rule));
            assert_eq!(now.to_string(), before.to_string(), "tunnel {tunnel}");
        }
    }
}

fn connect(line: &Arc<Line>, clock: &Clock) -> (Clients, Client) {
    let settings = Settings { base_url: "http://sim/client/v4".to_owned(), ..Settings::default() };
    let clients = Clients::new(settings, Arc::new(Wire(line.clone())), clock.clone());
    let client = clients.client(&Credential::token("t0ken"));
    (clients, client)
}

fn is_id(part: &str) -> bool {
    part.len() >= 32 && part.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

pub(crate) fn zone_of(hostname: &str) -> &'static str {
    if hostname.ends_with("x.com") { ZONE } else { OTHER_ZONE }
}

pub(crate) fn mark() -> Mark {
    Mark {
        kind: "HTTPRoute".to_owned(),
        key: ObjectKey::namespaced("shop", "web"),
        owner: OwnerId::derive("test"),
        adopted: false,
    }
}

/// Protected for these addresses.
pub(crate) fn emails(addresses: &[&str]) -> Access {
    let settings = json!({"session_duration": "24h", "http_only_cookie_attribute": true, "skip_interstitial": false});
    Access {
        name: "web".to_owned(),
        settings: settings.as_object().unwrap().clone(),
        emails: addresses.iter().map(|address| (*address).to_owned()).collect(),
        groups: Vec::new(),
        policy_ids: Vec::new(),
        policy_names: Vec::new(),
        policy_name: "web-allow-policy".to_owned(),
        service_policy_name: "web-service-auth".to_owned(),
    }
}

pub(crate) fn token() -> Token {
    Token { name: "web-service-token".to_owned(), duration: "8760h".to_owned(), rotate: None }
}
