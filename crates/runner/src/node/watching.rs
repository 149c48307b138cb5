//! Pods that run → those of them that have more than they may, told to their workers.
//!
//! Nobody looks while no pod runs. A look costs as much as has changed since the one before: a reading or two where nothing has.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::folders::RunnerFolders;
use super::worker::PodFact;
use crate::machine::usage::{
    PodProcesses, ProcessTable, WantedProcesses, free_disk, machine_threads, open_folders_use, own_memory, page_size,
    proportional_memory, storage_use,
};
use crate::pod::containers::containers;
use crate::pod::limits::{PodBounds, StorageLimits, StorageUse, disk_verdict, process_verdict, storage_verdict};
use crate::pod::record::EndingCause;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After so many looks at what seems unchanged, all is measured anew.
const ALL_EVERY: u32 = 10;

/// The pods that are watched.
#[derive(Clone, Default)]
pub(super) struct WatchedPods {
    pods: Arc<Mutex<HashMap<String, WatchedPod>>>,
    more: Arc<Notify>,
}

/// A pod that is watched.
#[derive(Clone)]
pub(super) struct WatchedPod {
    teller: UnboundedSender<PodFact>,
    /// The uid that it has of its own, where its processes have it.
    user: Option<u32>,
    limits: StorageLimits,
    volumes: Vec<String>,
    containers: Vec<String>,
    runs: BTreeMap<String, WatchedRun>,
}

/// A run that is watched.
#[derive(Clone)]
pub(super) struct WatchedRun {
    pub(super) id: String,
    /// Its first process.
    pub(super) leader: i32,
    /// Bytes of memory that it may have.
    pub(super) memory: Option<u64>,
}

impl WatchedPod {
    pub(super) fn new(pod: &Pod, user: Option<u32>, teller: UnboundedSender<PodFact>) -> Self {
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let volumes = volumes.filter(|volume| volume.empty_dir.is_some()).map(|volume| volume.name.clone()).collect();
        let containers = containers(pod).iter().map(|one| one.spec.name.clone()).collect();
        Self { teller, user, limits: StorageLimits::of(pod), volumes, containers, runs: BTreeMap::new() }
    }

    /// How much of the disk it uses, without what lies where everybody may write.
    fn storage_use(&self, folders: &RunnerFolders, uid: &str) -> StorageUse {
        storage_use(&folders.pod(uid), &self.volumes, &self.containers)
    }
}

impl WatchedPods {
    /// A run of a container begins.
    pub(super) fn watch(&self, uid: &str, container: &str, run: WatchedRun, pod: impl FnOnce() -> WatchedPod) {
        let mut pods = self.pods.lock().expect("nobody panics with it");
        pods.entry(uid.to_owned()).or_insert_with(pod).runs.insert(container.to_owned(), run);
        self.more.notify_one();
    }

    /// It has ended.
    pub(super) fn unwatch(&self, uid: &str, run: &str) {
        let mut pods = self.pods.lock().expect("nobody panics with it");
        if let Some(pod) = pods.get_mut(uid) {
            pod.runs.retain(|_, watched| watched.id != run);
        }
    }

    /// Its pod is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.pods.lock().expect("nobody panics with it").remove(uid);
    }

    fn all(&self) -> HashMap<String, WatchedPod> {
        self.pods.lock().expect("nobody panics with it").clone()
    }

    /// Why the pod is to be evicted for what it has on the disk at this moment.
    pub(super) fn storage_verdict(&self, folders: &RunnerFolders, uid: &str) -> Option<EndingCause> {
        let pod = self.pods.lock().expect("nobody panics with it").get(uid).cloned()?;
        storage_verdict(&pod.limits, &pod.storage_use(folders, uid))
    }
}

