//! The job as a whole: which of its sides run here, and with what.

use std::sync::Arc;

use portolan_cloudflare_api::{Clients, Readers, RetryPolicy};
use portolan_engine::{CancellationToken, Context, Job, JobStart, JobTasks, Passed};
use portolan_zerotrust_manager::{self as manager, Manager};
use portolan_zerotrust_routes::{self as routes, Routes};
use portolan_zerotrust_worker::{self as worker, Worker};

use crate::role::Role;

/// Where tasks and states are unless the user says otherwise; the older operators' place.
pub const NAMESPACE: &str = portolan_zerotrust_model::OPERATOR_NAMESPACE;

/// How the job runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which of its sides run here.
    pub role: Role,
    /// Where tasks and states are.
    pub operator_namespace: String,
    /// How a call to Cloudflare is repeated.
    pub retry: RetryPolicy,
    /// The side that keeps the operator's own Deployments in shape.
    pub manager: manager::Settings,
    /// The side in the cluster.
    pub routes: routes::Settings,
    /// The side at Cloudflare.
    pub worker: worker::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            role: Role::All,
            operator_namespace: NAMESPACE.to_owned(),
            retry: RetryPolicy::PATIENT,
            manager: manager::Settings::default(),
            routes: routes::Settings::default(),
            worker: worker::Settings::default(),
        }
    }
}

/// The job, ready to run.
struct ZerotrustJob {
    manager: Option<Manager>,
    routes: Option<Arc<Routes>>,
    worker: Option<Worker>,
}

/// Makes the sides of the job that run in this process, over a cluster and the clients of Cloudflare that the process has.
pub(crate) fn start(start: &JobStart<'_>) -> Job {
    let clients = start.provisions.get::<Arc<Clients>>().expect("a process with this job has clients of Cloudflare");
    let job = ZerotrustJob::new(&start.context, &clients.within(&start.gate), start.provisions.settings());
    Job::new(portolan_zerotrust_model::JOB, move |shutdown| job.tasks(shutdown))
}

impl ZerotrustJob {
    fn new(context: &Context, clients: &Clients, settings: Settings) -> Self {
        let context = Context { operator_namespace: settings.operator_namespace, ..context.clone() };
        let clients = Arc::new(clients.with_retry(settings.retry));
        let role = settings.role;
        let manager = role.shapes().then(|| Manager::new(&context, settings.manager));
        let readers = Readers::of(Arc::clone(&clients));
        let routes = role.sees_routes().then(|| Arc::new(Routes::new(&context, readers, settings.routes)));
        let worker = role.carries_out().then(|| Worker::new(&context, clients, settings.worker));
        Self { manager, routes, worker }
    }

    /// Everything that runs, made anew.
    fn tasks(&self, shutdown: &CancellationToken) -> JobTasks {
        let mut tasks = self.routes.as_ref().map(|routes| routes.tasks(shutdown)).unwrap_or_default();
        tasks.extend(self.manager.iter().flat_map(|manager| manager.tasks(shutdown)));
        tasks.extend(self.worker.iter().flat_map(|worker| worker.tasks(shutdown)));
        let routes = self.routes.clone();
        JobTasks::from(tasks).passing(move || {
            let routes = routes.clone();
            async move {
                match routes {
                    Some(routes) => routes.drift_pass().await,
                    None => Passed::default(),
                }
            }
        })
    }
}
