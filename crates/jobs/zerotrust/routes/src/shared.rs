//! What all parts of the route side share.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret, Service};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource as _};
use portolan_cloudflare_api::{DriftSchedule, Readers};
use portolan_core::{ObjectKey, Plan, Problem};
use portolan_engine::{
    Cache, Context, Deletions, Doubt, DriftMemory, FIELD_MANAGER, Handle, Lookup, Notice, Referrers, SecretGuard,
    Secrets, in_time,
};
use portolan_zerotrust_model::{
    Catalogue, CloudflareTask, CloudflareZeroTrustTemplate as Template, CloudflareZeroTrustTenant as Tenant, HttpRoute,
    RouteInput, SecretRef, Sought, State,
};
use serde_json::{Value, json};

use crate::credentials::CredentialReader;
use crate::hostname_owner::{HostnameClaims, Reservations};
use crate::locks::Locks;
use crate::metrics::Ends;
use crate::needs::CREDENTIAL_FINALIZER;
use crate::route_status::{RouteStatus, RouteStatuses, touched};
use crate::settings::Settings;
use crate::state_index::StateIndex;

/// Where users release deletions that are held.
const RELEASED_ON: &str = "the CloudflareZeroTrustTenant";
/// Changes of many routes become one write of their tenant's status.
const GATHERING: Duration = Duration::from_secs(1);

/// What is kept of a route.
pub(crate) type RouteProjection = Arc<RouteInput>;

/// What all parts of the route side share.
pub(crate) struct RoutesContext {
    pub(crate) context: Arc<Context>,
    pub(crate) settings: Settings,
    pub(crate) credentials: CredentialReader,
    pub(crate) deletions: Deletions,
    /// Keeps credentials from vanishing while something stands that was made with them.
    pub(crate) guard: SecretGuard,
    pub(crate) tenants: Cache<Tenant>,
    pub(crate) templates: Cache<Template>,
    pub(crate) state_index: StateIndex,
    pub(crate) routes: Handle<RouteProjection>,
    pub(crate) tenant_statuses: Handle<()>,
    pub(crate) template_statuses: Handle<()>,
    pub(crate) locks: Locks,
    pub(crate) statuses: RouteStatuses,
    pub(crate) claims: HostnameClaims,
    pub(crate) service_users: ServiceUsers,
    /// Tenants by the Secret with their credential.
    pub(crate) credential_users: Referrers<ObjectKey>,
    pub(crate) reservations: Reservations,
    /// Routes that do not stand as they were left.
    pub(crate) drifted: Mutex<BTreeSet<ObjectKey>>,
    /// When zones were last compared.
    pub(crate) schedule: DriftSchedule<String>,
    /// What Cloudflare refused.
    pub(crate) refused: DriftMemory,
    /// Routes whose state was dropped because nothing stands for them any more: what they are annotated with is gone.
    cleared: Mutex<BTreeSet<ObjectKey>>,
    /// Routes whose last step could not be done, and why.
    stuck: Mutex<HashMap<ObjectKey, Problem>>,
    /// When the service tokens of routes end.
    pub(crate) ends: Ends,
    /// Routes that went, for the sweep.
    pub(crate) orphaned: tokio::sync::Notify,
    /// Addresses of the API server, once somebody had to know.
    pub(crate) api_server: tokio::sync::OnceCell<Vec<IpAddr>>,
}

