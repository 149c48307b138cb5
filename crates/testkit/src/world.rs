//! A world: an API server, a Cloudflare simulator and the operator between them, on one clock.
//!
//! On the embedded API server everything runs in one thread under tokio's paused clock, so that the same seed gives the
//! same run. On a real one the clock is the wall's, and all waits are shortened.

use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use kube::Client;
use portolan_apiserver::{ApiServer, Config, Workloads};
use portolan_cloudflare_api::{Clients, Settings as ApiSettings};
use portolan_cloudflare_sim::{Options, Simulator};
use portolan_core::{Clock, OwnerId};
use portolan_engine::{Context, Drift};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::sync::Mutex;
use tower::Layer as _;

use crate::clock;
use crate::cloudflare::{Cloudflare, shown};
use crate::cluster::Cluster;
use crate::failpoints::{Failpoints, IoStep, System};
use crate::fixtures;
use crate::job::WorldJob;
use crate::operator::{Outside, Process};
use crate::pace::{Stopwatch, WorldPace};
use crate::prepared::prepared;
use crate::process::{OperatorProcess, Processes};
use crate::real::RealServer;
use crate::rights::{self, Refusals, RoleIdentity};
use crate::transport::SharedTransport;

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
    uneven: bool,
    rate_limit: Option<(u32, Duration)>,
    hides_vanished_zones: bool,
    largest_page: Option<u64>,
    drift: Drift,
    backend: Backend,
    started: bool,
    begins: Timestamp,
    owner: OwnerId,
    job: &'static WorldJob,
    /// As the job has them, unless this is said.
    processes: Option<Processes>,
    workloads: Workloads,
    /// The account and the clock of another world, whose neighbour this one is.
    beside: Option<(SharedTransport, Clock)>,
}

impl Builder {
    /// A world of a job.
    pub fn of(job: &'static WorldJob) -> Self {
        Self {
            seed: 1,
            plan: "enterprise",
            latency: Duration::ZERO,
            uneven: false,
            rate_limit: Some((1200, Duration::from_secs(300))),
            hides_vanished_zones: false,
            largest_page: None,
            drift: Drift::Off,
            backend: Backend::Embedded,
            started: true,
            begins: clock::beginning(),
            owner: OwnerId::derive("the-worlds-cluster"),
            job,
            processes: None,
            workloads: Workloads::Off,
            beside: None,
        }
    }

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

    /// Requests take from no time to twice the latency, by the seed: answers overtake each other.
    pub fn uneven(self) -> Self {
        Self { uneven: true, ..self }
    }

    /// Requests of a token in a window; `None` for no limit.
    pub fn rate_limit(self, rate_limit: Option<(u32, Duration)>) -> Self {
        Self { rate_limit, ..self }
    }

    /// Answers for zones that are gone as for zones that the credential has no right to.
    pub fn hides_vanished_zones(self, hides_vanished_zones: bool) -> Self {
        Self { hides_vanished_zones, ..self }
    }

    /// Cuts larger pages of listings down to this without a word.
    pub fn largest_page(self, largest: u64) -> Self {
        Self { largest_page: Some(largest), ..self }
    }

    /// When drift passes are made by themselves; never, unless this is said.
    pub fn drift(self, drift: Drift) -> Self {
        Self { drift, ..self }
    }

