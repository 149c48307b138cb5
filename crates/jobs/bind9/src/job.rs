//! The job as a whole: its controllers, and who runs when what changes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::api::{ApiResource, ObjectMeta};
use portolan_bind9_model::conf::PodAddress;
use portolan_core::ObjectKey;
use portolan_engine::{CancellationToken, Context, Controller, Job, JobStart, Related, Selection, Task, key_of};

use crate::cluster_controller::ClusterController;
use crate::instance_controller::{InstanceController, RunningFiles, server_of};
use crate::provider_controller::ProviderController;
use crate::shared::{Bind9Context, ReadKind, follow_caches};
use crate::zone_controller::ZoneController;

/// Where clusters of providers are made unless their users say otherwise; the older operator's place.
pub(crate) const NAMESPACE: &str = "bindy-system";

/// The port by which servers fetch zones from us: policies of a network have to let it through.
const SEED_PORT: u16 = 5310;

/// How the job runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where clusters of providers are made unless their users say otherwise.
    pub operator_namespace: String,
    /// The namespaces that are looked at; all where empty.
    pub watch_namespaces: Vec<String>,
    /// Where servers fetch zones that are being seeded. Port 0 is one that is free.
    pub seed_address: SocketAddr,
    /// Where servers listen: on all addresses of their pods, unless pods share a network.
    pub pod_address: PodAddress,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            operator_namespace: NAMESPACE.to_owned(),
            watch_namespaces: Vec::new(),
            seed_address: (Ipv4Addr::LOCALHOST, 0).into(),
            pod_address: PodAddress::Any,
        }
    }
}

impl Settings {
    /// The settings that the older operator's variables say: `BINDY_WATCH_NAMESPACES`, a list with commas, and `POD_NAMESPACE`; and where
    /// servers reach us, which is `POD_IP`.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let said = |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let namespaces = said("BINDY_WATCH_NAMESPACES").unwrap_or_default();
        let listed = namespaces.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Self {
            operator_namespace: said("POD_NAMESPACE").unwrap_or_else(|| NAMESPACE.to_owned()),
            watch_namespaces: listed.collect(),
            seed_address: said("POD_IP")
                .and_then(|ip| ip.parse::<IpAddr>().ok())
                .map_or_else(|| Self::default().seed_address, |ip| (ip, SEED_PORT).into()),
            ..Self::default()
        }
    }

    pub(crate) fn selection(&self) -> Selection {
        Selection::namespaces(self.watch_namespaces.iter().cloned())
    }

    pub(crate) fn clusterwide(&self) -> Selection {
        Selection::all()
    }
}

/// Makes the job over a cluster.
pub(crate) fn start(start: &JobStart<'_>) -> Job {
    let (context, settings) = (Arc::clone(&start.context), start.provisions.settings::<Settings>());
    Job::new(portolan_bind9_model::JOB, move |shutdown| tasks(&context, settings.clone(), shutdown))
}

/// Everything that runs, made anew.
fn tasks(context: &Arc<Context>, settings: Settings, shutdown: &CancellationToken) -> Vec<Task> {
    let shared = Arc::new(Bind9Context::new(Arc::clone(context), settings));
    follow_caches(&shared);
    vec![
        shared.providers.into_task(context, shutdown.clone()),
        shared.clusters.into_task(context, shutdown.clone()),
        shared.instances.into_task(context, shutdown.clone()),
        provider_controller(&shared).into_task(shutdown.clone()),
        cluster_controller(&shared).into_task(shutdown.clone()),
        shared.zones.into_task(context, shutdown.clone()),
        shared.pods.into_task(context, shutdown.clone()),
        instance_controller(&shared).into_task(shutdown.clone()),
        zone_controller(&shared).into_task(shutdown.clone()),
        shared.seeds.task(shared.settings.seed_address, shutdown.clone()),
    ]
}

/// Waits until the mirrored objects are complete.
fn ready(shared: &Arc<Bind9Context>) -> impl Future<Output = ()> + Send + 'static {
    let shared = Arc::clone(shared);
    async move { shared.ready().await }
}

