//! The job as a whole: what its kinds share, their controllers, drift passes, and who runs when what changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use kube::api::{ApiResource, DeleteParams, Preconditions};
use portolan_cloudflare_api::{Clients, DriftSchedule};
use portolan_core::{Clock, ObjectKey, OwnerId, Problem, reasons};
use portolan_engine::{
    Cache, CancellationToken, Context, Controller, Deletions, Drift, Handle, Job, JobStart, JobTasks, Loaded, Related,
    SecretGuard, Secrets, Selection, Task,
};

use crate::drift::{Drifting, Drifts};
use crate::guard;
use crate::kind::{Kind, Management};
use crate::kinds::{self, CloudflareCredentials, CloudflareDomain};
use crate::lookup::LookupIndex;
use crate::projection::{self, Projection};
use crate::reconciler::{KindReconciler, key_of};
use crate::resolve::Zones;
use crate::triggers::Triggers;

/// The lease that the older operator leads by: the two never lead together.
pub const LEASE: &str = "9f193cf8.cloudflare-operator.io";
/// What the job is called.
pub(crate) const NAME: &str = "cloudflare";
/// The API group of its kinds.
pub(crate) const GROUP: &str = "networking.cloudflare-operator.io";
/// Where users release deletions that are held.
const RELEASED_ON: &str = "the CloudflareDomain (zones) or CloudflareCredentials (accounts)";

/// So long do kinds wait at most for the first pass of those that they refer to.
const LONGEST_START: Duration = Duration::from_secs(10);

/// What all kinds of the job share.
pub(crate) struct JobContext {
    pub(crate) client: Client,
    pub(crate) clients: Arc<Clients>,
    pub(crate) clock: Clock,
    pub(crate) owner: OwnerId,
    pub(crate) operator_namespace: String,
    pub(crate) secrets: Secrets,
    pub(crate) guard: SecretGuard,
    /// Secrets that were last seen with finalizers of guards, and with which.
    pub(crate) guarded: Mutex<BTreeMap<ObjectKey, Vec<String>>>,
    pub(crate) deletions: Deletions,
    pub(crate) triggers: Triggers,
    pub(crate) lookup: LookupIndex,
    pub(crate) zones: Zones,
    pub(crate) credentials: Cache<CloudflareCredentials>,
    pub(crate) domains: Cache<CloudflareDomain>,
}

impl JobContext {
    pub(crate) fn new(context: &Context, clients: Arc<Clients>) -> Self {
        Self {
            client: context.client.clone(),
            clients,
            clock: context.clock.clone(),
            owner: context.owner.clone(),
            operator_namespace: context.operator_namespace.clone(),
            secrets: Secrets::new(context.client.clone()),
            guard: SecretGuard::new(context, guard::FINALIZER, true),
            guarded: Mutex::default(),
            deletions: Deletions::new(context, RELEASED_ON),
            triggers: Triggers::default(),
            lookup: LookupIndex::default(),
            zones: Zones::default(),
            credentials: Cache::new(),
            domains: Cache::new(),
        }
    }

