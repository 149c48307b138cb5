//! What all controllers of a process share. Nothing is global.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt as _};
use portolan_core::{Clock, ObjectId, OwnerId, Plan, Problem};

use crate::logs::levels::Levels;
use crate::observe::metrics::Metrics;
use crate::pass::annotations::Steering;
use crate::pass::events::Events;
use crate::purity::Purity;

/// The name under which we own fields.
pub const FIELD_MANAGER: &str = "portolan";

/// What may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// Everything.
    #[default]
    Live,
    /// Nothing anywhere; plans are handed to [`Context::plans`].
    DryRun,
    /// Kubernetes only, which is a copy that nobody else sees; nothing is applied.
    Shadow,
}

/// How long things take.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The first wait after a transient problem; it doubles with every failure in a row.
    pub transient: Duration,
    /// The longest wait after a transient problem.
    pub transient_most: Duration,
    /// The wait for something that is not there yet; a watch usually ends it sooner.
    pub waiting: Duration,
    /// The wait after a refused credential or permission.
    pub denied: Duration,
    /// How long an event is not repeated.
    pub event_silence: Duration,
    /// How long running passes may take to end when the program stops.
    pub grace: Duration,
    /// Passes of one controller at once. Most of them wait for a shared write.
    pub in_flight: usize,
    /// Single objects read at once by one controller.
    pub reads: usize,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            transient: Duration::from_secs(10),
            transient_most: Duration::from_secs(300),
            waiting: Duration::from_secs(30),
            denied: Duration::from_secs(300),
            event_silence: Duration::from_secs(600),
            grace: Duration::from_secs(20),
            in_flight: 400,
            reads: 64,
        }
    }
}

/// Takes what was planned for an object, or why nothing could be.
pub type PlanSink = Arc<dyn Fn(ObjectId, Result<Plan, Problem>) + Send + Sync>;

/// What all controllers of a process share; a job with needs of its own changes a clone.
#[derive(Clone)]
pub struct Context {
    /// The cluster.
    pub client: Client,
    /// Tells the time that statuses, events and leases show.
    pub clock: Clock,
    /// What may be written.
    pub mode: WriteMode,
    /// Where our own objects are.
    pub operator_namespace: String,
    /// Whose marks are ours.
    pub owner: OwnerId,
    /// How long things take.
    pub timing: Timing,
    /// Makes jitter repeatable.
    pub seed: u64,
    /// Where measurements go.
    pub metrics: Arc<Metrics>,
    /// Who is told about every plan.
    pub plans: Option<PlanSink>,
    /// Writes events, each once.
    pub events: Events,
    /// How much is logged of the work in each log scope.
    pub levels: Levels,
    /// Whether pure steps are held to their word, as tests do.
    pub purity: Purity,
    /// Where annotations are read by which users steer single objects; a job has its own.
    pub steering: Steering,
}

impl Context {
    /// A live context with the usual timing. The owner is to be replaced by the cluster's own
    /// (see [`cluster_owner`]) or the user's.
    pub fn new(client: Client, clock: Clock, owner: OwnerId) -> Self {
        Self {
            events: Events::new(client.clone(), clock.clone(), Timing::default().event_silence),
            client,
            clock,
            mode: WriteMode::Live,
            operator_namespace: "portolan-system".to_owned(),
            owner,
            timing: Timing::default(),
            seed: 0,
            metrics: Arc::new(Metrics::new()),
            plans: None,
            levels: Levels::process(),
            purity: Purity::default(),
            steering: Steering::default(),
        }
    }

    /// Takes a step that reads and writes nothing. Who decides outside of a controller's pass, as looks for drift do, takes those
    /// steps by this too, and is held to its word with the rest.
    pub fn pure<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        self.purity.step(step)
    }
}

/// The owner that a cluster has by itself: derived from its `kube-system` namespace's uid.
pub async fn cluster_owner(client: &Client) -> Result<OwnerId, kube::Error> {
    let namespace = Api::<Namespace>::all(client.clone()).get("kube-system").await?;
    Ok(OwnerId::derive(&namespace.uid().unwrap_or_default()))
}
