//! What became of a pod's containers: facts in, and what the next decision and the status read of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::backoff::{BackoffLimits, RestartBackoff};
use super::probes::ContainerProbes;

/// What is known of a pod on its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodRecord {
    /// When the runner first saw it.
    pub since: Option<Timestamp>,
    /// Whether its volumes are there.
    pub volumes: VolumesState,
    /// Its containers, by name.
    pub containers: BTreeMap<String, ContainerRecord>,
    /// Why it ends, once it does.
    pub ending: Option<PodEnding>,
    /// Whether nothing of it runs any more and nothing will.
    pub is_over: bool,
    /// The images that no program stands for, where that is merely simulated.
    pub simulated: BTreeSet<String>,
}

/// Whether a pod's volumes are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VolumesState {
    /// Nobody made them yet.
    #[default]
    Absent,
    /// They could not be made.
    Failed {
        /// When it is tried again.
        again: Timestamp,
    },
    /// They are there.
    Ready,
}

/// The end of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEnding {
    /// Why it ends.
    pub cause: EndingCause,
    /// Since when.
    pub since: Timestamp,
    /// How long its containers may take, in seconds.
    pub grace: i64,
}

/// Why a pod ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndingCause {
    /// It was deleted.
    Deleted,
    /// It was active for longer than it may be.
    DeadlineExceeded,
    /// Its containers are done, and none is started again.
    Completed,
    /// The runner ends it: a reason and a sentence for its status.
    Evicted {
        /// As `Evicted`.
        reason: String,
        /// What was wrong.
        message: String,
    },
}

/// What is known of a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerRecord {
    /// What it does.
    pub run: ContainerRun,
    /// How often it was started again.
    pub restarts: i32,
    /// How the run before this one ended.
    pub previous: Option<Termination>,
    /// When it may be started again.
    pub backoff: RestartBackoff,
    /// Why it could not be started, where it could not.
    pub trouble: Option<StartTrouble>,
}

/// What a container does.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ContainerRun {
    /// It never ran.
    #[default]
    Waiting,
    /// It is being started.
    Starting,
    /// It runs.
    Running(RunningContainer),
    /// It has ended.
    Ended(Termination),
}

/// A container that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningContainer {
    /// The id of this run.
    pub id: String,
    /// Since when.
    pub since: Timestamp,
    /// Its `postStart` hook.
    pub post_start: HookState,
    /// Its probes.
    pub probes: ContainerProbes,
    /// How far it is with ending, where it is to end.
    pub stop: Option<ContainerStop>,
}

/// A hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookState {
    /// There is none.
    None,
    /// Its time has come.
    Due,
    /// It is under way.
    Running,
    /// It ended well.
    Done,
    /// It did not.
    Failed,
}

/// A container that is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerStop {
    /// Why.
    pub cause: StopCause,
    /// Since when.
    pub since: Timestamp,
    /// How long it may take, in seconds.
    pub grace: i64,
    /// Its `preStop` hook.
    pub pre_stop: HookState,
    /// When it was told to end.
    pub told: Option<Timestamp>,
    /// Whether it was killed.
    pub is_killed: bool,
}

/// Why a container is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// Its pod ends.
    PodEnds,
    /// Its liveness probe failed.
    Liveness,
    /// Its startup probe failed.
    Startup,
    /// Its `postStart` hook failed.
    PostStart,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The id of the run.
    pub id: String,
    /// The exit code; 128 and the signal where a signal ended it.
    pub exit_code: i32,
    /// As `Completed`, `Error`, `OOMKilled`, `StartError`.
    pub reason: String,
    /// What the container left in its message file, or why it did not start.
    pub message: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Timestamp,
}

/// Why a container could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartTrouble {
    /// As `CreateContainerConfigError`.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// When it is tried again; never where only another pod could do better.
    pub again: Option<Timestamp>,
}

/// Whether a container has a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasHook {
    /// It has.
    Yes,
    /// It has not.
    No,
}