    /// Deletes an object of ours in Kubernetes, unless it is another one by now.
    pub(crate) async fn delete<K: Kind>(&self, object: &K) -> Result<(), Problem> {
        let key = key_of(object);
        let uid = object.meta().uid.clone();
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        };
        let resource = ApiResource::erase::<K>(&());
        let api: kube::Api<kube::api::DynamicObject> = match &key.namespace {
            Some(namespace) => kube::Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => kube::Api::all_with(self.client.clone(), &resource),
        };
        match api.delete(&key.name, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            Err(error) => Err(Problem::transient(reasons::API_ERROR, format!("deleting {} {key}: {error}", K::KIND))),
        }
    }

    /// What the changes of caches make run.
    fn follow_caches(self: &Arc<Self>) {
        self.credentials.follow(self, Self::credentials_changed);
        self.domains.follow(self, Self::domain_changed);
    }

    /// What uses a credential runs when its spec changes, or when Cloudflare accepts it after refusing it.
    fn credentials_changed(&self, before: Option<&CloudflareCredentials>, after: Option<&CloudflareCredentials>) {
        self.lookup.credentials_seen(before, after, &self.operator_namespace);
        let spec = |one: &CloudflareCredentials| one.spec.clone();
        let accepted = before.and_then(CloudflareCredentials::validated) == Some(false)
            && after.and_then(CloudflareCredentials::validated) == Some(true);
        if before.map(spec) == after.map(spec) && !accepted {
            return;
        }
        let itself = Some(CloudflareCredentials::KIND);
        if let Some(name) = before.or(after).and_then(|one| one.metadata.name.as_deref()) {
            self.triggers.changed(&projection::credentials(name), itself);
        }
        if [before, after].into_iter().flatten().any(|one| one.spec.is_default) {
            self.triggers.changed(&projection::credentials(""), itself);
            self.triggers.defaults_changed(CloudflareCredentials::KIND);
        }
    }

    /// What lies in a domain runs when the domain's spec or its zone changes.
    fn domain_changed(&self, before: Option<&CloudflareDomain>, after: Option<&CloudflareDomain>) {
        self.lookup.domain_seen(before, after);
        let standing = |one: &CloudflareDomain| (one.spec.clone(), one.zone_id().map(str::to_owned));
        if before.map(standing) != after.map(standing) {
            let domains = [before, after].into_iter().flatten();
            domains.for_each(|one| self.triggers.domain_changed(&one.spec.domain));
        }
    }

    fn cache_tasks(&self, context: &Context, shutdown: &CancellationToken) -> Vec<Task> {
        vec![self.credentials.into_task(context, shutdown.clone()), self.domains.into_task(context, shutdown.clone())]
    }

    pub(crate) async fn caches_ready(&self) {
        self.credentials.ready().await;
        self.domains.ready().await;
    }

    /// A Secret changed or went: what uses it runs, and so do the credentials that name it.
    pub(crate) fn secret_changed(&self, key: &ObjectKey) {
        self.secrets.forget(key);
        let namespace = key.namespace.as_deref().unwrap_or_default();
        self.triggers.changed(&projection::secret(namespace, &key.name), Some(CloudflareCredentials::KIND));
        let credentials = self.lookup.credentials_of(key);
        for one in &credentials {
            self.triggers.changed(&projection::credentials(&one.name), Some(CloudflareCredentials::KIND));
            if self.credentials.get(one).is_some_and(|one| one.spec.is_default) {
                self.triggers.changed(&projection::credentials(""), Some(CloudflareCredentials::KIND));
            }
        }
        self.triggers.run(CloudflareCredentials::KIND, &credentials);
    }
}

/// The job, ready to run.
struct CloudflareJob {
    context: Arc<Context>,
    clients: Arc<Clients>,
    drift: Drift,
}

/// Makes the job over a cluster and the clients of Cloudflare that the process has.
pub(crate) fn start(start: &JobStart<'_>) -> Job {
    let clients = start.provisions.get::<Arc<Clients>>().expect("a process with this job has clients of Cloudflare");
    let clients = Arc::new(clients.within(&start.gate));
    let job = CloudflareJob { context: Arc::clone(&start.context), clients, drift: start.provisions.settings() };
    Job::new(NAME, move |shutdown| job.tasks(shutdown))
}

impl CloudflareJob {
    /// Everything that runs, made anew.
    fn tasks(&self, shutdown: &CancellationToken) -> JobTasks {
        let shared = Arc::new(JobContext::new(&self.context, Arc::clone(&self.clients)));
        shared.follow_caches();
        let (ledgers, loaded) = shared.deletions.loading(shutdown.clone());
        let mut starter = Starter {
            context: Arc::clone(&self.context),
            shared: Arc::clone(&shared),
            loaded,
            shutdown: shutdown.clone(),
            tasks: shared.cache_tasks(&self.context, shutdown),
            observed: Vec::new(),
            drifts: Vec::new(),
        };
        starter.tasks.push(ledgers);
        starter.tasks.push(shared.secret_keeper(shutdown.clone()));
        kinds::each(&mut starter);
        let drifting = Arc::new(Drifting {
            kinds: starter.drifts,
            schedule: DriftSchedule::new(self.drift.interval()),
            shared,
            metrics: Arc::clone(&self.context.metrics),
        });
        let in_turn = Arc::clone(&drifting);
        starter.tasks.push(self.drift.into_task(shutdown.clone(), move || {
            let drifting = Arc::clone(&in_turn);
            async move { drifting.pass_in_turn().await }
        }));
        JobTasks::from(starter.tasks).passing(move || {
            let drifting = Arc::clone(&drifting);
            async move { drifting.pass().await }
        })
    }
}

