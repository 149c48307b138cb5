//! The runner as a node: pods are bound to it, run, reported, and put away.
//!
//! ```text
//! watch ─► bound to us? ─► a worker for each pod: decide ─► steps ─► facts ─► decide … ─► status where it differs
//! ```

mod bounding;
mod claims;
mod commands;
mod events;
mod folders;
mod log_source;
mod messages;
mod output;
mod pods;
mod probing;
mod registration;
mod simulating;
mod starting;
mod usage;
mod users;
mod watching;
mod worker;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::machine::cgroups::PodCgroups;
use crate::machine::leftovers::end_leftovers;
use crate::machine::processes::Launcher;
use crate::machine::reach::reachable_executable;
use crate::machine::run_notes::RunNotes;
use crate::pod::backoff::BackoffLimits;
use crate::pod::downward::NodeCapacity;
use crate::pod::identity::RunnerUser;
use crate::pod::limits::PodBounds;
use events::EventRecorder;
use folders::RunnerFolders;
pub use output::{PodOutputs, RunOutput, WhichRun};
pub use registration::own_uid;
pub use usage::{PodUsage, UsageMeter};
use users::PodUsers;
use watching::WatchedPods;

/// How long pods may take to end when the runner stops; then they are killed.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// How a runner is set up.
#[derive(Clone, Debug)]
pub struct RunnerSettings {
    /// The node's name.
    pub node: String,
    /// Where pods' files, claims and notes are.
    pub folder: PathBuf,
    /// An executable that knows `pod-init`: the runner's own.
    pub executable: PathBuf,
    /// How restarts are spaced.
    pub limits: BackoffLimits,
    /// What all pods may have, whatever they ask for.
    pub bounds: PodBounds,
    /// What becomes of containers whose image no program stands for.
    pub without_program: WithoutProgram,
}

/// What becomes of containers whose image no program of this machine stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutProgram {
    /// They wait, and say so.
    #[default]
    Waits,
    /// They count as running and ready, and say so.
    Simulated,
}

/// Why a runner does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// Its folder.
    #[error(
        "preparing the folder of the runner: check that you may write to the data directory and that its disk is not full"
    )]
    Folder(#[source] io::Error),
    /// The API server.
    #[error("making the runner's node")]
    Node(#[source] Box<kube::Error>),
}

/// A runner. Dropping it leaves its processes to the next one; [`stop`](Self::stop) ends them.
pub struct PodRunner {
    stop: watch::Sender<bool>,
    following: JoinHandle<()>,
    watching: JoinHandle<()>,
    outputs: PodOutputs,
    meter: UsageMeter,
}

/// What all workers share.
struct NodeContext {
    client: kube::Client,
    settings: RunnerSettings,
    folders: RunnerFolders,
    launcher: Launcher,
    user: RunnerUser,
    capacity: NodeCapacity,
    recorder: EventRecorder,
    outputs: PodOutputs,
    users: PodUsers,
    /// Namespace and name of each pod that has a worker, by its uid.
    names: Mutex<HashMap<String, (String, String)>>,
    watched: WatchedPods,
    /// Control groups for pods, where the kernel lets the runner make some.
    cgroups: Option<PodCgroups>,
}

impl PodRunner {
    /// Ends what an earlier runner left, makes the node, and runs pods from now on.
    pub async fn start(client: kube::Client, mut settings: RunnerSettings) -> Result<Self, RunnerError> {
        let folders = RunnerFolders::below(&settings.folder).map_err(RunnerError::Folder)?;
        let notes = RunNotes::in_folder(&folders.notes()).map_err(RunnerError::Folder)?;
        let left = notes.clone();
        let ended = tokio::task::spawn_blocking(move || end_leftovers(&left)).await;
        let ended = ended.map_err(io::Error::other).and_then(|ended| ended).map_err(RunnerError::Folder)?;
        if ended > 0 {
            tracing::info!(ended, "Ended processes of pods that an earlier runner left");
        }
        let cgroups = bounding::cgroups(&folders).await;
        settings.executable =
            reachable_executable(&settings.executable, &folders.programs()).map_err(RunnerError::Folder)?;
        let capacity = registration::capacity();
        registration::register(&client, &settings.node, &capacity, registration::own_user(), cgroups.as_ref())
            .await
            .map_err(|error| RunnerError::Node(Box::new(error)))?;
        if let Some(notice) = registration::own_user().notice() {
            tracing::warn!("{notice}");
        }
        let outputs = PodOutputs::new(folders.clone());
        let context = Arc::new(NodeContext {
            recorder: EventRecorder::new(client.clone(), &settings.node),
            launcher: Launcher::new(settings.executable.clone(), notes),
            user: registration::own_user(),
            users: PodUsers::remembered(folders.clone()).map_err(RunnerError::Folder)?,
            names: Mutex::default(),
            watched: WatchedPods::default(),
            cgroups,
            outputs: outputs.clone(),
            client,
            settings,
            folders,
            capacity,
        });
        let (watched, bounds) = (context.watched.clone(), context.settings.bounds);
        let watching = tokio::spawn(watching::watch(watched, context.folders.clone(), bounds));
        let (stop, stopping) = watch::channel(false);
        let meter = UsageMeter::of(context.clone());
        let following = tokio::spawn(pods::follow(context, stopping));
        Ok(Self { stop, following, watching, outputs, meter })
    }

    /// What users must know of this runner who expect that of a kubelet.
    pub fn notice(&self) -> Option<String> {
        registration::own_user().notice()
    }

    /// What containers write, for `kubectl logs`.
    pub fn outputs(&self) -> PodOutputs {
        self.outputs.clone()
    }

    /// What pods use, for who asks.
    pub fn meter(&self) -> UsageMeter {
        self.meter.clone()
    }

    /// Ends all pods' processes; the pods stay, and run again with the next runner.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let grace = STOPS_WITHIN + Duration::from_secs(5);
        if tokio::time::timeout(grace, &mut self.following).await.is_err() {
            self.following.abort();
            tracing::warn!("Some pods did not end in time; the next runner ends what is left of them");
        }
        self.watching.abort();
    }
}

impl NodeContext {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Nothing of the pod is left: its files go, and its uid is free.
    fn put_away(&self, pod: &str) {
        self.outputs.forget(pod);
        self.users.give_back(pod);
        self.names.lock().expect("nobody panics with it").remove(pod);
        if let Err(error) = self.folders.remove_pod(pod) {
            tracing::warn!(pod, %error, "Could not remove the files of a pod; remove them by hand");
        }
    }
}
