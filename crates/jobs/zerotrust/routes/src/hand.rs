//! Carries the steps of one name out. Every write is safe to repeat, and is told to the caches at once.

mod collect;
mod older;
mod removal;
mod stored;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use portolan_core::{Problem, reasons as core, rfc3339};
use portolan_engine::Notice;
use portolan_zerotrust_model::task::Action;
use portolan_zerotrust_model::{CloudflareTask, HttpRoute};

use crate::decide::Step;
use crate::records::Known;
use crate::shared::Shared;
use crate::subject::Subject;

/// How soon it is tried again after somebody else wrote the same object.
const SOON: Duration = Duration::from_secs(1);

/// At work on one name.
pub(crate) struct Hand<'a> {
    shared: &'a Shared,
    subject: &'a Subject,
    /// The state as our last write left it.
    known: Option<Arc<Known>>,
    task: Option<Arc<CloudflareTask>>,
    removal: Option<Arc<CloudflareTask>>,
    /// What the route's owner is told.
    pub(crate) notices: Vec<Notice>,
}

impl<'a> Hand<'a> {
    pub(crate) fn new(shared: &'a Shared, subject: &'a Subject) -> Self {
        Self {
            shared,
            subject,
            known: subject.known.clone(),
            task: subject.task.clone(),
            removal: subject.removal.clone(),
            notices: Vec::new(),
        }
    }

    /// Does all steps, in order.
    pub(crate) async fn carry_out(&mut self, steps: &[Step]) -> Result<(), Problem> {
        for step in steps {
            tracing::debug!(route = %self.subject.key, ?step, "A step");
            Box::pin(self.step(*step)).await?;
        }
        if steps.iter().any(|step| step.leads_on()) {
            self.shared.route_changed([&self.subject.key]);
        }
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Result<(), Problem> {
        match step {
            Step::Scrub => self.scrub().await,
            Step::Recover => self.record_recovered().await,
            Step::TakeOver => self.take_over().await,
            Step::TakeOverRemoval => self.take_over_removal().await,
            Step::SetAside => self.set_aside().await,
            Step::TakeBack => self.take_back().await,
            Step::Queue => Box::pin(self.queue()).await,
            Step::Requeue => Box::pin(self.requeue()).await,
            Step::MarkPending => self.mark_pending(Action::Reconcile).await,
            Step::Harvest => self.harvest().await,
            Step::Collect => self.collect().await,
            Step::DropTask => self.drop_task(Action::Reconcile).await,
            Step::CancelRemoval => self.cancel_removal().await,
            Step::AskToLose => self.ask_to_lose().await,
            Step::BeginRemoval => self.begin_removal().await,
            Step::QueueRemoval => Box::pin(self.queue_removal()).await,
            Step::ConvertTask => self.convert_task().await,
            Step::QueueLeftover => Box::pin(self.queue_leftover()).await,
            Step::MarkRemovalPending => self.mark_pending(Action::Delete).await,
            Step::RecreditRemoval => self.recredit_removal().await,
            Step::FinishRemoval => self.finish_removal().await,
            Step::FinishLeftover => self.finish_leftover().await,
            Step::Forget => self.forget().await,
            Step::DropSecret => self.drop_secret_of_token().await,
            Step::NoteTemplates => self.note_templates().await,
            Step::Outputs => self.write_outputs().await,
        }
    }

    fn now(&self) -> String {
        rfc3339((self.shared.context.clock)())
    }

    /// The route, where it lives and is the one that a task was made for.
    fn living_route(&self) -> Option<&'a HttpRoute> {
        let input = self.subject.input.as_ref()?;
        self.subject.route.as_ref().filter(|_| !input.deleting)
    }
}

/// What a refused write to the cluster means; somebody else's write in between is worth another look at once.
pub(crate) fn refused(doing: &str, error: &kube::Error) -> Problem {
    let problem = portolan_engine::kubernetes_problem(format_args!("{doing}"), error);
    match error {
        kube::Error::Api(status) if status.code == 409 => {
            Problem::transient(core::API_ERROR, problem.message).with_retry_after(SOON)
        }
        _ => problem,
    }
}

pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
