//! One attempt at a task: claim → apply, again where the world was not as planned → completed, failed or given back.

use std::convert::Infallible;
use std::sync::PoisonError;
use std::time::Duration;

use portolan_cloudflare_api::{ACCESS_ORGANIZATION, Client, Freshness, Lane};
use portolan_core::{Plan, Problem, WriteGate};
use portolan_engine::jitter;
use portolan_exposure::{
    APPS, Applied, Exposure, Failed, Footprint, Journal, Live, NewCredential, NextRound, PlanContext,
};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus};
use tokio::time::Instant;

use super::{AttemptOutcome, Ready, SOON, TaskReconciler};
use crate::claim::{Refused, TaskClaim};
use crate::due::{Due, due};
use crate::log;
use crate::metrics::Came;
use crate::reason;
use crate::retry;
use crate::task_journal::{Ending, JournalTools, TaskJournal};
use crate::task_status;
use crate::work::{self, TaskWork};

/// So long may what is under way go on when the worker stops.
const LAST_CALL: Duration = Duration::from_secs(12);

/// How often is looked whether Cloudflare answers.
const LOOK: Duration = Duration::from_secs(2);

/// Says in the task why Cloudflare does not answer, as long as requests wait for that to pass.
async fn tell_of_trouble(client: &Client, journal: &TaskJournal<'_>) -> Infallible {
    let mut told = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let trouble = client.trouble();
        let class = trouble.as_ref().map(|error| error.class);
        if let Some(error) = trouble.filter(|_| class != told) {
            // Whoever lost the task hears of it by other ways.
            let _ = journal.store(|status| task_status::waiting(status, &error)).await;
        }
        told = class;
    }
}

/// How carrying out ended.
enum AttemptEnd {
    Applied(Box<Applied>),
    Failed(Box<Failed>),
    /// The worker stops, and the last call did not end in time.
    GivenUp,
    /// Others may take this worker for dead, and the task for theirs.
    Lapsed,
}

impl TaskReconciler {
    /// Tells a task why it cannot be done. Nothing was begun, so nobody has to be kept from it.
    pub(super) async fn refuse(&self, task: &CloudflareTask, problem: &Problem) -> Result<AttemptOutcome, Problem> {
        let status = |seen: &CloudflareTask| {
            let status = task_status::observed(seen);
            self.after_failure(seen, &status, problem).0
        };
        let claim = match TaskClaim::take(self.tasks(), task, None, |seen| self.is_due(seen), status).await {
            Ok(claim) => claim,
            Err(refused) => return unwritten(refused),
        };
        self.metrics.claimed(task, &self.settings.identity);
        self.metrics.ended(task, Came::Failed(reason::of(problem)), None);
        log::failed(task, problem);
        let pause = self.pause(task, &claim.status(), problem);
        Ok(AttemptOutcome { problem: Some(paused(problem, pause)), again: None })
    }

