//! The runner as a node: pods are bound to it, run, reported, and put away.
//!
//! ```text
//! watch ─► bound to us? ─► a worker for each pod: decide ─► steps ─► facts ─► decide … ─► status where it differs
//! ```

mod bounding;
mod commands;
mod events;
mod folders;
mod log_source;
mod messages;
mod output;
mod pods;
mod probing;
mod registration;
mod starting;
mod watching;
mod worker;

use std::collections::BTreeSet;
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
use crate::machine::run_notes::RunNotes;
use crate::network::{Network, NetworkSettings};
use crate::pod::backoff::BackoffLimits;
use crate::pod::downward::NodeCapacity;
use crate::pod::identity::{POD_USERS, RunnerUser, free_user};
use crate::pod::limits::PodBounds;
use events::EventRecorder;
use folders::RunnerFolders;
pub use output::{PodOutputs, RunOutput, WhichRun};
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
    /// How pods reach each other.
    pub network: NetworkSettings,
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
    /// Its network.
    #[error("reading the pods that have addresses")]
    Network(#[source] Box<kube::Error>),
}

/// A runner. Dropping it leaves its processes to the next one; [`stop`](Self::stop) ends them.
pub struct PodRunner {
    stop: watch::Sender<bool>,
    following: JoinHandle<()>,
    watching: JoinHandle<()>,
    outputs: PodOutputs,
    network: Network,
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
    network: Network,
    users: Mutex<TakenUsers>,
    watched: WatchedPods,
    /// Control groups for pods, where the kernel lets the runner make some.
    cgroups: Option<PodCgroups>,
}

/// The uids that pods have.
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
        let cgroups = bounding::cgroups(&folders).await;
        let capacity = registration::capacity();
        registration::register(&client, &settings.node, &capacity, registration::own_user(), cgroups.as_ref())
            .await
            .map_err(|error| RunnerError::Node(Box::new(error)))?;
        if let Some(notice) = registration::own_user().notice() {
            tracing::warn!("{notice}");
        }
        let network = settings.network.clone();
        let network = Network::start(client.clone(), &settings.node, settings.executable.clone(), network)
            .await
            .map_err(|error| RunnerError::Network(Box::new(error)))?;
        let outputs = PodOutputs::new(folders.clone());
        let context = Arc::new(NodeContext {
            recorder: EventRecorder::new(client.clone(), &settings.node),
            launcher: Launcher::new(settings.executable.clone(), notes),
            user: registration::own_user(),
            users: Mutex::new(TakenUsers::of_runner(&folders)),
            watched: WatchedPods::default(),
            cgroups,
            outputs: outputs.clone(),
            network: network.clone(),
            client,
            settings,
            folders,
            capacity,
        });
        let (watched, bounds) = (context.watched.clone(), context.settings.bounds);
        let watching = tokio::spawn(watching::watch(watched, context.folders.clone(), bounds));
        let (stop, stopping) = watch::channel(false);
        let following = tokio::spawn(pods::follow(context, stopping));
        Ok(Self { stop, following, watching, outputs, network })
    }

    /// What users must know of this runner who expect that of a kubelet.
    pub fn notice(&self) -> Option<String> {
        registration::own_user().notice()
    }

    /// What containers write, for `kubectl logs`.
    pub fn outputs(&self) -> PodOutputs {
        self.outputs.clone()
    }

    /// Addresses, Services and names of pods; what it can do, for people, is its report.
    pub fn network(&self) -> Network {
        self.network.clone()
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
        self.network.shutdown();
    }
}

impl TakenUsers {
    /// Runners of several data directories on one machine begin in several places, so that their pods have other users.
    fn of_runner(folders: &RunnerFolders) -> Self {
        let offset = folders.number() % u64::from(POD_USERS.end - POD_USERS.start);
        let offset = u32::try_from(offset).expect("it is less than a range of such numbers");
        Self { taken: BTreeSet::new(), last: Some(POD_USERS.start + offset) }
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
