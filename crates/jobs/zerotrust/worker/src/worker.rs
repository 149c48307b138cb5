//! The worker as a whole: one controller over the tasks of the operator's namespace, and the sign that it lives.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use portolan_cloudflare_api::Clients;
use portolan_engine::{
    Cache, CancellationToken, Context, Controller, Levels, Seen, Selection, Task, Timing, key_of, level,
};
use portolan_zerotrust_model::CloudflareZeroTrustTenant;

use crate::carrier::Carrier;
use crate::census::Census;
use crate::settings::Settings;

/// The first wait after the cluster itself failed us; problems of tasks say their own.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(15 * 60);

/// Carries out the tasks of the operator's namespace.
pub struct Worker {
    context: Arc<Context>,
    clients: Arc<Clients>,
    settings: Settings,
    census: Census,
}

impl Worker {
    /// A worker over a cluster and Cloudflare.
    pub fn new(context: &Context, clients: Arc<Clients>, settings: Settings) -> Self {
        let timing =
            Timing { transient: FIRST, transient_most: MOST, in_flight: settings.in_flight, ..context.timing.clone() };
        let census = Census::registered(&context.metrics);
        Self { context: Arc::new(Context { timing, ..context.clone() }), clients, settings, census }
    }

    /// Everything that runs, made anew.
    pub fn tasks(&self, shutdown: &CancellationToken) -> Vec<Task> {
        let carrier = Carrier::new(&self.context, &self.clients, &self.settings, shutdown);
        self.census.count(carrier.handle());
        let secrets = ApiResource::erase::<Secret>(&());
        let changed = Arc::clone(&carrier);
        let controller = Controller::with_handle(Arc::clone(&self.context), Arc::clone(&carrier), carrier.handle())
            .watch_metadata(&secrets, Selection::all(), move |seen, _| match seen {
                Seen::Here(secret) => changed.secret_changed(&key_of(&secret.metadata)),
                Seen::Gone(key) => changed.secret_changed(key),
            });
        let tenants = Cache::<CloudflareZeroTrustTenant>::new();
        let levels = self.context.levels.clone();
        tenants.on_change(move |before, after| obey_level(&levels, before, after));
        let presence = Task::new("presence", || 0, carrier.presence().keep(shutdown.clone()));
        vec![controller.into_task(shutdown.clone()), presence, tenants.into_task(&self.context, shutdown.clone())]
    }
}

/// What is logged of a tenant's work is for the tenant to say, here as on the other side.
fn obey_level(levels: &Levels, before: Option<&CloudflareZeroTrustTenant>, after: Option<&CloudflareZeroTrustTenant>) {
    let Some(tenant) = after.or(before) else { return };
    let chosen = after.and_then(|tenant| tenant.spec.log_level);
    levels.set(&key_of(&tenant.metadata), chosen.and_then(|chosen| level(chosen.as_str())));
}
