//! A world: an API server, a Cloudflare simulator and the operator between them, on one clock.
//!
//! On the embedded API server everything runs in one thread under tokio's paused clock, so that the same seed gives the
//! same run. On a real one the clock is the wall's, and all waits are shortened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use portolan_apiserver::{ApiServer, Config};
use portolan_cloudflare::Drift;
use portolan_cloudflare_sim::{Grant, Options, Recorded, Simulator};
use portolan_core::{Clock, OwnerId};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;
use tower::Layer as _;

use crate::cloudflare::{Cloudflare, shown};
use crate::cluster::Cluster;
use crate::gate::{Gate, Step, System};
use crate::invariants::Evidence;
use crate::manifests as m;
use crate::operator::{Operator, Outside};
use crate::pace::Pace;
use crate::real::RealServer;
use crate::transport::InProcess;

/// Whose API server a world has.
#[derive(Clone, Default)]
pub enum Backend {
    /// Ours, in this process, in memory.
    #[default]
    Embedded,
    /// kube-apiserver with etcd.
    Real(Arc<RealServer>),
}

/// How a world is made.
#[derive(Clone)]
pub struct Builder {
    seed: u64,
    plan: &'static str,
    latency: Duration,
    rate_limit: Option<(u32, Duration)>,
    drift: Drift,
    backend: Backend,
    started: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            seed: 1,
            plan: "enterprise",
            latency: Duration::ZERO,
            rate_limit: Some((1200, Duration::from_secs(300))),
            drift: Drift::Off,
            backend: Backend::Embedded,
            started: true,
        }
    }
}

impl Builder {
    /// Where everything random comes from.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The plan of the zone: `free`, `pro`, `business` or `enterprise`.
    pub fn plan(self, plan: &'static str) -> Self {
        Self { plan, ..self }
    }

    /// How long Cloudflare takes to answer.
    pub fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Requests of a token in a window; `None` for no limit.
    pub fn rate_limit(self, rate_limit: Option<(u32, Duration)>) -> Self {
        Self { rate_limit, ..self }
    }

    /// When drift passes are made by themselves; never, unless this is said.
    pub fn drift(self, drift: Drift) -> Self {
        Self { drift, ..self }
    }

    /// Whose API server it is.
    pub fn backend(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// Leaves the operator out until [`World::restart`].
    pub fn asleep(self) -> Self {
        Self { started: false, ..self }
    }

    /// Makes the world and waits until it rests.
    pub async fn start(self) -> World {
        let world = self.make().await;
        world.furnish().await;
        if self.started {
            world.restart().await;
            world.settle().await;
        }
        world.forget();
        world
    }

    async fn make(&self) -> World {
        let clock = match &self.backend {
            Backend::Embedded => crate::clock::tokio_clock(),
            Backend::Real(_) => Arc::new(jiff::Timestamp::now),
        };
        let simulator = Simulator::open(Options {
            clock: clock.clone(),
            latency: self.latency,
            rate_limit: self.rate_limit,
            seed: self.seed,
            record: recording(self.seed),
            ..Options::default()
        })
        .expect("the recording can be written");
        let gate = Gate::default();
        let (user, operator, server) = self.clients(&clock, &gate).await;
        let sent = TaskTracker::new();
        World {
            cluster: Cluster::new(user),
            cloudflare: Cloudflare::new(simulator.clone()),
            pace: Pace::of(&self.backend),
            outside: Outside {
                client: operator,
                clock,
                transport: Arc::new(InProcess::new(simulator, gate.clone(), sent.clone())),
                owner: OwnerId::derive("the-worlds-cluster"),
                seed: self.seed,
                drift: self.drift,
                plans: Arc::default(),
            },
            gate,
            shared: matches!(self.backend, Backend::Real(_)),
            plan: self.plan,
            operator: Mutex::default(),
            _sent: sent,
            _server: server,
        }
    }

    /// The users' client and the operator's, which goes through the gate.
    async fn clients(&self, clock: &Clock, gate: &Gate) -> (Client, Client, Option<ApiServer>) {
        match &self.backend {
            Backend::Real(server) => (server.client(None), server.client(Some(gate)), None),
            Backend::Embedded => {
                let config = Config { clock: clock.clone(), seed: Some(self.seed), ..Config::default() };
                let server = ApiServer::open(config).await.expect("a server in memory starts");
                let user = Client::new(server.service(), "default");
                let operator = Client::new(gate.layer(server.service()), "default");
                (user, operator, Some(server))
            }
        }
    }
}

/// Where requests are recorded: a file of its own for every world, when the environment names a folder.
fn recording(seed: u64) -> Option<PathBuf> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static WORLDS: AtomicU64 = AtomicU64::new(0);
    let folder = PathBuf::from(std::env::var_os("PORTOLAN_RECORD_DIR")?);
    let number = WORLDS.fetch_add(1, Ordering::Relaxed);
    Some(folder.join(format!("world-{}-{number}-{seed}.jsonl", std::process::id())))
}

