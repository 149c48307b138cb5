//! What a test says of its world before it begins → the world: simulator, API server and operator, on one clock.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use portolan_apiserver::{ApiServer, Config, Workloads};
use portolan_cloudflare_sim::{Options, Simulator};
use portolan_core::{Clock, OwnerId};
use portolan_engine::Drift;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::Mutex;

use super::World;
use super::server::WorldServer;
use crate::clock;
use crate::cloudflare::Cloudflare;
use crate::cluster::Cluster;
use crate::failpoints::Failpoints;
use crate::fixtures;
use crate::job::WorldJob;
use crate::operator::Outside;
use crate::pace::WorldPace;
use crate::prepared::prepared;
use crate::process::{OperatorProcess, Processes};
use crate::real::RealServer;
use crate::rights::Refusals;
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

/// Where requests are recorded: a file of its own for every world, when the environment names a folder.
fn recording(seed: u64) -> Option<PathBuf> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static WORLDS: AtomicU64 = AtomicU64::new(0);
    let folder = PathBuf::from(std::env::var_os("PORTOLAN_RECORD_DIR")?);
    let number = WORLDS.fetch_add(1, Ordering::Relaxed);
    Some(folder.join(format!("world-{}-{number}-{seed}.jsonl", std::process::id())))
}
