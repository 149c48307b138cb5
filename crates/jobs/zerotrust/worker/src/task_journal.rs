//! What a worker keeps while it carries a task out: credentials at once, ids that nothing else would lead back to, and
//! the place where it stopped.

use std::sync::{Mutex, MutexGuard, PoisonError};

use portolan_core::{Problem, WriteGate, reasons};
use portolan_engine::CancellationToken;
use portolan_exposure::{Footprint, Journal, NewCredential};
use portolan_zerotrust_model::CloudflareTaskStatus;

use crate::claim::{Refused, TaskClaim};
use crate::handover::Handover;
use crate::locks::documents::{self, DocumentLocks};
use crate::task_status::{self, Handed};

/// What all journals of a worker share.
#[derive(Clone, Copy)]
pub(crate) struct JournalTools<'a> {
    /// Where new credentials go.
    pub(crate) handover: &'a Handover,
    /// Who may write a tunnel's configuration.
    pub(crate) locks: &'a DocumentLocks,
    /// Says that the worker stops.
    pub(crate) shutdown: &'a CancellationToken,
}

/// The journal of one attempt.
pub(crate) struct TaskJournal<'a> {
    claim: tokio::sync::Mutex<TaskClaim>,
    tools: JournalTools<'a>,
    /// The request for new credentials that is carried out.
    rotation: Option<String>,
    state: Mutex<JournalState>,
}

#[derive(Clone, Debug, Default)]
struct JournalState {
    /// What is ours, as far as the work came.
    footprint: Footprint,
    /// Credentials that lie ready.
    handed: Option<Handed>,
    /// What in the footprint nothing but a note leads back to, as it was stored last.
    stored: Unmarked,
    ending: Option<Ending>,
}

/// Why the work was ended from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The worker stops.
    Stopping,
    /// The task is somebody else's by now.
    Lost,
}

/// Things that carry no mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Unmarked {
    app: Option<String>,
    policies: Vec<String>,
    token: Option<String>,
    rotation: Option<String>,
}

impl Unmarked {
    fn of(footprint: &Footprint) -> Self {
        Self {
            app: footprint.access_app_id.clone(),
            policies: footprint.reusable_policy_ids.clone(),
            token: footprint.service_token_id.clone(),
            rotation: footprint.service_token_rotation.clone(),
        }
    }

    /// Whether something is here that is not there. What is gone needs no note.
    fn adds_to(&self, other: &Self) -> bool {
        let adds = |one: &Option<String>, other: &Option<String>| one.is_some() && one != other;
        adds(&self.app, &other.app)
            || adds(&self.token, &other.token)
            || adds(&self.rotation, &other.rotation)
            || self.policies.iter().any(|policy| !other.policies.contains(policy))
    }
}

impl<'a> TaskJournal<'a> {
    pub(crate) fn new(
        claim: TaskClaim,
        tools: JournalTools<'a>,
        recorded: &Footprint,
        handed: Option<Handed>,
        rotation: Option<String>,
    ) -> Self {
        portolan_core::waypoint!();
        let stored = claim.task().status.as_ref().and_then(|status| status.result.as_ref());
        let stored = stored.map(|result| Unmarked::of(&result.footprint())).unwrap_or_default();
        let state = JournalState { footprint: recorded.clone(), handed, stored, ending: None };
        Self { claim: tokio::sync::Mutex::new(claim), tools, rotation, state: Mutex::new(state) }
    }

    /// What is ours, as far as the work came.
    pub(crate) fn footprint(&self) -> Footprint {
        self.state().footprint.clone()
    }

    /// Notes what is ours without storing it.
    pub(crate) fn note(&self, footprint: &Footprint) {
        self.state().footprint = footprint.clone();
    }

    /// Credentials that lie ready.
    pub(crate) fn handed(&self) -> Option<Handed> {
        self.state().handed.clone()
    }

    /// Why the work was ended from here, if it was.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.state().ending
    }

    /// Writes a status over the one there is.
    pub(crate) async fn store(
        &self,
        next: impl FnOnce(CloudflareTaskStatus) -> CloudflareTaskStatus,
    ) -> Result<(), Refused> {
        let mut claim = self.claim.lock().await;
        let status = next(claim.status());
        claim.store(status).await
    }

    async fn keep(&self, footprint: &Footprint, operation: &str) -> Result<(), Problem> {
        let result = task_status::result(footprint, &[], self.handed().as_ref());
        match self.store(|status| task_status::reached(&status, operation, result)).await {
            Ok(()) => {
                self.state().stored = Unmarked::of(footprint);
                Ok(())
            }
            Err(Refused::Lost) => Err(self.end(Ending::Lost)),
            Err(Refused::Problem(problem)) => Err(problem),
        }
    }

    fn end(&self, ending: Ending) -> Problem {
        self.state().ending = Some(ending);
        let message = match ending {
            Ending::Stopping => "the worker stops",
            Ending::Lost => "the task was taken by somebody else",
        };
        Problem::transient(reasons::PENDING, message)
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for TaskJournal<'_> {
    async fn credential(&self, new: NewCredential) -> Result<(), Problem> {
        let task = self.claim.lock().await.task().clone();
        let handed = self.tools.handover.put(&task, &new, self.rotation.as_deref()).await?;
        self.state().handed = Some(handed);
        Ok(())
    }

    /// The lease is held around the write alone, so that another worker protects its names meanwhile.
    async fn begins(&self, tunnel_id: &str) -> Result<WriteGate, Problem> {
        let turn = self.tools.locks.enter([format!("tunnels/{tunnel_id}/configuration")].into()).await?;
        Ok(documents::gate(turn))
    }

    async fn reached(&self, footprint: &Footprint, operation: &'static str) -> Result<(), Problem> {
        tracing::debug!(operation, "Reached");
        self.note(footprint);
        let news = Unmarked::of(footprint).adds_to(&self.state().stored);
        if news {
            self.keep(footprint, operation).await?;
        }
        if self.tools.shutdown.is_cancelled() { Err(self.end(Ending::Stopping)) } else { Ok(()) }
    }
}