    /// Whose API server it is.
    pub fn backend(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// What the operator does.
    pub fn job(self, job: &'static WorldJob) -> Self {
        Self { job, ..self }
    }

    /// How the operator is divided into processes, and how it is set.
    pub fn roles(self, roles: impl Into<Processes>) -> Self {
        Self { processes: Some(roles.into()), ..self }
    }

    /// Lets the embedded API server make pods of Deployments, as a real one's controllers do.
    pub fn workloads(self) -> Self {
        Self { workloads: Workloads::On, ..self }
    }

    /// Another cluster on the account of a world, with an owner of its own; to be made before anybody looks on there.
    pub fn beside(self, world: &World) -> Self {
        let owner = OwnerId::derive("another-cluster");
        Self { beside: Some((world.outside.line.clone(), world.outside.clock.clone())), owner, ..self }
    }

    /// When it begins, on an embedded API server.
    pub fn begins(self, begins: Timestamp) -> Self {
        Self { begins, ..self }
    }

    /// Whose marks are the operator's.
    pub fn owner(self, owner: OwnerId) -> Self {
        Self { owner, ..self }
    }

    /// Leaves the operator out until [`World::restart`].
    pub fn asleep(self) -> Self {
        Self { started: false, ..self }
    }

    /// Makes the world and waits until it rests.
    pub async fn start(self) -> World {
        let world = self.make().await;
        fixtures::furnish(&world, self.plan, self.beside.is_some()).await;
        world.cloudflare.keep_seeded();
        if self.started {
            world.restart().await;
            world.settle().await;
        }
        world.forget();
        world
    }

    async fn make(&self) -> World {
        let (line, clock) = match &self.beside {
            Some((line, clock)) => (line.clone(), clock.clone()),
            None => self.alone(),
        };
        let processes = self.processes();
        let all_failpoints: Vec<(OperatorProcess, Failpoints)> =
            processes.all.iter().map(|process| (*process, Failpoints::default())).collect();
        let server = self.server(&clock).await;
        World {
            cluster: Cluster::new(server.users_client(), self.job),
            cloudflare: Cloudflare::new(&line, self.job),
            pace: WorldPace::of(&self.backend),
            outside: Outside {
                job: self.job,
                processes,
                clock,
                line,
                owner: self.owner.clone(),
                seed: self.seed,
                drift: self.drift,
                plans: Arc::default(),
                lives: AtomicU64::default(),
            },
            failpoints: all_failpoints.first().map(|(_, failpoints)| failpoints.clone()).unwrap_or_default(),
            all_failpoints,
            kept: OnceLock::new(),
            running: Mutex::default(),
            refusals: Refusals::default(),
            runs_workloads: self.workloads == Workloads::On || matches!(self.backend, Backend::Real(_)),
            server,
        }
    }

    /// A simulator and a clock that no other world has.
    fn alone(&self) -> (SharedTransport, Clock) {
        let clock = match &self.backend {
            Backend::Embedded => clock::tokio_clock(self.begins),
            Backend::Real(_) => Arc::new(jiff::Timestamp::now),
        };
        let simulator = Simulator::open(Options {
            clock: clock.clone(),
            rate_limit: self.rate_limit,
            seed: self.seed,
            record: recording(self.seed),
            hides_vanished_zones: self.hides_vanished_zones,
            largest_page: self.largest_page,
            ..Options::default()
        });
        let mut line = SharedTransport::to(simulator.expect("the recording can be written"), self.latency);
        line.uneven = self.uneven.then(|| Arc::new(std::sync::Mutex::new(StdRng::seed_from_u64(self.seed))));
        (line, clock)
    }

    /// The processes that the operator consists of.
    fn processes(&self) -> Processes {
        self.processes.clone().unwrap_or_else(self.job.processes)
    }

    async fn server(&self, clock: &Clock) -> WorldServer {
        match &self.backend {
            Backend::Real(server) => WorldServer::Real(server.clone()),
            Backend::Embedded => {
                let config = Config {
                    clock: clock.clone(),
                    seed: Some(self.seed),
                    workloads: self.workloads,
                    ..Config::default()
                };
                let apart = self.processes().all.iter().any(|process| self.job.is_part(*process));
                WorldServer::Embedded(ApiServer::open_from(config, prepared(self.job, apart)).await)
            }
        }
    }
}

/// The API server of a world.
enum WorldServer {
    Embedded(ApiServer),
    Real(Arc<RealServer>),
}

impl WorldServer {
    /// A client of users, who may do everything.
    fn users_client(&self) -> Client {
        match self {
            Self::Real(server) => server.client(),
            Self::Embedded(server) => Client::new(server.service(), "default"),
        }
    }

