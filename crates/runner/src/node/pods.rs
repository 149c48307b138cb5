//! The pods of the API → each that has no node gets ours, and each of ours has a worker.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{BoxStream, select};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::api::{Api, PartialObjectMeta, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::NodeContext;
use super::claims::ClaimKeeper;
use super::events::EventSort;
use super::worker::{PodUpdate, PodWorker};
use crate::pod::containers::{has_ended, name, namespace, uid};

/// A pod's worker.
struct WorkerHandle {
    namespace: String,
    updates: mpsc::UnboundedSender<PodUpdate>,
    task: JoinHandle<()>,
}

/// The workers of a runner.
struct Workers {
    context: Arc<NodeContext>,
    by_uid: HashMap<String, WorkerHandle>,
    /// What was listed anew; whoever is not among it is gone.
    listed: Option<HashSet<String>>,
    claims: ClaimKeeper,
}

/// Follows all pods until the runner stops, and then lets their workers end.
pub(super) async fn follow(context: Arc<NodeContext>, mut stopping: watch::Receiver<bool>) {
    let pods: Api<Pod> = Api::all(context.client.clone());
    let mut events = watcher(pods, watcher::Config::default()).default_backoff().boxed();
    let claims: Api<PersistentVolumeClaim> = Api::all(context.client.clone());
    let mut claims = watcher(claims, watcher::Config::default()).default_backoff().boxed();
    let mut sources = changed_sources(&context);
    let keeper = ClaimKeeper::new(context.clone());
    let mut workers = Workers { context, by_uid: HashMap::new(), listed: None, claims: keeper };
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => Box::pin(workers.see(event)).await,
                Some(Err(error)) => tracing::debug!(%error, "The watch of pods broke; it begins anew"),
                None => break,
            },
            event = claims.next() => match event {
                Some(Ok(event)) => Box::pin(workers.see_claim(event)).await,
                Some(Err(error)) => tracing::debug!(%error, "The watch of claims broke; it begins anew"),
                None => break,
            },
            Some((namespace, name)) = sources.next() => workers.source_changed(&namespace, &name),
            () = stopped(&mut stopping) => break,
        }
    }
    workers.stop().await;
}

/// Waits until the runner stops, or is gone.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Namespace and name of each `ConfigMap` and Secret that changes.
fn changed_sources(context: &NodeContext) -> BoxStream<'static, (String, String)> {
    let config_maps: Api<PartialObjectMeta<ConfigMap>> = Api::all(context.client.clone());
    let secrets: Api<PartialObjectMeta<Secret>> = Api::all(context.client.clone());
    let config_maps = watcher(config_maps, watcher::Config::default()).default_backoff();
    let secrets = watcher(secrets, watcher::Config::default()).default_backoff();
    let config_maps = config_maps.filter_map(|event| std::future::ready(event.ok().and_then(changed)));
    let secrets = secrets.filter_map(|event| std::future::ready(event.ok().and_then(changed)));
    select(config_maps, secrets).boxed()
}

fn changed<K>(event: Event<PartialObjectMeta<K>>) -> Option<(String, String)> {
    match event {
        Event::Apply(object) | Event::InitApply(object) => Some((object.metadata.namespace?, object.metadata.name?)),
        // What is mounted stays, as with a kubelet.
        Event::Delete(_) | Event::Init | Event::InitDone => None,
    }
}

impl Workers {
    fn source_changed(&self, namespace: &str, name: &str) {
        for worker in self.by_uid.values().filter(|worker| worker.namespace == namespace) {
            let _ = worker.updates.send(PodUpdate::Source(name.to_owned()));
        }
    }

    async fn see_claim(&mut self, event: Event<PersistentVolumeClaim>) {
        let Some((namespace, name)) = self.claims.see(event).await else { return };
        for worker in self.by_uid.values().filter(|worker| worker.namespace == namespace) {
            let _ = worker.updates.send(PodUpdate::Claim(name.clone()));
        }
    }

    async fn see(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(pod) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(uid(&pod).to_owned());
                }
                self.seen(pod).await;
            }
            Event::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                for (_, worker) in self.by_uid.iter().filter(|(uid, _)| !listed.contains(*uid)) {
                    // A worker that has ended needs to know nothing.
                    let _ = worker.updates.send(PodUpdate::Gone);
                }
                self.forget_others(&listed);
                self.claims.pods_listed(&listed).await;
            }
            Event::Apply(pod) => self.seen(pod).await,
            Event::Delete(pod) => {
                match self.by_uid.remove(uid(&pod)) {
                    Some(worker) => drop(worker.updates.send(PodUpdate::Gone)),
                    None => self.context.put_away(uid(&pod)),
                }
                self.claims.pod_gone(&pod).await;
            }
        }
    }

    /// Pods that went while no runner was there left their files.
    fn forget_others(&self, listed: &HashSet<String>) {
        let folders = &self.context.folders;
        let known: HashSet<String> = [folders.pods(), folders.with_users()].into_iter().flatten().flatten().collect();
        for pod in known {
            if !listed.contains(&pod) && !self.by_uid.contains_key(&pod) {
                self.context.put_away(&pod);
            }
        }
    }

    async fn seen(&mut self, pod: Pod) {
        self.claims.pod_seen(&pod).await;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        if node.is_empty() {
            self.bind(&pod).await;
        } else if node == self.context.settings.node {
            self.hand_over(pod);
        }
    }

    fn hand_over(&mut self, pod: Pod) {
        let uid = uid(&pod).to_owned();
        self.by_uid.retain(|_, worker| !worker.task.is_finished());
        if let Some(worker) = self.by_uid.get(&uid) {
            let _ = worker.updates.send(PodUpdate::Changed(Box::new(pod)));
            return;
        }
        // What has ended has no worker, unless it is to be put away.
        if has_ended(&pod) && pod.metadata.deletion_timestamp.is_none() {
            return;
        }
        let (updates, received) = mpsc::unbounded_channel();
        let namespace = namespace(&pod).to_owned();
        let names = (namespace.clone(), name(&pod).to_owned());
        self.context.names.lock().expect("nobody panics with it").insert(uid.clone(), names);
        let worker = PodWorker::new(self.context.clone(), pod, received);
        self.by_uid.insert(uid, WorkerHandle { namespace, updates, task: tokio::spawn(worker.run()) });
    }

    /// Gives a pod our node; its next version has it.
    async fn bind(&self, pod: &Pod) {
        let is_gated = pod.spec.as_ref().is_some_and(|spec| spec.scheduling_gates.iter().flatten().next().is_some());
        if pod.metadata.deletion_timestamp.is_some() || is_gated {
            return;
        }
        let node = &self.context.settings.node;
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name(pod), "namespace": namespace(pod), "uid": uid(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), namespace(pod));
        let bound = pods.create_subresource::<_, Value>("binding", name(pod), &PostParams::default(), &binding).await;
        match bound {
            Ok(_) => {
                let message = format!("Successfully assigned {}/{} to {node}", namespace(pod), name(pod));
                self.context.recorder.tell(&pod.into(), EventSort::Normal, "Scheduled", message, None).await;
            }
            // Somebody else was faster, or the pod is gone: its next version says so.
            Err(error) => tracing::debug!(pod = name(pod), %error, "Could not bind a pod"),
        }
    }

    /// All workers end their processes, side by side.
    async fn stop(self) {
        for worker in self.by_uid.values() {
            let _ = worker.updates.send(PodUpdate::RunnerStops);
        }
        for (_, worker) in self.by_uid {
            // A worker that panicked has nothing more to end.
            let _ = worker.task.await;
        }
    }
}
