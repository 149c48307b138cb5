//! The controllers of this process: a cluster and Cloudflare in, running jobs out.

use std::sync::Arc;

use futures::future::BoxFuture;
use portolan_cloudflare_api::{Clients, HttpTransport, Settings as ApiSettings, Transport};
use portolan_core::{Clock, OwnerId};
use portolan_engine::{
    Context, Job, JobDefinition, JobHandle, Lacking, Manager, Metrics, PlanSink, Probes, Provisions, WriteMode,
};

use crate::failure::{Failure, Outcome};
use crate::jobs;

/// Where a job's own objects are unless it or the user says otherwise; the older operator's place.
pub(crate) const NAMESPACE: &str = "cloudflare-operator-system";

/// Looks whether a job may start; says in a sentence what it lacks.
pub(crate) type Needs = Arc<dyn Fn(&'static JobDefinition) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// How the controllers run.
pub(crate) struct OperatorOptions {
    /// What they do.
    pub(crate) jobs: Vec<&'static JobDefinition>,
    pub(crate) mode: WriteMode,
    pub(crate) owner: OwnerId,
    pub(crate) namespace: String,
    /// This process's name in the election; none runs without one.
    pub(crate) candidate: Option<String>,
    pub(crate) plans: Option<PlanSink>,
    /// What the jobs are told.
    pub(crate) provisions: Provisions,
    /// What jobs that wait for something wait for.
    pub(crate) needs: Option<Needs>,
    /// How to talk to Cloudflare.
    pub(crate) api: ApiSettings,
}

impl OperatorOptions {
    /// Live controllers without an election, and with no others beside them.
    pub(crate) fn new(owner: OwnerId, base_url: impl Into<String>) -> Self {
        Self {
            jobs: jobs::ALL.to_vec(),
            mode: WriteMode::Live,
            owner,
            namespace: NAMESPACE.to_owned(),
            candidate: None,
            plans: None,
            provisions: Provisions::default(),
            needs: None,
            api: ApiSettings { base_url: base_url.into(), ..ApiSettings::default() },
        }
    }
}

/// Running controllers. Dropping them stops everything at once.
pub(crate) struct Operator {
    manager: Manager,
    handles: Vec<(&'static str, JobHandle)>,
    metrics: Arc<Metrics>,
}

impl Operator {
    /// Starts them over HTTP.
    pub(crate) fn start(client: kube::Client, options: OperatorOptions) -> Outcome<Self> {
        let transport = HttpTransport::new()
            .map_err(|error| Failure::new(format!("cannot prepare connections to Cloudflare: {error}")))?;
        Ok(Self::start_with(client, options, Arc::new(transport)))
    }

    /// Starts them over any transport.
    pub(crate) fn start_with(
        client: kube::Client,
        mut options: OperatorOptions,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let clock: Clock = Arc::new(jiff::Timestamp::now);
        let clients = Arc::new(Clients::new(options.api.clone(), transport, clock.clone()));
        let context = Arc::new(context(client, &options, clock));
        context.metrics.register(|registry| clients.metrics().register(registry));
        let part = jobs::part(&options.provisions).map_or("all", |(_, part)| part);
        context.metrics.built(env!("CARGO_PKG_VERSION"), part);
        options.provisions.put(clients);
        let managed: Vec<Job> = options.jobs.iter().map(|definition| job(definition, &context, &options)).collect();
        let names = options.jobs.iter().map(|definition| definition.sheet.name);
        let handles = names.zip(managed.iter().map(Job::handle)).collect();
        let manager = Manager::start(&context, managed);
        Self { manager, handles, metrics: context.metrics.clone() }
    }

    /// How many objects are at work or due; 0 means that nothing happens before something changes.
    pub(crate) fn busy(&self) -> usize {
        self.manager.busy()
    }

    /// One of the jobs, if it runs here.
    pub(crate) fn job(&self, name: &str) -> Option<&JobHandle> {
        self.handles.iter().find(|(known, _)| *known == name).map(|(_, handle)| handle)
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

/// A job, to be run while this process leads it, or always where there is no election.
fn job(definition: &'static JobDefinition, context: &Arc<Context>, options: &OperatorOptions) -> Job {
    let job = definition.job(context, &options.provisions, options.candidate.as_deref());
    match (definition.lacking, options.needs.clone()) {
        (Lacking::Waits, Some(needs)) => job.needing(move || needs(definition)),
        (Lacking::Waits, None) | (Lacking::Starts, _) => job,
    }
}

fn context(client: kube::Client, options: &OperatorOptions, clock: Clock) -> Context {
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