fn provider_controller(shared: &Arc<Bind9Context>) -> Controller<ProviderController> {
    let reconciler = Arc::new(ProviderController { shared: Arc::clone(shared) });
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.provider_passes.clone())
        .select(shared.settings.clusterwide())
        .after(ready(shared))
}

fn cluster_controller(shared: &Arc<Bind9Context>) -> Controller<ClusterController> {
    let reconciler = Arc::new(ClusterController { shared: Arc::clone(shared) });
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.cluster_passes.clone())
        .select(shared.settings.selection())
        .after(ready(shared))
}

/// An instance runs when what belongs to it changes, and when something changes that it reads.
fn instance_controller(shared: &Arc<Bind9Context>) -> Controller<InstanceController> {
    let reconciler = Arc::new(InstanceController { shared: Arc::clone(shared), running: RunningFiles::default() });
    let servers = || Selection { labels: Some("app=bind9".to_owned()), ..shared.settings.selection() };
    let (secrets, maps, services) = (Arc::clone(shared), Arc::clone(shared), Arc::clone(shared));
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.instance_passes.clone())
        .select(shared.settings.selection())
        .after(ready(shared))
        .watch::<Deployment>(servers(), |seen, _| of_server(seen, |one| &one.metadata))
        .watch::<StatefulSet>(servers(), |seen, _| of_server(seen, |one| &one.metadata))
        .watch::<Pod>(servers(), |seen, _| of_server(seen, |one| &one.metadata))
        .watch::<Service>(servers(), move |seen, _| {
            let key = key_seen(&seen, |one| &one.metadata);
            with_readers(&services, ReadKind::Service, &key, of_server(seen, |one| &one.metadata))
        })
        .watch_metadata(&ApiResource::erase::<Secret>(&()), shared.settings.selection(), move |seen, _| {
            let key = key_seen(&seen, |one| &one.metadata);
            with_readers(&secrets, ReadKind::Secret, &key, of_server(seen, |one| &one.metadata))
        })
        .watch_metadata(&ApiResource::erase::<ConfigMap>(&()), shared.settings.selection(), move |seen, _| {
            let key = key_seen(&seen, |one| &one.metadata);
            with_readers(&maps, ReadKind::ConfigMap, &key, of_server(seen, |one| &one.metadata))
        })
}

fn zone_controller(shared: &Arc<Bind9Context>) -> Controller<ZoneController> {
    let reconciler = Arc::new(ZoneController::new(Arc::clone(shared)));
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.zone_passes.clone())
        .select(shared.settings.selection())
        .after(ready(shared))
}

/// The instance that an object belongs to. One that is gone made its instance run before, which runs again by itself.
fn of_server<K>(seen: Related<'_, K>, meta: impl Fn(&K) -> &ObjectMeta) -> Vec<ObjectKey> {
    match seen {
        Related::Here(object) => server_of(meta(object)).into_iter().collect(),
        Related::Gone(_) => Vec::new(),
    }
}

fn key_seen<K>(seen: &Related<'_, K>, meta: impl Fn(&K) -> &ObjectMeta) -> ObjectKey {
    match seen {
        Related::Here(object) => key_of(meta(object)),
        Related::Gone(key) => (*key).clone(),
    }
}

fn with_readers(shared: &Bind9Context, kind: ReadKind, key: &ObjectKey, mut all: Vec<ObjectKey>) -> Vec<ObjectKey> {
    all.extend(shared.readers.of(&(kind, key.clone())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_70_the_older_operators_variables_say_where_it_looks() {
        let settings = Settings::of_environment(|name| match name {
            "BINDY_WATCH_NAMESPACES" => Some("a, b,,".to_owned()),
            "POD_NAMESPACE" => Some("dns".to_owned()),
            _ => None,
        });

        assert_eq!(
            (settings.watch_namespaces, settings.operator_namespace.as_str()),
            (vec!["a".to_owned(), "b".to_owned()], "dns")
        );
        let usual = Settings::of_environment(|_| None);
        assert_eq!((usual.watch_namespaces.len(), usual.operator_namespace.as_str()), (0, "bindy-system"));
    }
}
