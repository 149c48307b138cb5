//! The route side as a whole: its controllers, and who runs when what changes.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use portolan_cloudflare_api::Readers;
use portolan_core::ObjectKey;
use portolan_engine::{
    CancellationToken, Context, Controller, Loaded, Passed, Related, Selection, Task, Unheld, counting, key_of, level,
};
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{
    CloudflareTask, CloudflareZeroTrustTemplate as Template, CloudflareZeroTrustTenant as Tenant, DEFAULT_TEMPLATE,
    Enabled, Former, Phase,
};

use crate::metrics::Metrics;
use crate::reasons::TaskFailure;
use crate::routes::RouteController;
use crate::settings::Settings;
use crate::shared::RoutesContext;
use crate::state_index::StoredState;
use crate::sweep::Sweep;
use crate::templates::TemplateController;
use crate::tenants::TenantController;
use crate::token;

/// The side that sees routes: turns them into tasks, and results into Secrets, states and annotations. It is given
/// clients that can only read from Cloudflare.
pub struct Routes {
    context: Arc<Context>,
    readers: Readers,
    settings: Settings,
    metrics: Metrics,
    running: Mutex<Option<Arc<RoutesContext>>>,
}

impl Routes {
    /// The route side over a cluster and Cloudflare.
    pub fn new(context: &Context, readers: Readers, settings: Settings) -> Self {
        let metrics = Metrics::registered(&context.metrics);
        Self { context: Arc::new(context.clone()), readers, settings, metrics, running: Mutex::default() }
    }

    /// Everything that runs, made anew.
    pub fn tasks(&self, shutdown: &CancellationToken) -> Vec<Task> {
        let shared =
            Arc::new(RoutesContext::new(Arc::clone(&self.context), self.readers.clone(), self.settings.clone()));
        follow_caches(&shared);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&shared));
        let (ledgers, loaded) = shared.deletions.loading(shutdown.clone());
        let context = &self.context;
        let mut tasks = vec![
            shared.tenants.into_task(context, shutdown.clone()),
            shared.templates.into_task(context, shutdown.clone()),
            shared.state_index.states.into_task(context, shutdown.clone()),
            shared.state_index.tasks.into_task(context, shutdown.clone()),
            ledgers,
            counting(self.metrics.count(&shared), shutdown.clone()),
        ];
        let (ready, needs) = (Arc::clone(&shared), Arc::downgrade(&shared));
        let ready = async move {
            ready.ready().await;
            ready.routes.listed().await;
        };
        let needed = move || needs.upgrade().map(|shared| shared.needed_secrets()).unwrap_or_default();
        tasks.push(shared.guard.keeper(shutdown.clone(), ready, needed));
        tasks.push(tenant_controller(&shared, loaded.clone()).into_task(shutdown.clone()));
        tasks.push(template_controller(&shared).into_task(shutdown.clone()));
        tasks.push(route_controller(&shared, loaded).into_task(shutdown.clone()));
        if self.context.mode == portolan_engine::WriteMode::Live {
            tasks.push(Sweep::task(Arc::clone(&shared), shutdown.clone()));
            tasks.push(drift_task(shared, shutdown.clone()));
        } else {
            tasks.push(Sweep::preview(shared, shutdown.clone()));
        }
        tasks
    }

    /// Compares what stands at Cloudflare with what was left there, now.
    pub async fn drift_pass(&self) -> Passed {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match running {
            Some(shared) => Box::pin(shared.drift_pass()).await,
            None => Passed::default(),
        }
    }
}

fn drift_task(shared: Arc<RoutesContext>, shutdown: CancellationToken) -> Task {
    let run = async move {
        let drift = shared.settings.drift;
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = drift.keep_passing(|| Box::pin(shared.drift_pass_in_turn())) => {}
        }
    };
    Task::new("drift", || 0, run)
}

/// Waits until the caches are complete and the ledgers are read.
fn gate(shared: &Arc<RoutesContext>, loaded: Loaded) -> impl Future<Output = ()> + Send + 'static {
    let shared = Arc::clone(shared);
    async move {
        shared.ready().await;
        loaded.ready().await;
    }
}

