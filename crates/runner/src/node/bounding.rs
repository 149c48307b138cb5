//! What a container may have → limits for its processes, a watch over what no limit holds, and the end of what has more.

use k8s_openapi::api::core::v1::Container;

use super::events::EventSort;
use super::folders::RunnerFolders;
use super::watching::{WatchedPod, WatchedRun};
use super::worker::PodWorker;
use crate::machine::cgroups::{CgroupLimits, NoCgroups, PodCgroups};
use crate::machine::init::{LaunchLimits, LaunchUser};
use crate::machine::leftovers::end_user;
use crate::machine::measures::{clear_open_folders, machine_threads};
use crate::machine::processes::ProcessHandle;
use crate::pod::containers::uid;
use crate::pod::identity::RunnerUser;
use crate::pod::limits::{ContainerLimits, StorageLimits};
use crate::pod::record::{EndingCause, PodEnding};

/// Open files of one process; fewer where the runner itself may have fewer.
const MOST_FILES: u64 = 65_536;
/// How long an evicted pod may take, in seconds (`eviction/eviction_manager.go`, `immediateEvictionGracePeriodSeconds`).
const EVICTION_GRACE: i64 = 1;
/// How a process ends that writes more into a file than it may: 128 and SIGXFSZ.
const FILE_TOO_LARGE: i32 = 128 + 25;

/// The control groups of a runner's pods; says why there are none.
pub(super) async fn cgroups(folders: &RunnerFolders) -> Option<PodCgroups> {
    let name = format!("{:016x}", folders.number());
    let made = tokio::task::spawn_blocking(move || {
        let groups = PodCgroups::of_this_process(&name)?;
        groups.clear()?;
        Ok::<_, NoCgroups>(groups)
    });
    match made.await {
        Ok(Ok(groups)) => Some(groups),
        Ok(Err(why)) => {
            tracing::info!("Limits of memory are measured and those of processors are not held: {why}");
            None
        }
        Err(_) => None,
    }
}

impl PodWorker {
    /// What the kernel holds a process of the container to.
    pub(super) fn launch_limits(&self, container: &Container, user: Option<&LaunchUser>) -> LaunchLimits {
        let (held, groups) = (self.context.settings.bounds.processes_held(), self.context.cgroups.as_ref());
        // The kernel counts by user: where others have the same one, they are counted as well.
        let is_own = user.is_some_and(|user| Some(user.user) == self.own_user());
        let others = if is_own { 0 } else { machine_threads() };
        LaunchLimits {
            processes: Some(held + others),
            files: Some(MOST_FILES),
            file_size: StorageLimits::of(&self.pod).largest_file(),
            memory: ContainerLimits::of(container).memory_asked().filter(|_| groups.is_none()),
            group: groups.map(|groups| groups.container(uid(&self.pod), &container.name)),
        }
    }

    /// Makes the control group of a container that is to run.
    pub(super) async fn begin_group(&self, container: &Container) -> Result<(), String> {
        let Some(groups) = self.context.cgroups.clone() else { return Ok(()) };
        let ContainerLimits { memory, cpu } = ContainerLimits::of(container);
        let limits = CgroupLimits { memory, cpu, processes: self.context.settings.bounds.processes_held() };
        let (pod, name) = (uid(&self.pod).to_owned(), container.name.clone());
        let begun = tokio::task::spawn_blocking(move || groups.begin(&pod, &name, limits)).await;
        begun.map_err(std::io::Error::other).and_then(|begun| begun).map_err(|error| format!("control group: {error}"))
    }

    /// Takes the control group of a run away that has ended; says whether the kernel ended it for its memory.
    async fn end_group(&mut self, container: &str, id: &str) {
        let Some(groups) = self.context.cgroups.clone() else { return };
        let (pod, name) = (uid(&self.pod).to_owned(), container.to_owned());
        let ended = tokio::task::spawn_blocking(move || {
            let was_out = groups.was_out_of_memory(&pod, &name);
            if let Err(error) = groups.end(&pod, &name) {
                tracing::debug!(pod, container = name, %error, "Could not remove the control group of a container");
            }
            was_out
        });
        if ended.await.is_ok_and(|was_out| was_out) {
            self.out_of_memory.insert(id.to_owned());
        }
    }

    /// Has an eye on a run from now on.
    pub(super) fn watch(&self, container: &Container, id: &str, process: &ProcessHandle) {
        // What the kernel holds needs no measuring.
        let memory = ContainerLimits::of(container).memory.filter(|_| self.context.cgroups.is_none());
        let run = WatchedRun { id: id.to_owned(), leader: process.process(), memory };
        let pod = || WatchedPod::new(&self.pod, self.own_user(), self.teller.clone());
        self.context.watched.watch(uid(&self.pod), &container.name, run, pod);
    }

    /// The uid that no other pod has, where the pod's processes have it.
    fn own_user(&self) -> Option<u32> {
        let is_own = self.context.user == RunnerUser::Root && self.context.users.has_alone(uid(&self.pod));
        self.user.filter(|_| is_own)
    }

    /// A container has more memory than it may: all of it ends, as with a control group of its own.
    pub(super) fn out_of_memory(&mut self, container: &str, id: String) {
        let is_current = self.record.container(container).running().is_some_and(|running| running.id == id);
        if let Some(process) = self.processes.get(container).filter(|_| is_current).cloned() {
            self.out_of_memory.insert(id);
            tokio::task::spawn_blocking(move || process.kill());
        }
    }

    /// A pod has more than it may: it is evicted.
    pub(super) async fn evict(&mut self, cause: EndingCause) {
        if self.record.ending.is_some() || self.record.is_over {
            return;
        }
        if let EndingCause::Evicted { reason, message } = &cause {
            self.tell(EventSort::Warning, reason, message.clone(), None).await;
        }
        self.record.ending = Some(PodEnding { cause, since: self.context.now(), grace: EVICTION_GRACE });
    }

    /// A run has ended: nobody needs to watch it. One that wrote more than it may is not done, its pod is evicted.
    pub(super) async fn end_watch(&mut self, container: &str, id: &str, exit_code: i32) {
        self.end_group(container, id).await;
        let (watched, folders) = (self.context.watched.clone(), self.context.folders.clone());
        if exit_code == FILE_TOO_LARGE {
            let pod = uid(&self.pod).to_owned();
            let verdict = tokio::task::spawn_blocking(move || watched.storage_verdict(&folders, &pod)).await;
            if let Ok(Some(cause)) = verdict {
                self.evict(cause).await;
            }
        }
        self.context.watched.unwatch(uid(&self.pod), id);
    }

    /// Nothing of the pod runs that is known: what has hidden itself ends as well, and what it left where everybody may write goes.
    pub(super) async fn end_hidden(&self) {
        self.context.watched.forget(uid(&self.pod));
        if let Some(groups) = self.context.cgroups.clone() {
            let pod = uid(&self.pod).to_owned();
            // What is left is found by the next runner.
            let _ = tokio::task::spawn_blocking(move || groups.end_pod(&pod)).await;
        }
        let Some(user) = self.own_user() else { return };
        let pod = uid(&self.pod).to_owned();
        let ended = tokio::task::spawn_blocking(move || {
            let ended = end_user(user, &pod);
            clear_open_folders(user);
            ended
        });
        if let Ok(Err(error)) = ended.await {
            tracing::warn!(pod = uid(&self.pod), %error, "Could not look for hidden processes of a pod");
        }
    }
}