    /// Carries a task out.
    pub(super) async fn carry(
        &self,
        task: &CloudflareTask,
        ready: &Ready,
        exposure: &Exposure,
    ) -> Result<AttemptOutcome, Problem> {
        portolan_core::waypoint!();
        if exposure.is_empty() {
            return self.confirm(task, ready, exposure).await;
        }
        if self.shutdown.is_cancelled() {
            return Ok(AttemptOutcome { problem: None, again: None });
        }
        tracing::debug!(task = %task.key(), spec = %serde_json::json!(task.spec), "Carrying out");
        let heartbeat = self.heartbeat.hold().await?;
        let (gate, lapsed) = (heartbeat.gate(), heartbeat.lapsed());
        let now = (self.context.clock)();
        let intent = ready.work.intent(ready.plan_context.intent.as_ref(), ready.client.time());
        let status = |seen: &CloudflareTask| task_status::claimed(seen, &self.settings, intent.as_ref(), now);
        let claim = match TaskClaim::take(self.tasks(), task, Some(heartbeat), |seen| self.is_due(seen), status).await {
            Ok(claim) => claim,
            Err(refused) => return self.unclaimed(task, ready, refused),
        };
        self.metrics.claimed(task, &self.settings.identity);
        let plan_context =
            PlanContext { intent: intent.or_else(|| ready.plan_context.intent.clone()), ..ready.plan_context.clone() };
        let (rotation, handed) = (ready.work.rotation(), ready.handed.clone());
        let tools = JournalTools { handover: &self.handover, locks: &self.locks, shutdown: &self.shutdown };
        let journal = TaskJournal::new(claim, tools, &ready.recorded, handed, rotation);
        let client = ready.client.within(&ready.turn.as_ref().map_or(gate.clone(), |turn| turn.gate().and(&gate)));
        let ended = tokio::select! {
            biased;
            ended = self.carry_out(task, (ready, &client), exposure, &plan_context, &journal) => ended,
            () = self.last_call() => AttemptEnd::GivenUp,
            () = lapsed => AttemptEnd::Lapsed,
            never = tell_of_trouble(&client, &journal) => match never {},
        };
        let done = self.conclude(task, &journal, ended, ready.begun).await;
        self.learn_of_protection(ready).await;
        done
    }

    /// After the first name of an account its Access applications are listed and its team is read, once: then the first name that asks for
    /// protection costs no more than the next ones, and what is left of the quota is known.
    async fn learn_of_protection(&self, ready: &Ready) {
        let account = ready.work.desired().map(|desired| desired.account_id.as_str());
        let Some(account) = account.filter(|account| self.is_news(account)) else { return };
        let reader = ready.client.reader();
        let apps = reader.records(&APPS, account);
        let team = reader.rarely(Lane::Drift, Freshness::Any, &ACCESS_ORGANIZATION, account);
        let learned = tokio::select! {
            biased;
            learned = async { tokio::try_join!(apps.refresh(Lane::Drift, Freshness::Any), team) } => learned,
            () = self.shutdown.cancelled() => return,
        };
        if let Err(error) = learned {
            tracing::debug!(%error, "Access applications and the team could not be read ahead of their first use");
        }
    }

