//! What a container may have → limits for its processes, a watch over what no limit holds, and the end of what has more.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Container;

use super::events::EventSort;
use super::watching::{WatchedPod, WatchedRun};
use super::worker::PodWorker;
use crate::machine::files::{close_to_others, make_folder};
use crate::machine::init::{LaunchLimits, LaunchUser};
use crate::machine::leftovers::end_user;
use crate::machine::processes::ProcessHandle;
use crate::machine::usage::{clear_open_folders, machine_threads};
use crate::pod::containers::{containers, uid};
use crate::pod::identity::RunnerUser;
use crate::pod::limits::{ContainerLimits, StorageLimits};
use crate::pod::record::{EndingCause, PodEnding};

/// Open files of one process; fewer where the runner itself may have fewer.
const MOST_FILES: u64 = 65_536;
/// How long an evicted pod may take, in seconds (`eviction/eviction_manager.go`, `immediateEvictionGracePeriodSeconds`).
const EVICTION_GRACE: i64 = 1;
/// How a process ends that writes more into a file than it may: 128 and SIGXFSZ.
const FILE_TOO_LARGE: i32 = 128 + 25;

impl PodWorker {
    /// What the kernel holds a process of the container to.
    pub(super) fn launch_limits(&self, container: &Container, user: Option<&LaunchUser>) -> LaunchLimits {
        let held = self.context.settings.bounds.processes_held();
        // The kernel counts by user: where others have the same one, they are counted as well.
        let is_own = user.is_some_and(|user| Some(user.user) == self.user);
        let others = if is_own { 0 } else { machine_threads() };
        LaunchLimits {
            processes: Some(held + others),
            files: Some(MOST_FILES),
            file_size: StorageLimits::of(&self.pod).largest_file(),
            memory: ContainerLimits::of(container).memory_asked(),
        }
    }

    /// Lets only the pod's own group into its folder, where its containers have one group: what lies there is open to whoever gets
    /// in, as files of Secrets are in a container.
    pub(super) fn close_folder(&self) {
        let all = containers(&self.pod).into_iter().filter_map(|one| self.user_of(one.spec).ok());
        let groups: BTreeSet<u32> = all.map(|user| user.group).collect();
        let folder = self.context.folders.pod(uid(&self.pod));
        let group = groups.first().copied().filter(|_| groups.len() == 1 && self.context.user == RunnerUser::Root);
        if let Some(group) = group
            && let Err(error) = make_folder(&folder, None).and_then(|()| close_to_others(&folder, group))
        {
            tracing::debug!(pod = uid(&self.pod), %error, "Could not close a pod's folder to other users");
        }
    }

    /// Has an eye on a run from now on.
    pub(super) fn watch(&self, container: &Container, id: &str, process: &ProcessHandle) {
        let memory = ContainerLimits::of(container).memory;
        let run = WatchedRun { id: id.to_owned(), leader: process.process(), memory };
        let pod = || WatchedPod::new(&self.pod, self.own_user(), self.teller.clone());
        self.context.watched.watch(uid(&self.pod), &container.name, run, pod);
    }

    /// The uid that no other pod has, where the pod's processes have it.
    fn own_user(&self) -> Option<u32> {
        self.user.filter(|_| self.context.user == RunnerUser::Root)
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
    pub(super) async fn end_watch(&mut self, id: &str, exit_code: i32) {
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