fn route_controller(shared: &Arc<RoutesContext>, loaded: Loaded) -> Controller<RouteController> {
    let reconciler = Arc::new(RouteController { shared: Arc::clone(shared) });
    let users = Arc::clone(shared);
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.routes.clone())
        .select(shared.settings.selection())
        .after(gate(shared, loaded))
        .watch::<Service>(Selection::all(), move |seen, _| {
            let key = match seen {
                Related::Here(service) => key_of(&service.metadata),
                Related::Gone(key) => key.clone(),
            };
            users.service_users.of(&key)
        })
        // What they hold is read when a route looks at its own.
        .watch_metadata(&ApiResource::erase::<Secret>(&()), Selection::labels(token::SELECTOR), |seen, _| match seen {
            Related::Here(secret) => token::route_of(&secret.metadata).into_iter().collect(),
            // The route that it named before runs by itself.
            Related::Gone(_) => Vec::new(),
        })
}

fn tenant_controller(shared: &Arc<RoutesContext>, loaded: Loaded) -> Controller<TenantController> {
    let reconciler = Arc::new(TenantController { shared: Arc::clone(shared) });
    let credentials = Arc::clone(shared);
    let secrets = ApiResource::erase::<Secret>(&());
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.tenant_statuses.clone())
        .after(gate(shared, loaded))
        .watch_metadata(&secrets, Selection::all(), move |seen: Related<'_, PartialObjectMeta<DynamicObject>>, _| {
            let key = match seen {
                Related::Here(secret) => {
                    credentials.guard.seen(&secret.metadata);
                    key_of(&secret.metadata)
                }
                Related::Gone(key) => {
                    credentials.guard.gone(key);
                    key.clone()
                }
            };
            credentials.secret_changed(&key)
        })
}

fn template_controller(shared: &Arc<RoutesContext>) -> Controller<TemplateController> {
    let reconciler = Arc::new(TemplateController { shared: Arc::clone(shared) });
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.template_statuses.clone())
}

impl RoutesContext {
    /// A Secret changed or went: who uses it as a credential runs. Answers the tenants among them.
    fn secret_changed(&self, secret: &ObjectKey) -> Vec<ObjectKey> {
        let naming = self.tenants.iter().filter(|tenant| tenant.credential().object() == *secret);
        let tenants: Vec<ObjectKey> = naming.map(|tenant| tenant.key()).collect();
        if tenants.is_empty() {
            return tenants;
        }
        self.credentials.forget(secret);
        let waiting = self.statuses.routes_where(|one| {
            one.failure.is_some() && one.tenant.as_ref().is_none_or(|tenant| tenants.contains(tenant))
        });
        let waiting: Vec<ObjectKey> = waiting.into_iter().map(|(route, _)| route).collect();
        self.route_changed(&waiting);
        tenants
    }

    /// What was held may go, or is no longer wanted: who asked runs, and the tenant says so.
    fn unheld(&self, unheld: &Unheld) {
        if let Some((namespace, name)) = unheld.id.split_once('/') {
            self.tenant_changed(&ObjectKey::namespaced(namespace, name));
        }
        let routes: Vec<ObjectKey> = unheld.askers.iter().map(|asker| asker.key.clone()).collect();
        self.route_changed(&routes);
    }

    /// All routes that ask to be published run.
    fn all_changed(&self) {
        self.routes.enqueue_where(|_, input| input.enabled() == Enabled::Yes);
    }

    fn tenant_seen(&self, before: Option<&Tenant>, after: Option<&Tenant>) {
        let spec = |tenant: &Tenant| tenant.spec.clone();
        if before.map(spec) != after.map(spec) {
            self.all_changed();
        }
    }

    /// Routes that name the template run, or that would be given it without asking.
    fn template_seen(&self, before: Option<&Template>, after: Option<&Template>) {
        let spec = |template: &Template| template.spec.clone();
        let Some(name) = before.or(after).map(kube::ResourceExt::name_any) else { return };
        if before.map(spec) == after.map(spec) {
            return;
        }
        let base = name.starts_with("base-");
        self.routes.enqueue_where(|_, input| {
            input.enabled() == Enabled::Yes && (base || input.input("template").unwrap_or(DEFAULT_TEMPLATE) == name)
        });
    }

