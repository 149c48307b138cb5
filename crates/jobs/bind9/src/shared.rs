//! What the job's controllers share: mirrored objects, and who runs when what changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use portolan_bind9_model::discovery::{ServerCandidate, claimed_name};
use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::keys::KeyRing;
use portolan_bind9_model::kinds::{Bind9Cluster, Bind9Instance, ClusterBind9Provider, DNSZone, ServerRole};
use portolan_bind9_model::names;
use portolan_core::{ObjectKey, condition};
use portolan_engine::{Cache, Context, Handle, Referrers, Selection};

use crate::instance_controller::server_of;
use crate::job::Settings;
use crate::kubernetes::Objects;
use crate::seeding::ZoneSeeds;

pub(crate) struct Bind9Context {
    pub(crate) context: Arc<Context>,
    pub(crate) settings: Settings,
    pub(crate) objects: Objects,
    pub(crate) providers: Cache<ClusterBind9Provider>,
    pub(crate) clusters: Cache<Bind9Cluster>,
    pub(crate) instances: Cache<Bind9Instance>,
    pub(crate) zones: Cache<DNSZone>,
    pub(crate) pods: Cache<Pod>,
    /// Zones that servers fetch from us.
    pub(crate) seeds: ZoneSeeds,
    pub(crate) provider_passes: Handle<()>,
    pub(crate) cluster_passes: Handle<()>,
    pub(crate) instance_passes: Handle<()>,
    pub(crate) zone_passes: Handle<()>,
    /// The keys of each instance.
    keys: Mutex<BTreeMap<ObjectKey, KeyRing>>,
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
            zones: Cache::of(settings.selection()),
            pods: Cache::of(Selection { labels: Some("app=bind9".to_owned()), ..settings.selection() }),
            seeds: ZoneSeeds::default(),
            zone_passes: Handle::new(),
            keys: Mutex::default(),
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
        self.zones.ready().await;
        self.pods.ready().await;
    }

    /// An instance has these keys; what is served by it may have waited for them.
    pub(crate) fn note_keys(&self, instance: &Bind9Instance, ring: &KeyRing) {
        let before = self.keys().insert(instance.key(), ring.clone());
        if before.as_ref() != Some(ring) {
            self.enqueue_zones_of(instance);
        }
    }

    /// An instance is gone, and so are its keys.
    pub(crate) fn forget_keys(&self, instance: &ObjectKey) {
        self.keys().remove(instance);
    }

    /// The keys of an instance, once they are stored.
    pub(crate) fn keys_of(&self, instance: &ObjectKey) -> Option<KeyRing> {
        self.keys().get(instance).cloned()
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, KeyRing>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pods of an instance that are not on their way out, by name.
    pub(crate) fn pods_of(&self, instance: &ObjectKey) -> Vec<PodState> {
        let mut all: Vec<PodState> = self
            .pods
            .iter()
            .filter(|pod| server_of(&pod.metadata).as_ref() == Some(instance))
            .filter_map(|pod| pod_state(&pod))
            .collect();
        all.sort();
        all
    }

    /// What zones see of an instance.
    pub(crate) fn candidate(&self, instance: &Bind9Instance) -> ServerCandidate {
        let (_, provider) = self.parents(instance);
        let allows = provider.as_ref().and_then(|one| one.annotations().get(names::ALLOW_ZONE_NAMESPACES));
        ServerCandidate::of(instance, allows.map(String::as_str))
    }

    /// Zones that an instance has, or might have.
    fn enqueue_zones_of(&self, instance: &Bind9Instance) {
        let (key, cluster) = (instance.key(), instance.cluster_name());
        let might = |zone: &Arc<DNSZone>| {
            let spec = &zone.spec;
            let has =
                zone.status.as_ref().is_some_and(|status| status.bind9_instances.iter().any(|one| one.key() == key));
            let of_cluster = cluster.is_some() && spec.cluster_ref.as_deref() == cluster;
            has || of_cluster || spec.bind9_instances_from.is_some()
        };
        let keys: Vec<ObjectKey> = self.zones.iter().filter(might).map(|zone| zone.key()).collect();
        self.zone_passes.enqueue_all(&keys);
    }

    fn pod_seen(&self, before: Option<&Pod>, after: Option<&Pod>) {
        if before.and_then(pod_state) == after.and_then(pod_state) {
            return;
        }
        let Some(server) = after.or(before).and_then(|pod| server_of(&pod.metadata)) else { return };
        if let Some(instance) = self.instances.get(&server) {
            self.enqueue_zones_of(&instance);
        }
    }

    /// Zones of the same name may take each other's place.
    fn zone_seen(&self, before: Option<&DNSZone>, after: Option<&DNSZone>) {
        let claim = |one: Option<&DNSZone>| one.and_then(|one| claimed_name(&one.spec));
        let leaving =
            |one: Option<&DNSZone>| one.map(|one| (one.spec.clone(), one.metadata.deletion_timestamp.is_some()));
        let Some(own) = after.or(before).map(DNSZone::key).filter(|_| leaving(before) != leaving(after)) else {
            return;
        };
        let claims = [claim(before), claim(after)];
        let meets = |zone: &Arc<DNSZone>| {
            zone.key() != own && claims.iter().flatten().any(|name| claimed_name(&zone.spec).as_ref() == Some(name))
        };
        let keys: Vec<ObjectKey> = self.zones.iter().filter(meets).map(|zone| zone.key()).collect();
        self.zone_passes.enqueue_all(&keys);
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
        let allows = |one: Option<&ClusterBind9Provider>| {
            one.and_then(|one| one.annotations().get(names::ALLOW_ZONE_NAMESPACES).cloned())
        };
        if let Some(one) =
            after.or(before).filter(|_| before.is_none() != after.is_none() || allows(before) != allows(after))
        {
            self.enqueue_zones_naming(&one.name_any(), None);
        }
    }

    /// Zones that name a cluster or provider.
    fn enqueue_zones_naming(&self, cluster: &str, namespace: Option<&str>) {
        let names = |zone: &Arc<DNSZone>| {
            let here = namespace.is_none() || zone.metadata.namespace.as_deref() == namespace;
            here && zone.spec.cluster_ref.as_deref() == Some(cluster)
        };
        let keys: Vec<ObjectKey> = self.zones.iter().filter(names).map(|zone| zone.key()).collect();
        self.zone_passes.enqueue_all(&keys);
    }

    fn cluster_seen(&self, before: Option<&Bind9Cluster>, after: Option<&Bind9Cluster>) {
        let Some(one) = after.or(before) else { return };
        let spec = |one: Option<&Bind9Cluster>| one.map(|one| one.spec.clone());
        if spec(before) != spec(after) {
            self.enqueue_instances(&one.name_any(), one.namespace().as_deref());
        }
        if before.is_none() != after.is_none() {
            self.enqueue_zones_naming(&one.name_any(), one.namespace().as_deref());
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
        let candidate = |one: Option<&Bind9Instance>| one.map(|one| self.candidate(one));
        if candidate(before) != candidate(after) {
            [before, after].into_iter().flatten().for_each(|one| self.enqueue_zones_of(one));
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
    shared.zones.follow(shared, Bind9Context::zone_seen);
    shared.pods.follow(shared, Bind9Context::pod_seen);
}

/// Whether an instance says that it is ready.
pub(crate) fn is_ready(instance: &Bind9Instance) -> bool {
    instance.status.as_ref().is_some_and(|status| condition::is_ready(&status.conditions))
}

fn pod_state(pod: &Pod) -> Option<PodState> {
    PodState::of(&serde_json::to_value(pod).expect("objects are plain JSON"))
}
