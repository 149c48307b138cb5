//! What the job's controllers share: mirrored objects, and who runs when what changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt as _;
use portolan_bind9_model::kinds::{Bind9Cluster, Bind9Instance, ClusterBind9Provider, ServerRole};
use portolan_core::{ObjectKey, condition};
use portolan_engine::{Cache, Context, Handle, Referrers};

use crate::job::Settings;
use crate::kubernetes::Objects;

pub(crate) struct Bind9Context {
    pub(crate) context: Arc<Context>,
    pub(crate) settings: Settings,
    pub(crate) objects: Objects,
    pub(crate) providers: Cache<ClusterBind9Provider>,
    pub(crate) clusters: Cache<Bind9Cluster>,
    pub(crate) instances: Cache<Bind9Instance>,
    pub(crate) provider_passes: Handle<()>,
    pub(crate) cluster_passes: Handle<()>,
    pub(crate) instance_passes: Handle<()>,
    /// What each instance read last.
    reads: Mutex<BTreeMap<ObjectKey, Vec<(ReadKind, ObjectKey)>>>,
    /// Which instances read which Secrets and `ConfigMaps` of users, and Secrets of servers that they follow.
    pub(crate) readers: Referrers<(ReadKind, ObjectKey)>,
}

/// A kind of object that instances read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadKind {
    Secret,
    ConfigMap,
    Service,
}

impl Bind9Context {
    pub(crate) fn new(context: Arc<Context>, settings: Settings) -> Self {
        Self {
            objects: Objects::new(context.client.clone()),
            providers: Cache::of(settings.clusterwide()),
            clusters: Cache::of(settings.selection()),
            instances: Cache::of(settings.selection()),
            provider_passes: Handle::new(),
            cluster_passes: Handle::new(),
            instance_passes: Handle::new(),
            reads: Mutex::default(),
            readers: Referrers::default(),
            context,
            settings,
        }
    }

    /// Waits until the mirrored objects are complete.
    pub(crate) async fn ready(&self) {
        self.providers.ready().await;
        self.clusters.ready().await;
        self.instances.ready().await;
    }

    /// The cluster that an instance names, and the provider that it is of or that the instance names itself.
    pub(crate) fn parents(
        &self,
        instance: &Bind9Instance,
    ) -> (Option<Arc<Bind9Cluster>>, Option<Arc<ClusterBind9Provider>>) {
        let Some(name) = instance.cluster_name() else { return (None, None) };
        let cluster = self.clusters.get(&ObjectKey { namespace: instance.namespace(), name: name.to_owned() });
        (cluster, self.providers.get(&ObjectKey::cluster(name)))
    }

    /// The instances that name a cluster or provider, in one namespace or in all.
    pub(crate) fn instances_of(&self, name: &str, namespace: Option<&str>) -> Vec<Arc<Bind9Instance>> {
        let fits = |one: &Arc<Bind9Instance>| {
            one.cluster_name() == Some(name) && (namespace.is_none() || one.metadata.namespace.as_deref() == namespace)
        };
        self.instances.iter().filter(fits).collect()
    }

    /// The namespaces whose instances name a provider without being made for it.
    pub(crate) fn namespaces_using(&self, provider: &str) -> BTreeSet<String> {
        self.instances_of(provider, None).iter().filter_map(|one| one.namespace()).collect()
    }

    /// An instance reads these objects, and no others any more.
    pub(crate) fn note_reads(&self, instance: &ObjectKey, now: Vec<(ReadKind, ObjectKey)>) {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let before = reads.insert(instance.clone(), now.clone()).unwrap_or_default();
        self.readers.note(instance.clone(), before, now);
    }

    /// An instance is gone, and reads nothing.
    pub(crate) fn forget_reads(&self, instance: &ObjectKey) {
        let before = self.reads.lock().unwrap_or_else(PoisonError::into_inner).remove(instance).unwrap_or_default();
        self.readers.note(instance.clone(), before, []);
    }

    fn enqueue_instances(&self, of: &str, namespace: Option<&str>) {
        let keys: Vec<ObjectKey> = self.instances_of(of, namespace).iter().map(|one| one.key()).collect();
        self.instance_passes.enqueue_all(&keys);
    }

    fn provider_seen(&self, before: Option<&ClusterBind9Provider>, after: Option<&ClusterBind9Provider>) {
        let spec = |one: Option<&ClusterBind9Provider>| one.map(|one| one.spec.clone());
        if let Some(one) = after.or(before).filter(|_| spec(before) != spec(after)) {
            self.enqueue_instances(&one.name_any(), None);
        }
    }

    fn cluster_seen(&self, before: Option<&Bind9Cluster>, after: Option<&Bind9Cluster>) {
        let Some(one) = after.or(before) else { return };
        let spec = |one: Option<&Bind9Cluster>| one.map(|one| one.spec.clone());
        if spec(before) != spec(after) {
            self.enqueue_instances(&one.name_any(), one.namespace().as_deref());
        }
        self.provider_passes.enqueue(&ObjectKey::cluster(one.name_any()));
    }

    fn instance_seen(&self, before: Option<&Bind9Instance>, after: Option<&Bind9Instance>) {
        for one in [before, after].into_iter().flatten() {
            // Whoever is to have an instance of this name has it, or waits for the name.
            if let Some(name) = by_its_name(one) {
                self.cluster_passes.enqueue(&ObjectKey { namespace: one.namespace(), name });
            }
            let Some(name) = one.cluster_name() else { continue };
            self.cluster_passes.enqueue(&ObjectKey { namespace: one.namespace(), name: name.to_owned() });
            self.provider_passes.enqueue(&ObjectKey::cluster(name));
        }
        // A server that came or went is one more or less to follow.
        if let Some(one) = after.or(before).filter(|_| before.is_none() != after.is_none())
            && let Some(name) = one.cluster_name()
        {
            self.enqueue_instances(name, one.namespace().as_deref());
        }
    }
}

/// The cluster whose instance is called so: `main` for `main-primary-0`.
fn by_its_name(instance: &Bind9Instance) -> Option<String> {
    let name = instance.name_any();
    let (rest, number) = name.rsplit_once('-')?;
    number.parse::<u32>().ok()?;
    let (cluster, role) = rest.rsplit_once('-')?;
    ServerRole::ALL.iter().any(|one| one.as_str() == role).then(|| cluster.to_owned())
}

/// What changes of the mirrored objects makes run. Nothing of that keeps what owns it alive.
pub(crate) fn follow_caches(shared: &Arc<Bind9Context>) {
    shared.providers.follow(shared, Bind9Context::provider_seen);
    shared.clusters.follow(shared, Bind9Context::cluster_seen);
    shared.instances.follow(shared, Bind9Context::instance_seen);
}

/// Whether an instance says that it is ready.
pub(crate) fn is_ready(instance: &Bind9Instance) -> bool {
    instance.status.as_ref().is_some_and(|status| condition::is_ready(&status.conditions))
}
