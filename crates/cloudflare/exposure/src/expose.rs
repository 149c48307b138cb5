//! The whole way: gather, plan, apply, and again while the world turns out to be other than it was planned for.

use jiff::Timestamp;
use portolan_cloudflare_api::{Client, Reader};
use portolan_core::{Mark, Notice, Problem};
use portolan_publication::{Desired, Footprint, Intent};

use crate::apply::apply_again;
use crate::changes::SERVICE_TOKEN;
use crate::gather::{Fresh, gather_with};
use crate::journal::{Applied, Failed, Journal, NextRound};
use crate::live::Live;
use crate::plan::plan;
use crate::plan_context::{PlanContext, intend};
use crate::step::Exposure;
use crate::withdraw::withdraw;

/// Most plans for one wish: each time the world may turn out to be other than it seemed.
const ROUNDS: u32 = 4;

/// What is to become of a name.
#[derive(Clone, Copy, Debug)]
pub enum ExposureGoal<'a> {
    /// It is as desired.
    Publish(&'a Desired),
    /// Whatever is ours for it goes.
    Withdraw(&'a Mark),
}

impl<'a> ExposureGoal<'a> {
    /// Whose things at Cloudflare are ours.
    pub fn mark(self) -> &'a Mark {
        match self {
            Self::Publish(desired) => &desired.mark,
            Self::Withdraw(mark) => mark,
        }
    }

    /// The wish, where there is one.
    pub fn desired(self) -> Option<&'a Desired> {
        match self {
            Self::Publish(desired) => Some(desired),
            Self::Withdraw(_) => None,
        }
    }

    /// Reads what a plan rests on.
    pub async fn gather(
        self,
        reader: &Reader,
        recorded: &Footprint,
        intent: Option<&Intent>,
        fresh: Fresh,
    ) -> Result<Live, Problem> {
        gather_with(reader, self.mark(), self.desired(), recorded, intent, fresh).await
    }

    /// What is to be done.
    pub fn plan(self, recorded: &Footprint, live: &Live, context: &PlanContext) -> Result<Exposure, Problem> {
        match self {
            Self::Publish(desired) => plan(desired, recorded, live, context),
            Self::Withdraw(mark) => withdraw(mark, recorded, live, context),
        }
    }
}

/// Makes a name what is desired.
pub async fn expose(
    client: &Client,
    desired: &Desired,
    recorded: &Footprint,
    context: &PlanContext,
    fresh: Fresh,
    journal: &impl Journal,
) -> Result<Applied, Failed> {
    Box::pin(look_and_carry_out(client, ExposureGoal::Publish(desired), (recorded, context), fresh, journal)).await
}

/// Takes away whatever is ours for a name.
pub async fn unexpose(
    client: &Client,
    mark: &Mark,
    recorded: &Footprint,
    context: &PlanContext,
    fresh: Fresh,
    journal: &impl Journal,
) -> Result<Applied, Failed> {
    Box::pin(look_and_carry_out(client, ExposureGoal::Withdraw(mark), (recorded, context), fresh, journal)).await
}

async fn look_and_carry_out(
    client: &Client,
    goal: ExposureGoal<'_>,
    (recorded, context): (&Footprint, &PlanContext),
    fresh: Fresh,
    journal: &impl Journal,
) -> Result<Applied, Failed> {
    let gathered = goal.gather(&client.reader(), recorded, context.intent.as_ref(), fresh).await;
    match gathered.and_then(|live| goal.plan(recorded, &live, context)) {
        Ok(exposure) => carry_out(client, goal, &exposure, (recorded, context), journal).await,
        Err(problem) => Err(Failed { problem, ..Failed::before(recorded) }),
    }
}

/// Carries a plan out that was made for what is recorded and noted. Where the world turns out to be other than it was planned
/// for, looks and plans again.
pub async fn carry_out(
    client: &Client,
    goal: ExposureGoal<'_>,
    exposure: &Exposure,
    (recorded, context): (&Footprint, &PlanContext),
    journal: &impl Journal,
) -> Result<Applied, Failed> {
    portolan_core::waypoint!();
    let mut so_far = Failed::before(recorded);
    // Nothing was written before, and the answers to what was read tell the API's time.
    let rounds = ReplannedRounds { client, goal, journal, began: client.time() };
    let (mut context, mut replanned, mut round) = (context.clone(), None, 0);
    loop {
        let exposure = replanned.as_ref().unwrap_or(exposure);
        let failed = match apply_again(client, exposure, journal, round).await {
            Ok(applied) => return Ok(so_far.then(applied)),
            Err(failed) => failed,
        };
        round += 1;
        let may_follow = journal.fell_short(&failed.footprint) == NextRound::MayFollow;
        let again = failed.stale && round < ROUNDS && may_follow;
        so_far = so_far.followed_by(failed);
        if !again {
            return Err(so_far);
        }
        replanned = match rounds.plan(&mut context, &so_far).await {
            Ok(exposure) if so_far.would_repeat(&exposure) => return Err(Failed { stale: false, ..so_far }),
            Ok(exposure) => Some(exposure),
            Err(problem) => return Err(Failed { problem, stale: false, ..so_far }),
        };
    }
}

/// What the rounds after the first have in common.
struct ReplannedRounds<'a, J> {
    client: &'a Client,
    goal: ExposureGoal<'a>,
    journal: &'a J,
    began: Timestamp,
}

impl<J: Journal> ReplannedRounds<'_, J> {
    /// Looks at everything anew, and plans.
    async fn plan(&self, context: &mut PlanContext, so_far: &Failed) -> Result<Exposure, Problem> {
        self.note(context, so_far);
        let (recorded, intent) = (&so_far.footprint, context.intent.as_ref());
        let live = self.goal.gather(&self.client.reader(), recorded, intent, Fresh::after_now()).await?;
        self.journal.looked_again(recorded, &live, context).await?;
        self.goal.plan(recorded, &live, context)
    }

    /// The next round knows that this one may have made things whose answers were lost.
    fn note(&self, context: &mut PlanContext, so_far: &Failed) {
        if let Some(desired) = self.goal.desired() {
            context.intent = Some(intend(desired, context.intent.as_ref(), self.began));
        }
        // A secret that was handed over in an earlier round is there.
        context.secret_present |= so_far.changes.changes.iter().any(|change| change.target.kind == SERVICE_TOKEN);
    }
}

impl Failed {
    /// Nothing has happened yet.
    fn before(recorded: &Footprint) -> Self {
        Self {
            footprint: recorded.clone(),
            problem: Problem::transient(portolan_core::reasons::ERROR, ""),
            stale: false,
            refused: None,
            notices: Vec::new(),
            token_created: false,
            changes: portolan_core::Plan::default(),
        }
    }

    /// What both rounds did.
    fn followed_by(mut self, next: Self) -> Self {
        self.changes.changes.extend(next.changes.changes);
        extend_notices(&mut self.notices, next.notices);
        Self {
            footprint: next.footprint,
            problem: next.problem,
            stale: next.stale,
            refused: next.refused,
            notices: self.notices,
            token_created: self.token_created || next.token_created,
            changes: self.changes,
        }
    }

    fn then(mut self, applied: Applied) -> Applied {
        self.changes.changes.extend(applied.changes.changes);
        extend_notices(&mut self.notices, applied.notices);
        Applied {
            footprint: applied.footprint,
            notices: self.notices,
            token_created: self.token_created || applied.token_created,
            changes: self.changes,
        }
    }
}

fn extend_notices(all: &mut Vec<Notice>, more: Vec<Notice>) {
    for notice in more {
        if !all.contains(&notice) {
            all.push(notice);
        }
    }
}