/// Everything that a test plays with.
pub struct World {
    /// The users' side.
    pub cluster: Cluster,
    /// The API's side.
    pub cloudflare: Cloudflare,
    /// What the operator does, step by step.
    pub gate: Gate,
    /// How fast time goes.
    pub pace: Pace,
    outside: Outside,
    /// Whether other worlds were on the same API server.
    shared: bool,
    plan: &'static str,
    operator: Mutex<Option<Operator>>,
    _sent: TaskTracker,
    _server: Option<ApiServer>,
}

impl World {
    /// How a world is made.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A world with nothing special about it.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// The CRDs, the account, the zone, the tunnel, and what users need to work with them.
    async fn furnish(&self) {
        self.cluster.install_definitions().await;
        if self.shared {
            self.cluster.clear().await;
        }
        let cloudflare = &self.cloudflare.simulator;
        cloudflare.add_account_with_id(m::ACCOUNT, "Example");
        cloudflare.add_token(m::CANARY, Grant::all().email("operator@example.com"));
        cloudflare.add_zone_with_id(m::ZONE_ID, m::ZONE, m::ACCOUNT, self.plan).expect("the plan exists");
        let tunnel = cloudflare.put("cfd_tunnel", m::ACCOUNT, json!({ "name": m::TUNNEL, "config_src": "cloudflare" }));
        for namespace in [m::OPERATOR_NAMESPACE, m::NAMESPACE] {
            self.cluster.apply(&m::namespace(namespace)).await;
        }
        self.cluster.apply(&m::token_secret(m::OPERATOR_NAMESPACE, "cloudflare-api", m::CANARY)).await;
        self.cluster.apply(&m::with(m::credentials("main", "cloudflare-api"), "isDefault", json!(true))).await;
        self.cluster.apply(&m::domain(m::ZONE)).await;
        self.cluster.apply(&m::cluster_tunnel(m::TUNNEL, &tunnel.expect("the tunnel is made"))).await;
    }

    /// Whose marks are ours.
    pub fn owner(&self) -> &OwnerId {
        &self.outside.owner
    }

    /// Kills the operator: everything it runs and remembers is gone.
    pub async fn crash(&self) {
        if let Some(operator) = self.operator.lock().await.take() {
            operator.kill().await;
        }
    }

    /// Starts the operator, which was killed or never ran.
    pub async fn restart(&self) {
        self.crash().await;
        self.gate.open();
        *self.operator.lock().await = Some(Operator::start(&self.outside, &self.pace));
    }

    /// Stops the operator as a signal does.
    pub async fn stop(&self) {
        if let Some(operator) = self.operator.lock().await.take() {
            operator.stop().await;
        }
    }

    /// How many objects are at work or due.
    pub async fn busy(&self) -> usize {
        self.operator.lock().await.as_ref().map_or(0, Operator::busy)
    }

    /// Compares everything with what stands at Cloudflare, now.
    pub async fn drift_pass(&self) {
        let passing = self.operator.lock().await.as_ref().map(Operator::handle);
        if let Some(handle) = passing {
            handle.drift_pass().await;
        }
    }

    /// The operator's measurements, as Prometheus reads them.
    pub async fn metrics(&self) -> String {
        self.operator.lock().await.as_ref().map(Operator::metrics).unwrap_or_default()
    }

