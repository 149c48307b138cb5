//! The job as a whole: which of its sides run here, and with what.

use std::sync::Arc;

use portolan_cloudflare_api::{Clients, Readers, RetryPolicy};
use portolan_engine::{CancellationToken, Context, JobHandle, Passed, Task};
use portolan_zerotrust_manager::{self as manager, Manager};
use portolan_zerotrust_routes::{self as routes, Routes};
use portolan_zerotrust_worker::{self as worker, Worker};

use crate::role::Role;

/// Where tasks and states are unless the user says otherwise; the older operators' place.
pub const NAMESPACE: &str = portolan_zerotrust_model::OPERATOR_NAMESPACE;

/// What the job measures, by the side that measures it.
pub const METRICS: [&[portolan_core::Metric]; 2] = [routes::METRICS, worker::METRICS];

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
pub struct ZerotrustJob {
    manager: Option<Manager>,
    routes: Option<Arc<Routes>>,
    worker: Option<Worker>,
    handle: JobHandle,
}

impl ZerotrustJob {
    /// A job over a cluster and Cloudflare.
    pub fn new(context: &Context, clients: &Clients, settings: Settings) -> Self {
        let context = Context { operator_namespace: settings.operator_namespace, ..context.clone() };
        let clients = Arc::new(clients.with_retry(settings.retry));
        let (role, handle) = (settings.role, JobHandle::default());
        let manager = role.shapes().then(|| Manager::new(&context, settings.manager));
        let readers = Readers::of(Arc::clone(&clients));
        let routes = role.sees_routes().then(|| Arc::new(Routes::new(&context, readers, settings.routes)));
        let worker = role.carries_out().then(|| Worker::new(&context, clients, settings.worker));
        Self { manager, routes, worker, handle }
    }

    /// The job as others see it.
    pub fn handle(&self) -> JobHandle {
        self.handle.clone()
    }

    /// The job for a manager, which runs it while it leads.
    pub fn into_managed(self) -> portolan_engine::Job {
        portolan_engine::Job::new(portolan_zerotrust_model::JOB, move |shutdown| self.tasks(shutdown))
    }

    /// Runs the job alone. Dropping the future stops everything at once.
    pub async fn run(self, shutdown: CancellationToken) {
        self.handle().run(self.tasks(&shutdown)).await;
    }

    /// Everything that runs, made anew.
    fn tasks(&self, shutdown: &CancellationToken) -> Vec<Task> {
        let mut tasks = self.routes.as_ref().map(|routes| routes.tasks(shutdown)).unwrap_or_default();
        tasks.extend(self.manager.iter().flat_map(|manager| manager.tasks(shutdown)));
        tasks.extend(self.worker.iter().flat_map(|worker| worker.tasks(shutdown)));
        let routes = self.routes.clone();
        self.handle.started(&tasks, move || {
            let routes = routes.clone();
            Box::pin(async move {
                match routes {
                    Some(routes) => routes.drift_pass().await,
                    None => Passed::default(),
                }
            })
        });
        tasks
    }
}