    fn is_news(&self, account: &str) -> bool {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).insert(account.to_owned())
    }

    /// Everything stands already: the task is completed without having been claimed.
    async fn confirm(
        &self,
        task: &CloudflareTask,
        ready: &Ready,
        exposure: &Exposure,
    ) -> Result<AttemptOutcome, Problem> {
        let applied = match portolan_exposure::apply(&ready.client, exposure, &Nothing).await {
            Ok(applied) => applied,
            Err(failed) => return self.refuse(task, &failed.problem).await,
        };
        let result = task_status::result(&applied.footprint, &applied.notices, ready.handed.as_ref());
        let now = (self.context.clock)();
        let status = |seen: &CloudflareTask| {
            let status = CloudflareTaskStatus {
                worker_pod: Some(self.settings.identity.clone()),
                ..task_status::observed(seen)
            };
            task_status::completed(status, log::sentence(seen, &Plan::default()), result.clone(), &Plan::default(), now)
        };
        match TaskClaim::take(self.tasks(), task, None, |seen| self.is_due(seen), status).await {
            Ok(_) => {
                self.metrics.claimed(task, &self.settings.identity);
                self.metrics.ended(task, Came::Completed, Some(ready.begun.elapsed()));
                log::completed(task, &Plan::default());
                Ok(AttemptOutcome { problem: None, again: None })
            }
            Err(refused) => self.unclaimed(task, ready, refused),
        }
    }

    /// Others wrote the task first, perhaps without knowing what changed for its sake: that is still to be tried.
    fn unclaimed(&self, task: &CloudflareTask, ready: &Ready, refused: Refused) -> Result<AttemptOutcome, Problem> {
        if ready.nudged {
            self.nudged().insert(task.key());
        }
        unwritten(refused)
    }

    /// Applies a plan, and another one where the world was not as planned.
    async fn carry_out(
        &self,
        task: &CloudflareTask,
        (ready, client): (&Ready, &Client),
        exposure: &Exposure,
        plan_context: &PlanContext,
        journal: &TaskJournal<'_>,
    ) -> AttemptEnd {
        ready.no_longer_expects();
        let (goal, planned_for) = (ready.work.goal(), (&ready.recorded, plan_context));
        let rounds = AttemptJournal { journal, reconciler: self, task };
        match Box::pin(portolan_exposure::carry_out(client, goal, exposure, planned_for, &rounds)).await {
            Ok(applied) => AttemptEnd::Applied(Box::new(applied)),
            Err(failed) => AttemptEnd::Failed(Box::new(failed)),
        }
    }

    /// The worker was told to stop, and what is under way had its time.
    async fn last_call(&self) {
        self.shutdown.cancelled().await;
        tokio::time::sleep(LAST_CALL).await;
    }

    async fn conclude(
        &self,
        task: &CloudflareTask,
        journal: &TaskJournal<'_>,
        ended: AttemptEnd,
        begun: Instant,
    ) -> Result<AttemptOutcome, Problem> {
        if matches!(ended, AttemptEnd::Lapsed) {
            tracing::warn!(task = %task.key(), "The worker's lease ran out: the attempt is given up and nothing more is written");
        }
        match (ended, journal.ending()) {
            (AttemptEnd::Lapsed, _) | (_, Some(Ending::Lost)) => {
                self.metrics.ended(task, Came::Lost, Some(begun.elapsed()));
                Ok(AttemptOutcome { problem: None, again: Some(SOON) })
            }
            (AttemptEnd::Applied(applied), _) => self.complete(task, journal, &applied, begun).await,
            (AttemptEnd::GivenUp, _) | (AttemptEnd::Failed(_), Some(Ending::Stopping)) => {
                self.give_back(task, journal, begun).await
            }
            (AttemptEnd::Failed(failed), None) => self.fail(task, journal, &failed, begun).await,
        }
    }

    async fn complete(
        &self,
        task: &CloudflareTask,
        journal: &TaskJournal<'_>,
        applied: &Applied,
        begun: Instant,
    ) -> Result<AttemptOutcome, Problem> {
        let result = task_status::result(&applied.footprint, &applied.notices, journal.handed().as_ref());
        let message = log::sentence(task, &applied.changes);
        let now = (self.context.clock)();
        let stored =
            journal.store(|status| task_status::completed(status, message, result, &applied.changes, now)).await;
        if let Err(refused) = stored {
            return unwritten(refused);
        }
        self.metrics.ended(task, Came::Completed, Some(begun.elapsed()));
        log::completed(task, &applied.changes);
        tracing::debug!(task = %task.key(), duration_ms = begun.elapsed().as_millis(), "Carried out");
        Ok(AttemptOutcome { problem: None, again: None })
    }

    async fn fail(
        &self,
        task: &CloudflareTask,
        journal: &TaskJournal<'_>,
        failed: &Failed,
        begun: Instant,
    ) -> Result<AttemptOutcome, Problem> {
        let result = task_status::result(&failed.footprint, &failed.notices, journal.handed().as_ref());
        let mut pause = None;
        let stored = journal
            .store(|status| {
                let status = CloudflareTaskStatus { result: Some(result), ..status };
                let (status, after) = self.after_failure(task, &status, &failed.problem);
                pause = after;
                status
            })
            .await;
        if let Err(refused) = stored {
            return unwritten(refused);
        }
        self.metrics.ended(task, Came::Failed(reason::of(&failed.problem)), Some(begun.elapsed()));
        log::failed(task, &failed.problem);
        Ok(AttemptOutcome { problem: Some(paused(&failed.problem, pause)), again: None })
    }

    /// The worker stops: whoever comes next goes on from here.
    async fn give_back(
        &self,
        task: &CloudflareTask,
        journal: &TaskJournal<'_>,
        begun: Instant,
    ) -> Result<AttemptOutcome, Problem> {
        self.metrics.ended(task, Came::GivenBack, Some(begun.elapsed()));
        let result = task_status::result(&journal.footprint(), &[], journal.handed().as_ref());
        let now = (self.context.clock)();
        match journal.store(|status| task_status::released(status, Some(result), now)).await {
            Ok(()) | Err(Refused::Lost) => Ok(AttemptOutcome { problem: None, again: None }),
            Err(Refused::Problem(problem)) => Err(problem),
        }
    }

    fn after_failure(
        &self,
        task: &CloudflareTask,
        status: &CloudflareTaskStatus,
        problem: &Problem,
    ) -> (CloudflareTaskStatus, Option<Duration>) {
        let now = (self.context.clock)();
        let pause = self.pause(task, status, problem);
        let next = pause.and_then(|pause| now.checked_add(pause).ok());
        (task_status::failed(status.clone(), problem, None, next, now), pause)
    }

    fn pause(&self, task: &CloudflareTask, status: &CloudflareTaskStatus, problem: &Problem) -> Option<Duration> {
        let failures = task_status::failures(status);
        let jitter = jitter(self.context.seed, "CloudflareTask", &task.key(), failures);
        retry::pause(problem, TaskWork::aim(task), failures, jitter)
    }

    fn is_due(&self, task: &CloudflareTask) -> bool {
        due(task, self.look(true)) == Due::Now
    }
}

