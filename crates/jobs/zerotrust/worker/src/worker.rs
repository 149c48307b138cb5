//! The worker as a whole: one controller over the tasks of the operator's namespace, and the sign that it lives.

use std::sync::Arc;
use std::time::Duration;

use portolan_cloudflare_api::Clients;
use portolan_engine::{Cache, CancellationToken, Context, Controller, Selection, Task, Timing, counting, level};
use portolan_zerotrust_model::CloudflareZeroTrustTenant;

use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::task_controller::TaskReconciler;

/// The first wait after the cluster itself failed us; problems of tasks say their own.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(15 * 60);

/// Carries out the tasks of the operator's namespace.
pub struct Worker {
    context: Arc<Context>,
    clients: Arc<Clients>,
    settings: Settings,
    metrics: Metrics,
}

impl Worker {
    /// A worker over a cluster and Cloudflare.
    pub fn new(context: &Context, clients: Arc<Clients>, settings: Settings) -> Self {
        let timing =
            Timing { transient: FIRST, transient_most: MOST, in_flight: settings.in_flight, ..context.timing.clone() };
        let metrics = Metrics::registered(&context.metrics);
        Self { context: Arc::new(Context { timing, ..context.clone() }), clients, settings, metrics }
    }

    /// Everything that runs, made anew.
    pub fn tasks(&self, shutdown: &CancellationToken) -> Vec<Task> {
        let reconciler = TaskReconciler::new(&self.context, &self.clients, &self.settings, &self.metrics, shutdown);
        let reconciler = Arc::new(reconciler);
        let counting = counting([self.metrics.count(reconciler.handle())], shutdown.clone());
        let tenants = Cache::<CloudflareZeroTrustTenant>::new();
        self.context.levels.follow(&tenants, |tenant| level(tenant.spec.log_level?.as_str()));
        let levels_known = tenants.clone();
        // In other namespaces tasks are nobody's, and a worker need not be allowed to see them.
        let tasks = Selection::all().within(self.context.operator_namespace.as_str());
        let controller =
            Controller::with_handle(Arc::clone(&self.context), Arc::clone(&reconciler), reconciler.handle())
                .select(tasks)
                .after(async move { levels_known.ready().await });
        let heartbeat = Task::new("heartbeat", || 0, reconciler.heartbeat().keep(shutdown.clone()));
        let secret_poller = Task::new("secret poller", || 0, reconciler.poll_secrets());
        let tenants = tenants.into_task(&self.context, shutdown.clone());
        vec![controller.into_task(shutdown.clone()), heartbeat, secret_poller, tenants, counting]
    }
}