/// Makes the controller of each kind.
struct Starter {
    context: Arc<Context>,
    shared: Arc<JobContext>,
    loaded: Loaded,
    shutdown: CancellationToken,
    tasks: Vec<Task>,
    /// Controllers of kinds that are only looked at, and that others refer to.
    observed: Vec<Handle<Projection>>,
    drifts: Vec<Arc<dyn Drifts>>,
}

impl kinds::Visitor for Starter {
    fn visit<K: Kind>(&mut self) {
        let living = Arc::new(KindReconciler::<K>::new(Arc::clone(&self.shared)));
        let handle = Handle::new();
        self.shared.triggers.add::<K>(handle.clone());
        // Set once, right here.
        let _ = living.handle.set(handle.clone());
        let shared = Arc::clone(&self.shared);
        let mut controller = Controller::with_handle(Arc::clone(&self.context), Arc::clone(&living), handle)
            .after(async move { shared.caches_ready().await })
            .after(self.loaded.clone().ready());
        match K::MANAGEMENT {
            Management::Observed => self.observed.push(controller.handle()),
            Management::Owned | Management::Singleton => {
                controller = controller.after(first_pass(self.observed.clone()));
            }
        }
        if K::KIND == CloudflareCredentials::KIND {
            controller = self.watch_secrets(controller);
        }
        for resource in K::sources() {
            controller = watch_source(controller, &self.shared, &resource);
        }
        self.drifts.push(living);
        self.tasks.push(controller.into_task(self.shutdown.clone()));
    }
}

impl Starter {
    /// One watch of Secrets, by their metadata, serves all kinds.
    fn watch_secrets<K: Kind>(&self, controller: Controller<KindReconciler<K>>) -> Controller<KindReconciler<K>> {
        let shared = Arc::clone(&self.shared);
        let secrets = ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&());
        controller.watch_metadata(&secrets, Selection::all(), move |seen, _| {
            match seen {
                Related::Here(secret) => shared.secret_seen(&secret.metadata),
                Related::Gone(key) => shared.secret_gone(key),
            }
            // Who is named here runs at every sighting, also at that of a guard's finalizer: `shared` tells whom it concerns.
            Vec::new()
        })
    }
}

/// Waits until controllers have looked at all their objects once, so that what depends on those finds them ready; not for
/// long, since one of them may be held up.
async fn first_pass(handles: Vec<Handle<Projection>>) {
    let until = tokio::time::Instant::now() + LONGEST_START;
    let mut quiet = 0;
    while quiet < 3 && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let idle = handles.iter().all(|handle| handle.is_listed() && handle.busy() == 0);
        quiet = if idle { quiet + 1 } else { 0 };
    }
}

/// Objects whose addresses are published make their records run.
fn watch_source<K: Kind>(
    controller: Controller<KindReconciler<K>>,
    shared: &Arc<JobContext>,
    resource: &ApiResource,
) -> Controller<KindReconciler<K>> {
    let (kind, shared) = (resource.kind.clone(), Arc::clone(shared));
    controller.watch_metadata(resource, Selection::all(), move |seen, _| match seen {
        Related::Here(object) => {
            shared.triggers.published_from(K::KIND, &kind, &portolan_engine::key_of(&object.metadata))
        }
        Related::Gone(key) => shared.triggers.published_from(K::KIND, &kind, key),
    })
}