    /// A client of the operator, which has an account of its own and goes through its failpoints.
    fn operators_client(&self, identity: &RoleIdentity, failpoints: &Failpoints, refusals: &Refusals) -> Client {
        match self {
            Self::Real(server) => server.client_as(identity, failpoints, refusals),
            Self::Embedded(server) => {
                let groups: Vec<&str> = identity.groups.iter().map(String::as_str).collect();
                Client::new(failpoints.layer(refusals.layer(server.service_as(&identity.user, &groups))), "default")
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
    pub failpoints: Failpoints,
    /// How fast time goes.
    pub pace: WorldPace,
    pub(crate) outside: Outside,
    /// What the job's checks keep of it, where they do.
    kept: OnceLock<Box<dyn Any + Send + Sync>>,
    all_failpoints: Vec<(OperatorProcess, Failpoints)>,
    running: Mutex<Vec<(OperatorProcess, Process)>>,
    refusals: Refusals,
    runs_workloads: bool,
    server: WorldServer,
}

impl World {
    /// The same world with an operator that is set otherwise from its next start on; it must not run now, and has as many
    /// processes as before.
    #[must_use]
    pub fn with_roles(mut self, roles: impl Into<Processes>) -> Self {
        self.outside.processes = roles.into();
        self
    }

    /// What the operator was refused in the cluster for want of a right, since the last time. A world that ends with
    /// refusals fails.
    pub fn take_refusals(&self) -> Vec<String> {
        self.refusals.take()
    }

    /// Whether the operator consists of several processes, which have rights of their own.
    pub(crate) fn is_apart(&self) -> bool {
        self.all_failpoints.iter().any(|(process, _)| self.job().is_part(*process))
    }

    /// Forgets how the cluster came to be as it is, as a server does in time: whoever goes on from an older version is told to
    /// list anew.
    pub fn forget_history(&self) {
        if let WorldServer::Embedded(server) = &self.server {
            server.store().compact(server.store().version());
        }
    }

    /// Whether the cluster makes pods of Deployments.
    pub fn runs_workloads(&self) -> bool {
        self.runs_workloads
    }

    /// The API server, where it is an embedded one.
    pub fn server(&self) -> &ApiServer {
        let embedded = match &self.server {
            WorldServer::Embedded(server) => Some(server),
            WorldServer::Real(_) => None,
        };
        embedded.expect("a real API server is another process")
    }

    /// A context for controllers that a test runs itself, over its own client of the cluster. Their waits are the usual ones.
    pub fn context(&self, client: Client) -> Context {
        self.outside.context(client)
    }

    /// Clients of Cloudflare for such controllers, with the usual waits.
    pub fn clients(&self) -> Clients {
        self.outside.clients(ApiSettings { seed: self.outside.seed, ..ApiSettings::default() }, Failpoints::default())
    }

    /// Waits until Cloudflare has worked on everything that was sent, whoever sent it and lives no more.
    pub async fn worked_off(&self) {
        let sent = &self.outside.line.sent;
        sent.close();
        sent.wait().await;
        sent.reopen();
    }

    /// Whether other worlds were on the same API server.
    pub fn is_shared(&self) -> bool {
        matches!(self.server, WorldServer::Real(_))
    }

    /// What the operator does.
    pub fn job(&self) -> &'static WorldJob {
        self.outside.job
    }

    /// Keeps something for the job's checks; what was kept first stays.
    pub fn keep<T: Any + Send + Sync>(&self, kept: T) {
        // Whoever comes later looks on for its test alone.
        let _ = self.kept.set(Box::new(kept));
    }

    /// What was kept.
    pub fn kept<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.kept.get()?.downcast_ref()
    }

    /// Whose marks are ours.
    pub fn owner(&self) -> &OwnerId {
        &self.outside.owner
    }

    /// The world's clock.
    pub fn clock(&self) -> &Clock {
        &self.outside.clock
    }

    /// Milliseconds since 1970 by the world's clock.
    pub fn now(&self) -> i64 {
        (self.outside.clock)().as_millisecond()
    }

    /// Kills the operator: everything it runs and remembers is gone.
    pub async fn crash(&self) {
        for (_, process) in std::mem::take(&mut *self.running.lock().await) {
            process.kill().await;
        }
    }

    /// Starts the operator, which was killed or never ran.
    pub async fn restart(&self) {
        self.crash().await;
        for (process, _) in &self.all_failpoints {
            self.restart_part(*process).await;
        }
    }

    /// Stops the operator as a signal does.
    pub async fn stop(&self) {
        for (_, process) in std::mem::take(&mut *self.running.lock().await) {
            process.stop().await;
        }
    }

    /// Kills one process of the operator.
    pub async fn crash_part(&self, process: OperatorProcess) {
        if let Some(running) = self.take_running(process).await {
            running.kill().await;
        }
    }

    /// Starts one process of the operator anew.
    pub async fn restart_part(&self, process: OperatorProcess) {
        self.crash_part(process).await;
        let failpoints = self.failpoints_of(process);
        failpoints.open();
        let identity = rights::identity(self.job(), process);
        let client = self.server.operators_client(&identity, failpoints, &self.refusals);
        let started = Process::start(&self.outside, process, client, failpoints.clone(), &self.pace);
        let mut running = self.running.lock().await;
        running.push((process, started));
        running.sort_by_key(|(process, _)| self.all_failpoints.iter().position(|(one, _)| one == process));
    }

    /// Stops one process of the operator as a signal does.
    pub async fn stop_part(&self, process: OperatorProcess) {
        if let Some(running) = self.take_running(process).await {
            running.stop().await;
        }
    }

    async fn take_running(&self, process: OperatorProcess) -> Option<Process> {
        let mut running = self.running.lock().await;
        let position = running.iter().position(|(one, _)| *one == process)?;
        Some(running.remove(position).1)
    }

    /// What one process of the operator does, step by step.
    pub fn failpoints_of(&self, process: OperatorProcess) -> &Failpoints {
        let found = self.all_failpoints.iter().find(|(one, _)| *one == process);
        found.map(|(_, failpoints)| failpoints).expect("the world has such a process")
    }

    /// The processes that the operator consists of.
    pub fn parts(&self) -> Vec<OperatorProcess> {
        self.all_failpoints.iter().map(|(process, _)| *process).collect()
    }

    /// How many objects are at work or due.
    pub async fn busy(&self) -> usize {
        self.running.lock().await.iter().map(|(_, process)| process.busy()).sum()
    }

    /// Compares everything with what stands at Cloudflare, now.
    pub async fn drift_pass(&self) {
        let passing: Vec<_> = self.running.lock().await.iter().map(|(_, process)| process.handle()).collect();
        for handle in passing {
            handle.drift_pass().await;
        }
    }

    /// The operator's measurements, as Prometheus reads them.
    pub async fn metrics(&self) -> String {
        self.running.lock().await.iter().map(|(_, process)| process.metrics()).collect()
    }

    /// What the operator planned so far, as users read it.
    pub fn plans(&self) -> Vec<String> {
        self.outside.plans.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

    /// Waits until something holds that a watch tells the operator of: sooner than time alone would bring it.
    pub async fn until_by_watch(&self, holds: impl AsyncFn(&Self) -> bool) {
        let held = self.holds(self.pace.by_watch(), holds).await;
        assert!(held, "it comes by watch, not by time; the last steps were {:#?}", self.last_steps());
    }

    /// The same for what an object's `Ready` condition says.
    pub async fn until_ready_by_watch(&self, id: &str, ready: &str) {
        let held = self.holds(self.pace.by_watch(), async |world: &Self| world.cluster.ready(id).await == ready).await;
        let (now, message) = (self.cluster.ready(id).await, self.cluster.message(id).await);
        assert!(held, "{id} should become {ready} by watch, not by time, but is {now}: {message}");
    }

    /// Whether the operator rests within a limit.
    pub async fn rests_within(&self, limit: Duration) -> bool {
        let mut watch = self.pace.stopwatch(limit);
        let mut seen = self.requests();
        while !watch.is_over() {
            watch.tick().await;
            let now = self.requests();
            if self.busy().await > 0 || now != seen {
                seen = now;
                watch.disturbed();
            } else if watch.is_quiet() {
                return true;
            }
        }
        false
    }

    fn every_failpoints(&self) -> impl Iterator<Item = &Failpoints> {
        self.all_failpoints.iter().map(|(_, failpoints)| failpoints)
    }

    /// Requests of any sort that the operator made.
    fn requests(&self) -> usize {
        self.every_failpoints().map(Failpoints::requests).sum()
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(self.pace.scaled(time)).await;
    }

    /// Waits until something holds; false if it does not within the limit.
    pub async fn holds_within(&self, limit: Duration, holds: impl AsyncFn(&Self) -> bool) -> bool {
        self.holds(self.pace.stopwatch(limit), holds).await
    }

    async fn holds(&self, mut watch: Stopwatch, holds: impl AsyncFn(&Self) -> bool) -> bool {
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
        let steps = self.every_failpoints().flat_map(Failpoints::take);
        steps.filter(|step| step.system == System::Kubernetes).map(|step| step.text).collect()
    }

    /// Forgets all requests and steps so far.
    pub fn forget(&self) {
        self.cloudflare.take_requests();
        self.every_failpoints().for_each(|failpoints| drop(failpoints.take()));
    }

    fn last_steps(&self) -> Vec<IoStep> {
        let steps: Vec<IoStep> = self.every_failpoints().flat_map(Failpoints::steps).collect();
        steps[steps.len().saturating_sub(12)..].to_vec()
    }

    /// Sends a request as a careless operator would, before the eyes of whoever looks on; returns the result.
    pub async fn misbehave(&self, method: &str, path: &str, body: &Value) -> Value {
        self.misbehave_as(self.job().token, method, path, body).await
    }

    /// The same with another token.
    pub async fn misbehave_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("https://api.cloudflare.com/client/v4/{path}"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(body)
            .expect("the request is complete");
        let answer = self.outside.line.work_on(request).await.expect("nothing is dropped");
        let answer: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        answer["result"].clone()
    }

    /// Looks for drift once more and gives back what was written because of it: nothing, in a world at rest.
    pub async fn late_writes(&self) -> Vec<String> {
        let before = self.cloudflare.simulator.request_count();
        self.every_failpoints().for_each(|failpoints| drop(failpoints.take()));
        self.drift_pass().await;
        self.settle().await;
        let log = self.cloudflare.simulator.requests();
        let mut late_writes = self.cluster_writes();
        late_writes.extend(log[before..].iter().filter(|request| request.is_write()).map(shown));
        late_writes
    }

    /// Checks what must hold whatever happened.
    pub async fn assert_sound(&self, place: &str) {
        (self.job().assert_sound)(self, place).await;
    }

    /// What a run is compared by: everything live at Cloudflare, and what the users see.
    pub async fn canonical_form(&self) -> Value {
        (self.job().canonical_form)(self).await
    }
}

/// No controller needs a right that the chart does not give it.
impl Drop for World {
    fn drop(&mut self) {
        let refused = self.refusals.take();
        if std::thread::panicking() && !refused.is_empty() {
            crate::tell(&format!("the operator was refused before that: {refused:#?}"));
            return;
        }
        assert!(refused.is_empty(), "the operator was refused: {refused:#?}");
    }
}
