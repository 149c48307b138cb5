//! The route side as a whole: its controllers, and who runs when what changes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

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
    Enabled, Former, Phase, RouteInput,
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
            tasks.push(self.settings.drift.into_task(shutdown.clone(), move || {
                let shared = Arc::clone(&shared);
                async move { Box::pin(shared.drift_pass_in_turn()).await }
            }));
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

/// Waits until the caches are complete.
fn ready(shared: &Arc<RoutesContext>) -> impl Future<Output = ()> + Send + 'static {
    let shared = Arc::clone(shared);
    async move { shared.ready().await }
}

fn route_controller(shared: &Arc<RoutesContext>, loaded: Loaded) -> Controller<RouteController> {
    let reconciler = Arc::new(RouteController { shared: Arc::clone(shared) });
    let users = Arc::clone(shared);
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.routes.clone())
        .select(shared.settings.selection())
        .after(ready(shared))
        .after(loaded.ready())
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
        .after(ready(shared))
        .after(loaded.ready())
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
        let tenants = self.credential_users.of(secret);
        if tenants.is_empty() {
            return tenants;
        }
        self.credentials.forget(secret);
        let mut waiting = Vec::new();
        self.statuses.each(|(route, one)| {
            if one.failure.is_some() && one.tenant.as_ref().is_none_or(|tenant| tenants.contains(tenant)) {
                waiting.push(route.clone());
            }
        });
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
        let credential = |tenant: &Tenant| tenant.credential().object();
        if let Some(tenant) = after.or(before) {
            self.credential_users.note(tenant.key(), before.map(credential), after.map(credential));
        }
        let spec = |tenant: &Tenant| tenant.spec.clone();
        if before.map(spec) != after.map(spec) {
            self.claims.doubt();
            self.all_changed();
        }
    }

    /// What templates say may be otherwise than it was, though none that parses has changed.
    fn templates_doubted(&self) {
        self.claims.doubt();
        self.all_changed();
    }

    /// Routes that name the template run, or that would be given it without asking; and those that ask for the same names.
    fn template_seen(&self, before: Option<&Template>, after: Option<&Template>) {
        let spec = |template: &Template| template.spec.clone();
        let Some(name) = before.or(after).map(kube::ResourceExt::name_any) else { return };
        if before.map(spec) == after.map(spec) {
            return;
        }
        self.claims.doubt();
        let base = name.starts_with("base-");
        let uses = |input: &RouteInput| {
            input.enabled() == Enabled::Yes && (base || input.input("template").unwrap_or(DEFAULT_TEMPLATE) == name)
        };
        self.routes.enqueue_where(|_, input| uses(input));
        let names: BTreeSet<String> = self.routes.read(|store| {
            let using = store.projections().filter(|(_, input)| uses(input));
            using.filter_map(|(_, input)| input.hostname().ok()).map(|name| name.to_string()).collect()
        });
        for name in &names {
            self.routes.enqueue_all(&self.claims.of(name));
        }
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
        let held = |known: &StoredState| {
            let footprint = &known.state.footprint;
            let stands = footprint.is_published() || footprint.access_app_id.is_some();
            Some((footprint.hostname.clone()?, footprint.account_id.clone(), stands))
        };
        let (before, after) = (before.and_then(held), after.and_then(held));
        if let Some((name, ..)) = before.as_ref().filter(|_| before != after) {
            self.routes.enqueue_all(&self.claims.of(name));
        }
    }

    /// Whoever wrote a task: who waits for the name that it no longer makes has a look.
    fn task_changed(&self, before: Option<&CloudflareTask>, after: Option<&CloudflareTask>) {
        portolan_core::waypoint!();
        if after.is_none() && before.is_some_and(|task| task.spec.action() == TaskAction::Delete) {
            self.guard.look_again();
        }
        let made = |task: Option<&CloudflareTask>| {
            let spec = &task.filter(|task| task.spec.action() == TaskAction::Reconcile)?.spec;
            Some((spec.hostname.clone()?, spec.account_id.clone()))
        };
        let (before, after) = (made(before), made(after));
        if let Some((name, _)) = before.as_ref().filter(|_| before != after) {
            self.routes.enqueue_all(&self.claims.of(name));
        }
    }
}

/// What changes of the mirrored objects, and how routes stand, make run. Nothing of that keeps what owns it alive.
fn follow_caches(shared: &Arc<RoutesContext>) {
    shared.context.levels.follow(&shared.tenants, |tenant| level(tenant.spec.log_level?.as_str()));
    shared.tenants.follow(shared, RoutesContext::tenant_seen);
    shared.templates.follow(shared, RoutesContext::template_seen);
    let own = Arc::downgrade(shared);
    shared.templates.on_doubt(move || own.upgrade().iter().for_each(|shared| shared.templates_doubted()));
    let own = Arc::downgrade(shared);
    shared.deletions.on_unheld(move |unheld| own.upgrade().iter().for_each(|shared| shared.unheld(&unheld)));
    let own = Arc::downgrade(shared);
    shared.statuses.on_news(move |_, before, after| {
        own.upgrade().iter().for_each(|shared| shared.stands_otherwise(before, after));
    });
    shared.state_index.states.follow_seen(shared, |shared, before, after| {
        let (before, after) = (before.and_then(StoredState::read), after.and_then(StoredState::read));
        shared.state_seen(before.as_ref(), after.as_ref());
    });
    shared.state_index.states.follow(shared, |shared, before, after| {
        if let Some(former) = before.and_then(Former::read).filter(|_| after.is_none()) {
            shared.routes.enqueue_all(&shared.claims.of(&former.hostname));
        }
        let (before, after) = (before.and_then(StoredState::read), after.and_then(StoredState::read));
        shared.state_changed(before.as_ref(), after.as_ref());
    });
    shared.state_index.tasks.follow(shared, RoutesContext::task_changed);
    shared.state_index.tasks.follow_seen(shared, |shared, before, after| {
        if after.is_some_and(|task| task.phase() == Phase::InProgress && TaskFailure::of(task).is_none()) {
            // A worker has it: what comes of it is worth a look.
            return;
        }
        let routes: Vec<ObjectKey> = [before, after].into_iter().flatten().filter_map(CloudflareTask::route).collect();
        shared.route_changed(&routes);
    });
}