    /// Somebody else wrote a state.
    fn state_seen(&self, before: Option<&StoredState>, after: Option<&StoredState>) {
        let routes: Vec<ObjectKey> =
            [before, after].into_iter().flatten().map(|known| known.state.route.clone()).collect();
        self.route_changed(&routes);
    }

    /// Whoever wrote a state: its tenant counts anew, and who waits for its name has a look.
    fn state_changed(&self, before: Option<&StoredState>, after: Option<&StoredState>) {
        let all = || [before, after].into_iter().flatten();
        for tenant in all().filter_map(|known| self.tenant_key(&known.state)) {
            self.tenant_changed(&tenant);
        }
        let credential = |known: &StoredState| known.state.credential.clone();
        if before.is_some_and(|before| after.map(credential) != Some(credential(before))) {
            self.guard.look_again();
        }
        let name = |known: Option<&StoredState>| known.and_then(|known| known.state.footprint.hostname.clone());
        if let Some(left) = name(before).filter(|left| Some(left) != name(after).as_ref()) {
            self.routes.enqueue_all(&self.claims.of(&left));
        }
    }

    /// Whoever wrote a task: who waits for the name that it no longer makes has a look.
    fn task_changed(&self, before: Option<&CloudflareTask>, after: Option<&CloudflareTask>) {
        portolan_core::waypoint!();
        if after.is_none() && before.is_some_and(|task| task.spec.action() == TaskAction::Delete) {
            self.guard.look_again();
        }
        let name = |task: Option<&CloudflareTask>| {
            task.filter(|task| task.spec.action() == TaskAction::Reconcile)?.spec.hostname.clone()
        };
        if let Some(left) = name(before).filter(|left| Some(left) != name(after).as_ref()) {
            self.routes.enqueue_all(&self.claims.of(&left));
        }
    }
}

/// What changes of the mirrored objects make run. The caches must not keep what owns them alive.
fn follow_caches(shared: &Arc<RoutesContext>) {
    shared.context.levels.follow(&shared.tenants, |tenant| level(tenant.spec.log_level?.as_str()));
    let weak = || Arc::downgrade(shared);
    let with = |shared: &Weak<RoutesContext>, act: &dyn Fn(&RoutesContext)| {
        if let Some(shared) = shared.upgrade() {
            act(&shared);
        }
    };
    let own = weak();
    shared.tenants.on_change(move |before, after| with(&own, &|shared| shared.tenant_seen(before, after)));
    let own = weak();
    shared.templates.on_change(move |before, after| with(&own, &|shared| shared.template_seen(before, after)));
    let own = weak();
    shared.templates.on_doubt(move || with(&own, &RoutesContext::all_changed));
    let own = weak();
    shared.deletions.on_unheld(move |unheld| with(&own, &|shared| shared.unheld(&unheld)));
    let own = weak();
    shared.state_index.states.on_seen(move |before, after| {
        let (before, after) = (before.and_then(StoredState::read), after.and_then(StoredState::read));
        with(&own, &|shared| shared.state_seen(before.as_ref(), after.as_ref()));
    });
    let own = weak();
    shared.state_index.states.on_change(move |before, after| {
        if let Some(former) = before.and_then(Former::read).filter(|_| after.is_none()) {
            with(&own, &|shared| shared.routes.enqueue_all(&shared.claims.of(&former.hostname)));
        }
        let (before, after) = (before.and_then(StoredState::read), after.and_then(StoredState::read));
        with(&own, &|shared| shared.state_changed(before.as_ref(), after.as_ref()));
    });
    let own = weak();
    shared.state_index.tasks.on_change(move |before, after| with(&own, &|shared| shared.task_changed(before, after)));
    let own = weak();
    shared.state_index.tasks.on_seen(move |before, after| {
        if after.is_some_and(|task| task.phase() == Phase::InProgress && TaskFailure::of(task).is_none()) {
            // A worker has it: what comes of it is worth a look.
            return;
        }
        let routes: Vec<ObjectKey> = [before, after].into_iter().flatten().filter_map(CloudflareTask::route).collect();
        with(&own, &|shared| shared.route_changed(&routes));
    });
}