impl HasHook {
    fn first(self) -> HookState {
        match self {
            Self::Yes => HookState::Due,
            Self::No => HookState::None,
        }
    }
}

impl ContainerRecord {
    /// It runs.
    pub fn running(&self) -> Option<&RunningContainer> {
        match &self.run {
            ContainerRun::Running(running) => Some(running),
            ContainerRun::Waiting | ContainerRun::Starting | ContainerRun::Ended(_) => None,
        }
    }

    /// It runs, to be changed.
    pub fn running_mut(&mut self) -> Option<&mut RunningContainer> {
        match &mut self.run {
            ContainerRun::Running(running) => Some(running),
            ContainerRun::Waiting | ContainerRun::Starting | ContainerRun::Ended(_) => None,
        }
    }

    /// How it ended, where it has.
    pub fn termination(&self) -> Option<&Termination> {
        match &self.run {
            ContainerRun::Ended(termination) => Some(termination),
            ContainerRun::Waiting | ContainerRun::Starting | ContainerRun::Running(_) => None,
        }
    }

    /// Whether there may be a process of it.
    pub fn is_alive(&self) -> bool {
        match self.run {
            ContainerRun::Starting | ContainerRun::Running(_) => true,
            ContainerRun::Waiting | ContainerRun::Ended(_) => false,
        }
    }

    /// It is being started, now; after an end that is a restart.
    pub fn starts(&mut self, now: Timestamp, limits: BackoffLimits) {
        if let ContainerRun::Ended(termination) = std::mem::replace(&mut self.run, ContainerRun::Starting) {
            self.backoff = self.backoff.restarted(termination.ended, now, limits);
            self.restarts = self.restarts.saturating_add(1);
            self.previous = Some(termination);
        }
    }

    /// It runs.
    pub fn started(&mut self, id: String, now: Timestamp, post_start: HasHook) {
        self.trouble = None;
        let probes = ContainerProbes::default();
        self.run = ContainerRun::Running(RunningContainer {
            id,
            since: now,
            post_start: post_start.first(),
            probes,
            stop: None,
        });
    }

    /// It counts as running, and no process stands behind it: it has no hooks, and nobody probes it.
    pub fn simulated(&mut self, id: String, now: Timestamp) {
        self.started(id, now, HasHook::No);
        if let Some(running) = self.running_mut() {
            running.probes = ContainerProbes::skipped();
        }
    }

    /// It could not be prepared, and did not run: what was before stays, and the restart does not count.
    pub fn not_started(&mut self, trouble: StartTrouble) {
        self.trouble = Some(trouble);
        self.run = match self.previous.take() {
            None => ContainerRun::Waiting,
            Some(termination) => {
                self.restarts = self.restarts.saturating_sub(1);
                ContainerRun::Ended(termination)
            }
        };
    }

    /// It is to end.
    pub fn stops(&mut self, cause: StopCause, grace: i64, now: Timestamp, pre_stop: HasHook) {
        if let Some(running) = self.running_mut() {
            // A hook needs time (`kuberuntime/kuberuntime_container.go`, `killContainer`).
            let pre_stop = if grace > 0 { pre_stop.first() } else { HookState::None };
            running.stop = Some(ContainerStop { cause, since: now, grace, pre_stop, told: None, is_killed: false });
        }
    }

    /// It has ended.
    pub fn ended(&mut self, termination: Termination) {
        self.run = ContainerRun::Ended(termination);
    }
}

impl PodRecord {
    /// What is known of a container; nothing yet where it is new.
    pub fn container(&self, name: &str) -> ContainerRecord {
        self.containers.get(name).cloned().unwrap_or_default()
    }

    /// The same, to be changed.
    pub fn container_mut(&mut self, name: &str) -> &mut ContainerRecord {
        self.containers.entry(name.to_owned()).or_default()
    }
}

/// An exit code → the reason that a kubelet gives for it.
pub fn exit_reason(exit_code: i32) -> &'static str {
    if exit_code == 0 { "Completed" } else { "Error" }
}
