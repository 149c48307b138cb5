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
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{CloudflareTask, HttpRoute};

use crate::decide::RouteStep;
use crate::route_context::RouteContext;
use crate::route_plan::RoutePlan;
use crate::shared::RoutesContext;
use crate::state_index::StoredState;

/// How soon it is tried again after somebody else wrote the same object.
const SOON: Duration = Duration::from_secs(1);

/// At work on one name.
pub(crate) struct Executor<'a> {
    shared: &'a RoutesContext,
    subject: &'a RouteContext,
    plan: &'a RoutePlan,
    /// The state as our last write left it.
    known: Option<Arc<StoredState>>,
    task: Option<Arc<CloudflareTask>>,
    removal: Option<Arc<CloudflareTask>>,
    /// What the route's owner is told.
    pub(crate) notices: Vec<Notice>,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(shared: &'a RoutesContext, subject: &'a RouteContext, plan: &'a RoutePlan) -> Self {
        Self {
            shared,
            subject,
            plan,
            known: subject.known.clone(),
            task: subject.task.clone(),
            removal: subject.removal.clone(),
            notices: Vec::new(),
        }
    }

    /// Does all steps, in order.
    pub(crate) async fn carry_out(&mut self) -> Result<(), Problem> {
        portolan_core::waypoint!();
        for step in &self.plan.steps {
            tracing::debug!(route = %self.subject.key, ?step, "A step");
            Box::pin(self.step(*step)).await?;
        }
        if self.plan.steps.iter().any(|step| step.leads_on()) {
            self.shared.route_changed([&self.subject.key]);
        }
        Ok(())
    }

    async fn step(&mut self, step: RouteStep) -> Result<(), Problem> {
        match step {
            RouteStep::Scrub => self.scrub().await,
            RouteStep::Recover => self.record_recovered().await,
            RouteStep::TakeOver => self.take_over().await,
            RouteStep::TakeOverRemoval => self.take_over_removal().await,
            RouteStep::SetAside => self.set_aside().await,
            RouteStep::TakeBack => self.take_back().await,
            RouteStep::Queue => Box::pin(self.queue()).await,
            RouteStep::Requeue => Box::pin(self.requeue()).await,
            RouteStep::MarkPending => self.mark_pending(TaskAction::Reconcile).await,
            RouteStep::Harvest => self.harvest().await,
            RouteStep::Collect => self.collect().await,
            RouteStep::DropTask => self.drop_task(TaskAction::Reconcile).await,
            RouteStep::CancelRemoval => self.cancel_removal().await,
            RouteStep::AskToLose => self.ask_to_lose().await,
            RouteStep::BeginRemoval => self.begin_removal().await,
            RouteStep::QueueRemoval => Box::pin(self.queue_removal()).await,
            RouteStep::ConvertTask => self.convert_task().await,
            RouteStep::QueueLeftover => Box::pin(self.queue_leftover()).await,
            RouteStep::MarkRemovalPending => self.mark_pending(TaskAction::Delete).await,
            RouteStep::RecreditRemoval => self.recredit_removal().await,
            RouteStep::FinishRemoval => self.finish_removal().await,
            RouteStep::FinishLeftover => self.finish_leftover().await,
            RouteStep::Forget => self.forget().await,
            RouteStep::DropSecret => self.drop_secret_of_token().await,
            RouteStep::NoteTemplates => self.note_templates().await,
            RouteStep::Outputs => self.write_outputs().await,
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
