//! Runs of containers → what they wrote, for who asks: the one that runs or ran last, and the one before.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::sync::broadcast;

use super::folders::RunnerFolders;
use crate::machine::logs::{MOST_KEPT, OutputLine, OutputLog, read_log};

/// The output of all pods.
#[derive(Clone, Debug)]
pub struct PodOutputs {
    folders: RunnerFolders,
    live: Arc<Mutex<HashMap<(String, String), OutputLog>>>,
}

/// Of which run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichRun {
    /// The one that runs, or ran last.
    Current,
    /// The one before.
    Previous,
}

/// What a run wrote: lines, and those that come.
pub type RunOutput = (Vec<OutputLine>, Option<broadcast::Receiver<OutputLine>>);

impl PodOutputs {
    pub(super) fn new(folders: RunnerFolders) -> Self {
        Self { folders, live: Arc::default() }
    }

    /// Begins the log of a run. Of the runs before it, the last is kept.
    pub(super) fn begin(&self, pod: &str, container: &str, restarts: i32) -> io::Result<OutputLog> {
        for old in self.runs(pod, container)?.into_iter().filter(|run| *run < restarts - 1) {
            std::fs::remove_dir_all(self.folders.run(pod, container, old))?;
        }
        let log = OutputLog::begin(&self.folders.run(pod, container, restarts), MOST_KEPT)?;
        let key = (pod.to_owned(), container.to_owned());
        self.live.lock().expect("nobody panics with it").insert(key, log.clone());
        Ok(log)
    }

    /// Forgets a pod.
    pub(super) fn forget(&self, pod: &str) {
        self.live.lock().expect("nobody panics with it").retain(|(of, _), _| of != pod);
    }

    /// What a run of a container wrote, at most its last lines; none where there was no such run.
    pub fn lines(
        &self,
        pod: &str,
        container: &str,
        which: WhichRun,
        last: Option<usize>,
    ) -> io::Result<Option<RunOutput>> {
        let mut runs = self.runs(pod, container)?;
        let (current, previous) = (runs.pop(), runs.pop());
        let live =
            self.live.lock().expect("nobody panics with it").get(&(pod.to_owned(), container.to_owned())).cloned();
        match (which, live) {
            (WhichRun::Current, Some(live)) => live.open(last).map(Some),
            (WhichRun::Current, None) => self.ended(pod, container, current, last),
            (WhichRun::Previous, _) => self.ended(pod, container, previous, last),
        }
    }

    fn ended(
        &self,
        pod: &str,
        container: &str,
        run: Option<i32>,
        last: Option<usize>,
    ) -> io::Result<Option<RunOutput>> {
        let Some(run) = run else { return Ok(None) };
        Ok(Some((read_log(&self.folders.run(pod, container, run), last)?, None)))
    }

    /// The runs that there are, in their order.
    fn runs(&self, pod: &str, container: &str) -> io::Result<Vec<i32>> {
        let entries = match std::fs::read_dir(self.folders.runs(pod, container)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut runs = Vec::new();
        for entry in entries {
            runs.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        runs.sort_unstable();
        Ok(runs)
    }
}
