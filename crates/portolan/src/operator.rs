//! The controllers of this process: a cluster and Cloudflare in, a running job out.

use std::sync::Arc;

use portolan_cloudflare::{Drift, Job, JobHandle, LEASE, Settings};
use portolan_cloudflare_api::{Clients, HttpTransport, Settings as ApiSettings, Transport};
use portolan_core::{Clock, OwnerId};
use portolan_engine::{Context, Manager, Metrics, Mode, PlanSink, Probes};

use crate::failure::{Failure, Outcome};

/// Where our own objects are unless the user says otherwise; the older operator's place.
pub(crate) const NAMESPACE: &str = "cloudflare-operator-system";

/// How the controllers run.
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) owner: OwnerId,
    pub(crate) namespace: String,
    /// This process's name in the election; none runs without one.
    pub(crate) candidate: Option<String>,
    pub(crate) plans: Option<PlanSink>,
    pub(crate) drift: Drift,
    /// How to talk to Cloudflare.
    pub(crate) api: ApiSettings,
}

impl Options {
    /// Live controllers without an election.
    pub(crate) fn new(owner: OwnerId, base_url: impl Into<String>) -> Self {
        Self {
            mode: Mode::Live,
            owner,
            namespace: NAMESPACE.to_owned(),
            candidate: None,
            plans: None,
            drift: Drift::default(),
            api: ApiSettings { base_url: base_url.into(), ..ApiSettings::default() },
        }
    }
}

/// Running controllers. Dropping them stops everything at once.
pub(crate) struct Operator {
    manager: Manager,
    job: JobHandle,
    metrics: Arc<Metrics>,
}

impl Operator {
    /// Starts them over HTTP.
    pub(crate) fn start(client: kube::Client, options: Options) -> Outcome<Self> {
        let transport = HttpTransport::new()
            .map_err(|error| Failure::new(format!("cannot prepare connections to Cloudflare: {error}")))?;
        Ok(Self::start_with(client, options, Arc::new(transport)))
    }

    /// Starts them over any transport.
    pub(crate) fn start_with(client: kube::Client, options: Options, transport: Arc<dyn Transport>) -> Self {
        let clock: Clock = Arc::new(jiff::Timestamp::now);
        let clients = Arc::new(Clients::new(options.api.clone(), transport, clock.clone()));
        let context = Arc::new(context(client, &options, clock));
        context.metrics.register(|registry| clients.metrics().register(registry));
        let job = Job::new(context.clone(), clients, Settings { drift: options.drift });
        let handle = job.handle();
        let managed = match options.candidate {
            Some(candidate) => job.into_managed().elected(LEASE, candidate),
            None => job.into_managed(),
        };
        let manager = Manager::start(&context, [managed]);
        Self { manager, job: handle, metrics: context.metrics.clone() }
    }

    /// How many objects are at work or due; 0 means that nothing happens before something changes.
    pub(crate) fn busy(&self) -> usize {
        self.manager.busy()
    }

    /// The job itself.
    pub(crate) fn job(&self) -> &JobHandle {
        &self.job
    }

    /// What was measured so far.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// What the health endpoints answer.
    pub(crate) fn probes(&self) -> Probes {
        self.manager.probes()
    }

    /// Lets work that is under way end, and stops.
    pub(crate) async fn stop(self) {
        self.manager.shutdown().await;
    }
}

fn context(client: kube::Client, options: &Options, clock: Clock) -> Context {
    let mut context = Context::new(client, clock, options.owner.clone());
    context.mode = options.mode;
    context.operator_namespace.clone_from(&options.namespace);
    context.plans.clone_from(&options.plans);
    context.seed = seed();
    context
}

/// Processes that start together spread their retries differently.
fn seed() -> u64 {
    let nanoseconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    u64::from(nanoseconds) ^ (u64::from(std::process::id()) << 32)
}