impl RoutesContext {
    pub(crate) fn new(context: Arc<Context>, readers: Readers, settings: Settings) -> Self {
        let secrets = Secrets::new(context.client.clone());
        Self {
            credentials: CredentialReader::new(readers, secrets),
            deletions: Deletions::new(&context, RELEASED_ON),
            guard: SecretGuard::new(&context, CREDENTIAL_FINALIZER, settings.finalizers),
            tenants: Cache::new(),
            templates: Cache::new(),
            state_index: StateIndex::new(&context.operator_namespace),
            routes: Handle::new(),
            tenant_statuses: Handle::new(),
            template_statuses: Handle::new(),
            locks: Locks::default(),
            statuses: RouteStatuses::default(),
            claims: HostnameClaims::default(),
            service_users: ServiceUsers::default(),
            credential_users: Referrers::default(),
            reservations: Reservations::default(),
            drifted: Mutex::default(),
            schedule: DriftSchedule::new(settings.drift.interval()),
            refused: DriftMemory::default(),
            cleared: Mutex::default(),
            stuck: Mutex::default(),
            ends: Ends::default(),
            orphaned: tokio::sync::Notify::new(),
            api_server: tokio::sync::OnceCell::new(),
            context,
            settings,
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.context.client.clone()
    }

    /// Where states and tasks are.
    pub(crate) fn namespace(&self) -> &str {
        &self.context.operator_namespace
    }

    pub(crate) fn route_api(&self, route: &ObjectKey) -> Api<HttpRoute> {
        Api::namespaced(self.client(), route.namespace.as_deref().unwrap_or_default())
    }

    pub(crate) fn secret_api(&self, namespace: Option<&str>) -> Api<Secret> {
        Api::namespaced(self.client(), namespace.unwrap_or(self.namespace()))
    }

    pub(crate) fn state_api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), self.namespace())
    }

    pub(crate) fn task_api(&self) -> Api<CloudflareTask> {
        Api::namespaced(self.client(), self.namespace())
    }

    pub(crate) async fn service(&self, key: &ObjectKey) -> Result<Option<Service>, Problem> {
        let api: Api<Service> = Api::namespaced(self.client(), key.namespace.as_deref().unwrap_or_default());
        let found = in_time(api.get_opt(&key.name)).await;
        found.map_err(|error| portolan_engine::kubernetes_problem(format_args!("reading Service {key}"), &error))
    }

    /// A route stands otherwise: its tenant and templates say so before long.
    pub(crate) fn stands_otherwise(&self, before: Option<&RouteStatus>, after: Option<&RouteStatus>) {
        let touched = touched(before, after);
        for tenant in &touched.tenants {
            self.tenant_changed(tenant);
        }
        for template in &touched.templates {
            self.template_statuses.enqueue_after(template, GATHERING);
        }
    }

    /// A tenant's status may say something else now.
    pub(crate) fn tenant_changed(&self, tenant: &ObjectKey) {
        if self.tenants.get(tenant).is_some() {
            self.tenant_statuses.enqueue_after(tenant, GATHERING);
        }
    }

    /// The tenant of a state. Older operators did not record its namespace: it is looked for where they looked.
    pub(crate) fn tenant_of(&self, state: &State) -> Option<Arc<Tenant>> {
        let tenant = state.tenant.as_ref()?;
        let own = state.route.namespace.as_deref().unwrap_or_default();
        let places = [tenant.namespace.as_deref().unwrap_or(own), own, self.namespace()];
        places.iter().find_map(|place| self.tenants.get(&ObjectKey::namespaced(*place, tenant.name.clone())))
    }

    /// Its key, also where it is gone.
    pub(crate) fn tenant_key(&self, state: &State) -> Option<ObjectKey> {
        let recorded = state.tenant.clone()?;
        if recorded.namespace.is_some() {
            return Some(recorded);
        }
        self.tenant_of(state).map(|tenant| tenant.key()).or(Some(recorded))
    }

    /// Whether a state is a tenant's.
    pub(crate) fn is_of(&self, state: &State, tenant: &ObjectKey) -> bool {
        self.tenant_key(state).as_ref() == Some(tenant)
    }

    /// The credential that what is recorded can be taken down with.
    pub(crate) fn credential_of(&self, state: &State) -> Option<SecretRef> {
        state.credential.clone().or_else(|| self.tenant_of(state).map(|tenant| tenant.credential()))
    }

    /// Whether a route is known not to stand as it was left.
    pub(crate) fn is_drifted(&self, route: &ObjectKey) -> bool {
        self.drifted.lock().unwrap_or_else(PoisonError::into_inner).contains(route)
    }

    /// A route does not stand as it was left, or a task was made that mends it.
    pub(crate) fn set_drifted(&self, route: &ObjectKey, drifted: bool) {
        let mut all = self.drifted.lock().unwrap_or_else(PoisonError::into_inner);
        if drifted {
            all.insert(route.clone());
        } else {
            all.remove(route);
        }
    }

    /// Whether what a route's annotations name is known to be gone.
    pub(crate) fn is_cleared(&self, route: &ObjectKey) -> bool {
        self.cleared.lock().unwrap_or_else(PoisonError::into_inner).contains(route)
    }

    /// Nothing stands for a route any more, or something may again.
    pub(crate) fn set_cleared(&self, route: &ObjectKey, cleared: bool) {
        let mut all = self.cleared.lock().unwrap_or_else(PoisonError::into_inner);
        if cleared {
            all.insert(route.clone());
        } else {
            all.remove(route);
        }
    }

    /// Why the last step of a route could not be done, as long as it cannot.
    pub(crate) fn stuck(&self, route: &ObjectKey) -> Option<Problem> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner).get(route).cloned()
    }

    /// A step of a route could not be done, or all were.
    pub(crate) fn set_stuck(&self, route: &ObjectKey, problem: Option<Problem>) {
        let mut all = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(problem) => all.insert(route.clone(), problem),
            None => all.remove(route),
        };
    }

    /// Writes an event on a route.
    pub(crate) async fn tell(&self, route: &ObjectKey, notice: &Notice) {
        let uid = self.routes.read(|store| store.get(route).map(|one| one.uid.to_string()));
        let regarding = ObjectReference {
            api_version: Some(HttpRoute::api_version(&()).into_owned()),
            kind: Some(HttpRoute::kind(&()).into_owned()),
            namespace: route.namespace.clone(),
            name: Some(route.name.clone()),
            uid,
            ..ObjectReference::default()
        };
        self.context.events.tell(&regarding, notice).await;
    }

    /// Takes annotations off a tenant.
    pub(crate) async fn drop_annotations(&self, tenant: &Tenant, plan: &Plan) -> Result<(), Problem> {
        let (key, names) = (tenant.key(), plan.changes.iter().map(|change| (change.target.name.clone(), Value::Null)));
        let patch = json!({"metadata": {"annotations": names.collect::<serde_json::Map<_, _>>()}});
        let api: Api<Tenant> = Api::namespaced(self.client(), key.namespace.as_deref().unwrap_or_default());
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let written = in_time(api.patch(&key.name, &parameters, &Patch::Merge(patch))).await;
        let doing = format_args!("writing the annotations of tenant {key}");
        written.map(drop).map_err(|error| portolan_engine::kubernetes_problem(doing, &error))
    }

    /// Held deletions of a tenant were released: its routes that go run.
    pub(crate) fn released(&self, tenant: &ObjectKey) {
        let of_tenant = self.state_index.all().into_iter().filter(|known| self.is_of(&known.state, tenant));
        let routes: Vec<ObjectKey> = of_tenant.map(|known| known.state.route.clone()).collect();
        self.route_changed(&routes);
    }

    /// Routes run whose surroundings changed; those that are gone are swept.
    pub(crate) fn route_changed<'a>(&self, routes: impl IntoIterator<Item = &'a ObjectKey>) {
        let (known, gone): (Vec<_>, Vec<_>) =
            routes.into_iter().partition(|route| self.routes.read(|store| store.get(route).is_some()));
        self.routes.enqueue_all(known);
        if !gone.is_empty() {
            self.orphaned.notify_one();
        }
    }

    pub(crate) async fn ready(&self) {
        self.tenants.ready().await;
        self.templates.ready().await;
        self.state_index.states.ready().await;
        self.state_index.tasks.ready().await;
    }
}