    /// What the operator planned so far, as users read it.
    pub fn plans(&self) -> Vec<String> {
        self.outside.plans.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Waits until the operator rests: nothing runs, nothing is due, no request was made for a while.
    pub async fn settle(&self) {
        self.settle_within(Duration::from_secs(600)).await;
    }

    /// The same, within a limit.
    pub async fn settle_within(&self, limit: Duration) {
        let rested = self.rests_within(limit).await;
        assert!(rested, "not at rest after {limit:?}; the last steps were {:#?}", self.last_steps());
    }

    async fn rests_within(&self, limit: Duration) -> bool {
        let mut watch = self.pace.stopwatch(limit);
        let mut seen = self.gate.requests();
        while !watch.is_over() {
            watch.tick().await;
            let now = self.gate.requests();
            if self.busy().await > 0 || now != seen {
                seen = now;
                watch.disturbed();
            } else if watch.is_quiet() {
                return true;
            }
        }
        false
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(self.pace.scaled(time)).await;
    }

    /// Waits until something holds; false if it does not within the limit.
    pub async fn holds_within(&self, limit: Duration, holds: impl AsyncFn(&Self) -> bool) -> bool {
        let mut watch = self.pace.stopwatch(limit);
        loop {
            if holds(self).await {
                return true;
            }
            if watch.is_over() {
                return false;
            }
            watch.pause().await;
        }
    }

    /// Waits until an object's `Ready` condition says this (`True/Synced`, or `gone` for an object that is no more).
    pub async fn until_ready(&self, id: &str, ready: &str) {
        let said =
            self.holds_within(Duration::from_secs(1800), async |world: &Self| world.cluster.ready(id).await == ready);
        assert!(
            said.await,
            "{id} should become {ready}, but is {}: {}; the last steps were {:#?}",
            self.cluster.ready(id).await,
            self.cluster.message(id).await,
            self.last_steps()
        );
    }

    /// Cloudflare writes since the last time.
    pub fn writes(&self) -> Vec<String> {
        self.cloudflare.take_writes()
    }

    /// The operator's writes to the cluster since the last time.
    pub fn cluster_writes(&self) -> Vec<String> {
        let steps = self.gate.take();
        steps.into_iter().filter(|step| step.system == System::Kubernetes).map(|step| step.text).collect()
    }

    /// Forgets all requests and steps so far.
    pub fn forget(&self) {
        self.cloudflare.take_requests();
        self.gate.take();
    }

    fn last_steps(&self) -> Vec<Step> {
        let steps = self.gate.steps();
        steps[steps.len().saturating_sub(12)..].to_vec()
    }

    /// What the invariants are checked on: one more pass over everything, which must write nothing, and all there is.
    pub async fn evidence(&self) -> Evidence {
        let before = self.cloudflare.simulator.request_count();
        self.gate.take();
        self.drift_pass().await;
        self.settle().await;
        let log = self.cloudflare.simulator.requests();
        let mut late_writes = self.cluster_writes();
        late_writes.extend(log[before..].iter().filter(|request| request.is_write()).map(shown));
        let mut objects = Vec::new();
        for row in portolan_cloudflare::kinds::table() {
            objects.extend(self.cluster.list(row.kind).await);
        }
        let events = self.cluster.list("Event").await;
        Evidence {
            log: log.iter().map(Recorded::to_json).collect(),
            state: self.cloudflare.simulator.state(),
            objects,
            foreign: self.cloudflare.foreign(),
            secrets: vec![m::CANARY.to_owned()],
            texts: events.iter().map(Value::to_string).chain(self.plans()).chain([self.metrics().await]).collect(),
            owner: self.outside.owner.clone(),
            late_writes,
        }
    }

    /// What a run is compared by: everything live at Cloudflare, and what the users see.
    pub async fn essentials(&self) -> Value {
        let mut all = crate::cloudflare::essentials(&self.cloudflare.simulator.state());
        for kind in portolan_cloudflare::kinds::table().iter().map(|row| row.kind) {
            let mut objects: Vec<String> =
                self.cluster.list(kind).await.iter().map(|one| crate::cluster::essence(one).to_string()).collect();
            objects.sort();
            all[kind] = json!(objects);
        }
        all
    }
}
