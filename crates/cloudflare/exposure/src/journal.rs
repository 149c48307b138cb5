//! What whoever applies a plan has to persist on the way, and what came of it.

use std::fmt;
use std::future::Future;

use portolan_core::{Notice, Plan, Problem, WriteGate};
use portolan_publication::Footprint;
use secrecy::SecretString;

use crate::live::Live;
use crate::plan_context::PlanContext;
use crate::step::{Exposure, ExposureStep};

/// Persists what happens while a plan is applied.
pub trait Journal: Sync {
    /// Persists the credentials of a token that was just made or given a new secret. Nothing goes on before this is done:
    /// the API shows the secret only once.
    fn credential(&self, new: NewCredential) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Right before a step that edits a tunnel's configuration: whoever shares the tunnel with other processes takes their
    /// turn here. The turn lasts as long as the gate is kept, and the edit is sent only while it is open.
    fn begins(&self, _tunnel_id: &str) -> impl Future<Output = Result<WriteGate, Problem>> + Send {
        std::future::ready(Ok(WriteGate::default()))
    }

    /// Notes how far the work has come; `operation` names the step that is done.
    fn reached(
        &self,
        footprint: &Footprint,
        operation: &'static str,
    ) -> impl Future<Output = Result<(), Problem>> + Send;

    /// A round ended before its plan did: how far it came. Says whether another one may follow.
    fn fell_short(&self, _footprint: &Footprint) -> NextRound {
        NextRound::MayFollow
    }

    /// Everything was looked at anew for another round: what its plan has to know beside that may have changed as well.
    fn looked_again(
        &self,
        _recorded: &Footprint,
        _live: &Live,
        _notes: &mut PlanContext,
    ) -> impl Future<Output = Result<(), Problem>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Whether another round may follow where the world was other than it seemed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRound {
    /// It may.
    MayFollow,
    /// Whoever carries the plan out has to stop.
    Never,
}

/// Credentials of a service token.
#[derive(Clone)]
pub struct NewCredential {
    /// The token.
    pub token_id: String,
    /// What a client sends as `CF-Access-Client-Id`.
    pub client_id: String,
    /// What a client sends as `CF-Access-Client-Secret`.
    pub client_secret: SecretString,
}

impl fmt::Debug for NewCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewCredential({})", self.token_id)
    }
}

/// A plan that was carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// What is ours now.
    pub footprint: Footprint,
    /// What the user should be told.
    pub notices: Vec<Notice>,
    /// Whether a token was made in this run.
    pub token_created: bool,
    /// What was really written: steps that found nothing to do are not in it.
    pub changes: Plan,
}

/// A plan that could not be carried out to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// What is ours now, as far as known.
    pub footprint: Footprint,
    /// Why; of several problems the first, with the others in its message.
    pub problem: Problem,
    /// The world was not as it was when the plan was made: gathering and planning again at once may help.
    pub stale: bool,
    /// The step whose content the API refused, where that may be because the world was not as it seemed.
    pub refused: Option<ExposureStep>,
    /// What the user should be told all the same.
    pub notices: Vec<Notice>,
    /// Whether a token was made in this run.
    pub token_created: bool,
    /// What was written before.
    pub changes: Plan,
}

impl Failed {
    /// Whether a new plan begins with what the API refused: it would refuse that again, so nothing is tried.
    pub fn would_repeat(&self, exposure: &Exposure) -> bool {
        self.refused.as_ref().is_some_and(|step| exposure.steps.first().is_some_and(|first| first.work == step.work))
    }
}
