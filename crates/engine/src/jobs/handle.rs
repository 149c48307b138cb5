//! A running job as others see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use crate::jobs::drift::Passed;
use crate::jobs::task::{Busy, DriftPass, JobTasks, Task};

/// Tells what a job does, and makes it look for drift. Clones share it; a job that does not run is idle.
#[derive(Clone, Default)]
pub struct JobHandle {
    running: Arc<Mutex<Option<RunningJob>>>,
}

#[derive(Clone)]
struct RunningJob {
    tasks: Vec<Busy>,
    pass: DriftPass,
}

impl JobHandle {
    /// The job has made its tasks.
    pub(crate) fn started(&self, made: &JobTasks) {
        let tasks = made.tasks.iter().map(Task::busy).collect();
        *self.running() = Some(RunningJob { tasks, pass: Arc::clone(&made.pass) });
    }

    /// How many objects are at work or wait though their time has come.
    pub fn busy(&self) -> usize {
        self.running().as_ref().map_or(0, |running| running.tasks.iter().map(|busy| busy()).sum())
    }

    /// Looks for drift now.
    pub async fn drift_pass(&self) -> Passed {
        let running = self.running().clone();
        match running {
            Some(running) => (running.pass)().await,
            None => Passed::default(),
        }
    }

    /// Runs a job's tasks until they end. Dropping the future stops everything at once.
    pub(crate) async fn run(self, tasks: Vec<Task>) {
        let mut running = JoinSet::new();
        for task in tasks {
            running.spawn(task.run());
        }
        let _ended = EndOnDrop(self);
        while running.join_next().await.is_some() {}
    }

    fn running(&self) -> MutexGuard<'_, Option<RunningJob>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what was running off the handle, however the job ends.
struct EndOnDrop(JobHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        *self.0.running() = None;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn started(handle: &JobHandle, shutdown: &CancellationToken) -> Vec<Task> {
        let shutdown = shutdown.clone();
        let tasks =
            vec![Task::new("one", || 2, async move { shutdown.cancelled().await }), Task::new("two", || 1, async {})];
        let made = JobTasks::from(tasks).passing(|| async { Passed { drifted: 7, ..Passed::default() } });
        handle.started(&made);
        made.tasks
    }

    #[tokio::test]
    async fn a_job_that_runs_tells_how_busy_it_is_and_looks_for_drift() {
        let (handle, shutdown) = (JobHandle::default(), CancellationToken::new());
        let tasks = started(&handle, &shutdown);

        assert_eq!((handle.busy(), handle.drift_pass().await.drifted), (3, 7));

        shutdown.cancel();
        handle.clone().run(tasks).await;
        assert_eq!((handle.busy(), handle.drift_pass().await), (0, Passed::default()));
    }

    #[tokio::test]
    async fn a_job_that_is_dropped_is_idle() {
        let (handle, shutdown) = (JobHandle::default(), CancellationToken::new());
        let run = handle.clone().run(started(&handle, &shutdown));

        assert!(run.now_or_never().is_none());
        assert_eq!(handle.busy(), 0);
    }
}