impl Catalogue for RoutesContext {
    fn tenants(&self) -> Vec<Arc<Tenant>> {
        self.tenants.iter().collect()
    }

    fn tenant(&self, key: &ObjectKey) -> Option<Arc<Tenant>> {
        self.tenants.get(key)
    }

    fn template(&self, key: &ObjectKey) -> Sought {
        match self.templates.look_up(key) {
            Lookup::Found(template) => Sought::Found(template),
            Lookup::Absent => Sought::Absent,
            Lookup::Unknown(Doubt::Malformed) => Sought::Unknown("it does not fit its definition; correct it"),
            Lookup::Unknown(Doubt::Unlisted) => {
                Sought::Unknown("the cluster does not serve CloudflareZeroTrustTemplate; install its definition")
            }
        }
    }
}

/// Which Service the address of a route comes from.
#[derive(Default)]
pub(crate) struct ServiceUsers {
    services: Mutex<HashMap<ObjectKey, ObjectKey>>,
    users: Referrers<ObjectKey>,
}

impl ServiceUsers {
    /// A route's address is about to be read from a Service.
    pub(crate) fn note(&self, route: &ObjectKey, service: &ObjectKey) {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        let before = services.insert(route.clone(), service.clone());
        self.users.note(route.clone(), before, [service.clone()]);
    }

    /// A route is gone.
    pub(crate) fn forget(&self, route: &ObjectKey) {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        self.users.note(route.clone(), services.remove(route), []);
    }

    /// The routes whose address came from a Service when they last looked.
    pub(crate) fn of(&self, service: &ObjectKey) -> Vec<ObjectKey> {
        self.users.of(service)
    }
}
