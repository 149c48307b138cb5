//! The runner as a node: pods are bound to it, run, reported, and put away.
//!
//! ```text
//! watch ─► bound to us? ─► a worker for each pod: decide ─► steps ─► facts ─► decide … ─► status where it differs
//! ```

mod commands;
mod doors;
mod events;
mod exec;
mod folders;
mod log_source;
mod output;
mod pods;
mod port_forward;
mod probing;
mod registration;
mod starting;
mod worker;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::machine::leftovers::end_leftovers;
use crate::machine::processes::Launcher;
use crate::machine::run_notes::RunNotes;
use crate::pod::backoff::BackoffLimits;
use crate::pod::downward::NodeCapacity;
use crate::pod::identity::{RunnerUser, free_user};
pub use doors::PodDoors;
use events::EventRecorder;
use folders::RunnerFolders;
pub use output::{PodOutputs, RunOutput, WhichRun};

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
    outputs: PodOutputs,
    doors: PodDoors,
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
    doors: PodDoors,
    users: Mutex<TakenUsers>,
}

/// The uids that pods have.
#[derive(Default)]
struct TakenUsers {
    taken: BTreeSet<u32>,
    last: Option<u32>,
}

impl PodRunner {
    /// Ends what an earlier runner left, makes the node, and runs pods from now on.
    pub async fn start(client: kube::Client, settings: RunnerSettings) -> Result<Self, RunnerError> {
        let folders = RunnerFolders::below(&settings.folder).map_err(RunnerError::Folder)?;
        let notes = RunNotes::in_folder(&folders.notes()).map_err(RunnerError::Folder)?;
        let left = notes.clone();
        let ended = tokio::task::spawn_blocking(move || end_leftovers(&left)).await;
        let ended = ended.map_err(io::Error::other).and_then(|ended| ended).map_err(RunnerError::Folder)?;
        if ended > 0 {
            tracing::info!(ended, "Ended processes of pods that an earlier runner left");
        }
        let capacity = registration::capacity();
        registration::register(&client, &settings.node, &capacity)
            .await
            .map_err(|error| RunnerError::Node(Box::new(error)))?;
        let (outputs, doors) = (PodOutputs::new(folders.clone()), PodDoors::default());
        let context = Arc::new(NodeContext {
            recorder: EventRecorder::new(client.clone(), &settings.node),
            launcher: Launcher::new(settings.executable.clone(), notes),
            user: registration::own_user(),
            users: Mutex::default(),
            outputs: outputs.clone(),
            doors: doors.clone(),
            client,
            settings,
            folders,
            capacity,
        });
        let (stop, stopping) = watch::channel(false);
        let following = tokio::spawn(pods::follow(context, stopping));
        Ok(Self { stop, following, outputs, doors })
    }

    /// What containers write, for `kubectl logs`.
    pub fn outputs(&self) -> PodOutputs {
        self.outputs.clone()
    }

    /// The ways into pods, for `kubectl exec` and `kubectl port-forward`.
    pub fn doors(&self) -> PodDoors {
        self.doors.clone()
    }

    /// Ends all pods' processes; the pods stay, and run again with the next runner.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let grace = STOPS_WITHIN + Duration::from_secs(5);
        if tokio::time::timeout(grace, &mut self.following).await.is_err() {
            self.following.abort();
            tracing::warn!("Some pods did not end in time; the next runner ends what is left of them");
        }
    }
}

impl NodeContext {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Sets a uid aside for a pod.
    fn take_user(&self) -> Option<u32> {
        let mut users = self.users.lock().expect("nobody panics with it");
        let user = free_user(&users.taken, users.last)?;
        users.taken.insert(user);
        users.last = Some(user);
        Some(user)
    }

    fn give_back_user(&self, user: u32) {
        self.users.lock().expect("nobody panics with it").taken.remove(&user);
    }
}
