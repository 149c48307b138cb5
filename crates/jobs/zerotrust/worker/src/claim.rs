//! A claim on a task: every status is written over the version that was seen last, so that of two workers one wins, and
//! a worker that lost its claim writes nothing more.

use std::time::Duration;

use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{in_time, kubernetes_problem};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus, Phase};

use crate::liveness::heartbeat::HeartbeatGuard;

/// How often a status is written against others who write the same object.
const MOST_ATTEMPTS: usize = 6;
/// Pauses before a write is repeated that the server did not take.
const PAUSES: [Duration; 3] = [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(3)];

/// Why a status was not written.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The task is somebody else's by now, or gone, or asks for something else.
    Lost,
    /// The cluster could not be written to.
    Problem(Problem),
}

/// A task as it was written last, and who it is claimed by.
pub(crate) struct TaskClaim {
    tasks: Api<CloudflareTask>,
    task: CloudflareTask,
    /// Says that this worker lives, as long as the claim does.
    _heartbeat: Option<HeartbeatGuard>,
}

impl TaskClaim {
    /// Writes the first status of an attempt over the task that was looked at. Where somebody else wrote it meanwhile, it
    /// is written over that as long as it is the same work, nobody tried it, and it is still to be done.
    pub(crate) async fn take(
        tasks: Api<CloudflareTask>,
        task: &CloudflareTask,
        heartbeat: Option<HeartbeatGuard>,
        is_due: impl Fn(&CloudflareTask) -> bool,
        status: impl Fn(&CloudflareTask) -> CloudflareTaskStatus,
    ) -> Result<Self, Refused> {
        portolan_core::waypoint!();
        let mut seen = task.clone();
        for _ in 0..MOST_ATTEMPTS {
            match replace(&tasks, &seen, status(&seen)).await {
                Ok(task) => return Ok(Self { tasks, task, _heartbeat: heartbeat }),
                Err(error) if code(&error) == 409 => {}
                Err(error) if code(&error) == 404 => return Err(Refused::Lost),
                Err(error) => return Err(unwritten(&seen, &error)),
            }
            seen = read(&tasks, task).await?;
            if !same_work(&seen, task) || !is_due(&seen) {
                return Err(Refused::Lost);
            }
        }
        Err(Refused::Lost)
    }

    /// The task as it was written last.
    pub(crate) fn task(&self) -> &CloudflareTask {
        &self.task
    }

    /// The status that was written last.
    pub(crate) fn status(&self) -> CloudflareTaskStatus {
        self.task.status.clone().unwrap_or_default()
    }

    /// Writes a status while the claim holds.
    pub(crate) async fn store(&mut self, status: CloudflareTaskStatus) -> Result<(), Refused> {
        let mut pauses = PAUSES.into_iter();
        for _ in 0..MOST_ATTEMPTS {
            let error = match replace(&self.tasks, &self.task, status.clone()).await {
                Ok(task) => {
                    self.task = task;
                    return Ok(());
                }
                Err(error) => error,
            };
            match (code(&error), pauses.next()) {
                (404, _) => return Err(Refused::Lost),
                (409, _) => self.follow().await?,
                (_, None) => return Err(unwritten(&self.task, &error)),
                (_, Some(pause)) => tokio::time::sleep(pause).await,
            }
        }
        Err(Refused::Lost)
    }

    /// Somebody wrote the task: the claim is lost unless it still stands there.
    async fn follow(&mut self) -> Result<(), Refused> {
        let found = read(&self.tasks, &self.task).await?;
        if found.uid() != self.task.uid() || claimant(&found) != claimant(&self.task) {
            return Err(Refused::Lost);
        }
        self.task = CloudflareTask { status: self.task.status.clone(), ..found };
        Ok(())
    }
}

/// Who has a task, and which time that is.
fn claimant(task: &CloudflareTask) -> Option<(String, Option<String>, Option<i64>)> {
    let status = task.status.as_ref().filter(|status| status.phase == Some(Phase::InProgress))?;
    Some((status.worker_pod.clone()?, status.epoch.clone(), status.attempts))
}

/// Whether a plan that was made for one is good for the other. It is not where somebody tried the task in between: what
/// that attempt made would be taken for something that stood before us, and would stay when the name goes.
fn same_work(one: &CloudflareTask, other: &CloudflareTask) -> bool {
    let work = |task: &CloudflareTask| (task.uid(), task.metadata.generation, task.hash().map(str::to_owned));
    let noted = |task: &CloudflareTask| {
        let status = task.status.clone().unwrap_or_default();
        (status.observed_generation, status.attempts, status.intent, status.result)
    };
    work(one) == work(other) && noted(one) == noted(other)
}

async fn read(tasks: &Api<CloudflareTask>, task: &CloudflareTask) -> Result<CloudflareTask, Refused> {
    let found = in_time(tasks.get_opt(&task.name_any())).await.map_err(|error| unwritten(task, &error))?;
    found.ok_or(Refused::Lost)
}

async fn replace(
    tasks: &Api<CloudflareTask>,
    task: &CloudflareTask,
    status: CloudflareTaskStatus,
) -> Result<CloudflareTask, kube::Error> {
    let task = CloudflareTask { status: Some(status), ..task.clone() };
    in_time(tasks.replace_status(&task.name_any(), &PostParams::default(), &task)).await
}

fn unwritten(task: &CloudflareTask, error: &kube::Error) -> Refused {
    let key: ObjectKey = task.key();
    Refused::Problem(kubernetes_problem(format_args!("writing the status of task {key}"), error))
}

/// The HTTP status of a refusal; 0 where the server did not answer.
fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use portolan_zerotrust_model::{CloudflareTaskSpec, TaskResult};

    use super::*;

    fn task(status: Option<CloudflareTaskStatus>) -> CloudflareTask {
        let mut task = CloudflareTask::new("cfzt-shop-web", CloudflareTaskSpec::default());
        task.metadata.generation = Some(2);
        task.status = status;
        task
    }

    fn tried(generation: i64, attempts: i64) -> CloudflareTaskStatus {
        let (observed_generation, attempts) = (Some(generation), Some(attempts));
        CloudflareTaskStatus { observed_generation, attempts, ..CloudflareTaskStatus::default() }
    }

    #[test]
    fn a_plan_stays_good_while_its_task_is_only_said_to_wait() {
        let waits = CloudflareTaskStatus { phase: Some(Phase::Pending), ..CloudflareTaskStatus::default() };
        let waits_again = CloudflareTaskStatus { phase: Some(Phase::Pending), ..tried(2, 1) };

        assert!(same_work(&task(None), &task(Some(waits))));
        assert!(same_work(&task(Some(tried(2, 1))), &task(Some(waits_again))));
    }

    #[test]
    fn a_plan_from_before_an_attempt_is_not_good_after_it() {
        let result = CloudflareTaskStatus { result: Some(TaskResult::default()), ..tried(2, 1) };

        assert!(!same_work(&task(None), &task(Some(tried(2, 1)))));
        assert!(!same_work(&task(Some(tried(2, 1))), &task(Some(tried(2, 2)))));
        assert!(!same_work(&task(Some(tried(1, 1))), &task(Some(tried(2, 1)))), "counted anew for another spec");
        assert!(!same_work(&task(Some(tried(2, 1))), &task(Some(result))), "it came further");
    }
}