/// A problem that the engine waits out just as long as the task says.
fn paused(problem: &Problem, pause: Option<Duration>) -> Problem {
    Problem { retry_after: pause, ..problem.clone() }
}

/// A task that changed under our hands is looked at again; the rest is the cluster's trouble.
fn unwritten(refused: Refused) -> Result<AttemptOutcome, Problem> {
    match refused {
        Refused::Lost => Ok(AttemptOutcome { problem: None, again: Some(SOON) }),
        Refused::Problem(problem) => Err(problem),
    }
}

/// The journal of an attempt, with what its next round has to know.
struct AttemptJournal<'a> {
    journal: &'a TaskJournal<'a>,
    reconciler: &'a TaskReconciler,
    task: &'a CloudflareTask,
}

impl Journal for AttemptJournal<'_> {
    async fn credential(&self, new: NewCredential) -> Result<(), Problem> {
        self.journal.credential(new).await
    }

    async fn begins(&self, tunnel_id: &str) -> Result<WriteGate, Problem> {
        self.journal.begins(tunnel_id).await
    }

    async fn reached(&self, footprint: &Footprint, operation: &'static str) -> Result<(), Problem> {
        self.journal.reached(footprint, operation).await
    }

    fn fell_short(&self, footprint: &Footprint) -> NextRound {
        self.journal.note(footprint);
        if self.journal.ending().is_none() { NextRound::MayFollow } else { NextRound::Never }
    }

    async fn looked_again(
        &self,
        recorded: &Footprint,
        live: &Live,
        plan_context: &mut PlanContext,
    ) -> Result<(), Problem> {
        tracing::debug!(task = %self.task.key(), "Looked again, and plans again");
        plan_context.now = (self.reconciler.context.clock)();
        plan_context.secret_present = work::has_credentials(self.task, recorded, self.journal.handed().as_ref());
        plan_context.elsewhere = self.reconciler.elsewhere(self.task, recorded, live).await?;
        Ok(())
    }
}

/// The journal of a plan without steps.
struct Nothing;

impl Journal for Nothing {
    async fn credential(&self, _: NewCredential) -> Result<(), Problem> {
        Ok(())
    }

    async fn reached(&self, _: &Footprint, _: &'static str) -> Result<(), Problem> {
        Ok(())
    }
}
