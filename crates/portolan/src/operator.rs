//! The controllers of this process: a cluster and Cloudflare in, running jobs out.

use std::sync::Arc;

use futures::future::BoxFuture;
use portolan_cloudflare as cloudflare;
use portolan_cloudflare_api::{Clients, HttpTransport, Settings as ApiSettings, Transport};
use portolan_core::{Clock, OwnerId};
use portolan_engine::{
    Candidacy, Context, Drift, Job, JobHandle, Leadership, Manager, Metrics, PlanSink, Probes, WriteMode,
};
use portolan_zerotrust as zerotrust;

use crate::failure::{Failure, Outcome};
use crate::jobs::JobName;

/// Where the cloudflare job's own objects are unless the user says otherwise; the older operator's place.
pub(crate) const NAMESPACE: &str = "cloudflare-operator-system";

/// Looks whether a job may start; says in a sentence what it lacks.
pub(crate) type StartCheck = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// How the controllers run.
pub(crate) struct OperatorOptions {
    /// What they do.
    pub(crate) jobs: Vec<JobName>,
    pub(crate) mode: WriteMode,
    pub(crate) owner: OwnerId,
    pub(crate) namespace: String,
    /// This process's name in the election; none runs without one.
    pub(crate) candidate: Option<String>,
    pub(crate) plans: Option<PlanSink>,
    /// When the cloudflare job looks for drift.
    pub(crate) drift: Drift,
    /// How the zerotrust job runs.
    pub(crate) zerotrust: zerotrust::Settings,
    /// What the zerotrust job waits for.
    pub(crate) needs: Option<StartCheck>,
    /// How to talk to Cloudflare.
    pub(crate) api: ApiSettings,
}

impl OperatorOptions {
    /// Live controllers without an election, and with no others beside them.
    pub(crate) fn new(owner: OwnerId, base_url: impl Into<String>) -> Self {
        Self {
            jobs: JobName::ALL.to_vec(),
            mode: WriteMode::Live,
            owner,
            namespace: NAMESPACE.to_owned(),
            candidate: None,
            plans: None,
            drift: Drift::default(),
            zerotrust: zerotrust::Settings::default(),
            needs: None,
            api: ApiSettings { base_url: base_url.into(), ..ApiSettings::default() },
        }
    }
}

impl OperatorOptions {
    /// The lease of a job, which is in the job's own namespace.
    fn candidacy(&self, job: JobName) -> Option<Candidacy> {
        let (namespace, lease) = match job {
            JobName::Cloudflare => (&self.namespace, Some(cloudflare::LEASE)),
            JobName::Zerotrust => (&self.zerotrust.operator_namespace, self.zerotrust.role.lease()),
        };
        let (lease, identity) = (lease?.to_owned(), self.candidate.clone()?);
        Some(Candidacy { namespace: namespace.clone(), lease, identity })
    }
}

/// Running controllers. Dropping them stops everything at once.
pub(crate) struct Operator {
    manager: Manager,
    handles: Vec<(JobName, JobHandle)>,
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
    pub(crate) fn start_with(client: kube::Client, options: OperatorOptions, transport: Arc<dyn Transport>) -> Self {
        let clock: Clock = Arc::new(jiff::Timestamp::now);
        let clients = Arc::new(Clients::new(options.api.clone(), transport, clock.clone()));
        let context = Arc::new(context(client, &options, clock));
        context.metrics.register(|registry| clients.metrics().register(registry));
        context.metrics.built(env!("CARGO_PKG_VERSION"), options.zerotrust.role.as_str());
        let jobs = options.jobs.iter().map(|name| (*name, job(*name, &context, &clients, &options)));
        let (managed, handles): (Vec<Job>, Vec<_>) = jobs.map(|(name, (job, handle))| (job, (name, handle))).unzip();
        let manager = Manager::start(&context, managed);
        Self { manager, handles, metrics: context.metrics.clone() }
    }

    /// How many objects are at work or due; 0 means that nothing happens before something changes.
    pub(crate) fn busy(&self) -> usize {
        self.manager.busy()
    }

    /// One of the jobs, if it runs here.
    pub(crate) fn job(&self, name: JobName) -> Option<&JobHandle> {
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
fn job(name: JobName, context: &Arc<Context>, clients: &Arc<Clients>, options: &OperatorOptions) -> (Job, JobHandle) {
    let candidacy = options.candidacy(name);
    let leadership = Leadership::default();
    let (context, clients) = match candidacy {
        Some(_) => guarded(&leadership, context, clients),
        None => (Arc::clone(context), Arc::clone(clients)),
    };
    let (job, handle) = match name {
        JobName::Cloudflare => {
            let settings = cloudflare::Settings { drift: options.drift };
            let job = cloudflare::CloudflareJob::new(context.clone(), clients.clone(), settings);
            let handle = job.handle();
            (job.into_managed(), handle)
        }
        JobName::Zerotrust => {
            let job = zerotrust::ZerotrustJob::new(&context, &clients, options.zerotrust.clone());
            let (handle, job) = (job.handle(), job.into_managed());
            match options.needs.clone() {
                Some(needs) => (job.needing(move || needs()), handle),
                None => (job, handle),
            }
        }
    };
    match candidacy {
        Some(candidacy) => (job.elected(candidacy).granting(&leadership), handle),
        None => (job, handle),
    }
}

/// A cluster and Cloudflare for who writes only while it leads.
fn guarded(leadership: &Leadership, context: &Context, clients: &Clients) -> (Arc<Context>, Arc<Clients>) {
    let context = Context { client: leadership.guard(&context.client), ..context.clone() };
    (Arc::new(context), Arc::new(clients.within(&leadership.gate())))
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

#[cfg(test)]
mod tests {
    use zerotrust::Role;

    use super::*;

    fn lease(job: JobName, role: Role) -> Option<String> {
        let mut options = OperatorOptions::new(OwnerId::derive("test"), "");
        options.candidate = Some("me".to_owned());
        options.zerotrust.role = role;
        options.candidacy(job).map(|candidacy| format!("{}/{}", candidacy.namespace, candidacy.lease))
    }

    #[test]
    fn every_job_is_led_in_its_own_namespace_and_under_a_name_of_its_role() {
        let zerotrust = |role| lease(JobName::Zerotrust, role).unwrap_or_default();

        assert_eq!(zerotrust(Role::All), "cloudflare-zero-trust/cloudflare-zero-trust-operator");
        assert_eq!(zerotrust(Role::KubeWorker), zerotrust(Role::All));
        assert_eq!(zerotrust(Role::Manager), "cloudflare-zero-trust/cloudflare-zero-trust-manager");
        assert_eq!(zerotrust(Role::CloudflareWorker), "");
        let cloudflare = lease(JobName::Cloudflare, Role::KubeWorker);
        assert!(cloudflare.is_some_and(|lease| lease.starts_with("cloudflare-operator-system/")));
    }

    #[test]
    fn nobody_stands_for_election_unless_asked() {
        let options = OperatorOptions::new(OwnerId::derive("test"), "");

        assert_eq!(options.candidacy(JobName::Zerotrust), None);
    }
}