/// Looks again and again, until it is dropped.
pub(super) async fn watch(watched: WatchedPods, folders: RunnerFolders, bounds: PodBounds) {
    let mut watcher = Watcher::new(folders, bounds);
    loop {
        let pods = watched.all();
        if pods.is_empty() {
            watched.more.notified().await;
            continue;
        }
        let looked = tokio::task::spawn_blocking(move || {
            let found = watcher.look(&pods);
            (watcher, pods, found)
        });
        let Ok((same, pods, found)) = looked.await else {
            tracing::error!("The watch over what pods have broke; limits of memory and disk are not held any more");
            return;
        };
        watcher = same;
        for (uid, fact) in found {
            if let Some(pod) = pods.get(&uid) {
                // Its worker may have ended since.
                let _ = pod.teller.send(fact);
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What was seen at the look before.
struct Watcher {
    folders: RunnerFolders,
    bounds: PodBounds,
    page: u64,
    table: ProcessTable,
    processes: PodProcesses,
    /// What was watched when the processes were looked at, and how many there were.
    seen: (Vec<String>, u64),
    free: u64,
    looks: u32,
}

impl Watcher {
    fn new(folders: RunnerFolders, bounds: PodBounds) -> Self {
        let (table, processes) = (ProcessTable::default(), PodProcesses::default());
        Self { folders, bounds, page: page_size(), table, processes, seen: (Vec::new(), 0), free: 0, looks: 0 }
    }

    /// What the workers of pods must know.
    fn look(&mut self, pods: &HashMap<String, WatchedPod>) -> Vec<(String, PodFact)> {
        self.looks = self.looks.wrapping_add(1);
        let is_thorough = self.looks.is_multiple_of(ALL_EVERY);
        let mut found = self.crowds(pods, is_thorough);
        found.extend(self.memory(pods));
        found.extend(self.disk(pods, is_thorough));
        found
    }

    /// Pods with too many processes.
    fn crowds(&mut self, pods: &HashMap<String, WatchedPod>, is_thorough: bool) -> Vec<(String, PodFact)> {
        let mut runs: Vec<String> = pods.values().flat_map(|pod| pod.runs.values().map(|run| run.id.clone())).collect();
        runs.sort_unstable();
        let seen = (runs, machine_threads());
        if seen == self.seen && !is_thorough {
            return Vec::new();
        }
        self.seen = seen;
        match self.table.look(&wanted(pods)) {
            Ok(processes) => self.processes = processes,
            Err(error) => tracing::debug!(%error, "Could not look at processes"),
        }
        let crowded = pods.keys().filter_map(|uid| {
            let cause = process_verdict(self.bounds, *self.processes.counts.get(uid)?)?;
            Some((uid.clone(), PodFact::Beyond { cause }))
        });
        crowded.collect()
    }

    /// Runs with too much memory.
    fn memory(&self, pods: &HashMap<String, WatchedPod>) -> Vec<(String, PodFact)> {
        let mut found = Vec::new();
        for (uid, pod) in pods {
            for (container, run) in &pod.runs {
                if run.memory.is_some_and(|limit| self.has_more(run, limit)) {
                    let (container, id) = (container.clone(), run.id.clone());
                    found.push((uid.clone(), PodFact::OutOfMemory { container, id }));
                }
            }
        }
        found
    }

    fn has_more(&self, run: &WatchedRun, limit: u64) -> bool {
        let alone = vec![run.leader];
        let processes = self.processes.runs.get(&run.id).unwrap_or(&alone);
        let own: u64 = processes.iter().map(|process| own_memory(*process, self.page)).sum();
        // What children share with their parents was counted for each of them.
        let parts = |process: &i32| proportional_memory(*process).unwrap_or_else(|| own_memory(*process, self.page));
        own > limit && processes.iter().map(parts).sum::<u64>() > limit
    }

    /// Pods with too much of the disk, and the one that goes because it is nearly full.
    fn disk(&mut self, pods: &HashMap<String, WatchedPod>, is_thorough: bool) -> Vec<(String, PodFact)> {
        let free = free_disk(&self.folders.pod("")).unwrap_or(u64::MAX);
        let is_changed = free != std::mem::replace(&mut self.free, free);
        let is_low = free < self.bounds.free_disk;
        if !is_changed && !is_thorough && !is_low {
            return Vec::new();
        }
        let used = self.used(pods.iter().filter(|(_, pod)| is_low || !pod.limits.is_empty()));
        let beyond = used.iter().filter_map(|(uid, used)| {
            let cause = storage_verdict(&pods.get(uid)?.limits, used)?;
            Some((uid.clone(), PodFact::Beyond { cause }))
        });
        let mut found: Vec<(String, PodFact)> = beyond.collect();
        if found.is_empty()
            && let Some((uid, cause)) = disk_verdict(self.bounds, free, &used)
        {
            found.push((uid, PodFact::Beyond { cause }));
        }
        found
    }

    fn used<'p>(&self, pods: impl Iterator<Item = (&'p String, &'p WatchedPod)>) -> BTreeMap<String, StorageUse> {
        let pods: Vec<_> = pods.collect();
        let users: HashSet<u32> = pods.iter().filter_map(|(_, pod)| pod.user).collect();
        let elsewhere = if users.is_empty() { HashMap::new() } else { open_folders_use(&users) };
        let of = |(uid, pod): (&'p String, &'p WatchedPod)| {
            let elsewhere = pod.user.and_then(|user| elsewhere.get(&user)).copied().unwrap_or(0);
            (uid.clone(), StorageUse { elsewhere, ..pod.storage_use(&self.folders, uid) })
        };
        pods.into_iter().map(of).collect()
    }
}

fn wanted(pods: &HashMap<String, WatchedPod>) -> WantedProcesses {
    let mut wanted = WantedProcesses::default();
    for (uid, pod) in pods {
        wanted.leaders.extend(pod.runs.values().map(|run| (run.leader, (uid.clone(), run.id.clone()))));
        wanted.users.extend(pod.user.map(|user| (user, uid.clone())));
    }
    wanted
}
