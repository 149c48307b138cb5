//! The whole way: gather, plan, apply, and again while the world turns out to be other than it was planned for.

use jiff::Timestamp;
use portolan_cloudflare_api::Client;
use portolan_core::{Mark, Problem};
use portolan_publication::{Desired, Footprint};

use crate::apply::apply_again;
use crate::changes::SERVICE_TOKEN;
use crate::gather::{Fresh, gather_with};
use crate::journal::{Applied, Failed, Journal};
use crate::live::Live;
use crate::notes::{Notes, intend};
use crate::plan::plan;
use crate::step::Exposure;
use crate::withdraw::withdraw;

/// Times that something is planned again because the world was other than it seemed.
const ROUNDS: u32 = 4;

/// Makes a name what is desired.
pub async fn expose(
    client: &Client,
    desired: &Desired,
    recorded: &Footprint,
    notes: &Notes,
    fresh: Fresh,
    journal: &impl Journal,
) -> Result<Applied, Failed> {
    let wish = ExposureWish { mark: &desired.mark, desired: Some(desired) };
    Box::pin(wish.carry_out(client, recorded, notes, fresh, journal)).await
}

/// Takes away whatever is ours for a name.
pub async fn unexpose(
    client: &Client,
    mark: &Mark,
    recorded: &Footprint,
    notes: &Notes,
    fresh: Fresh,
    journal: &impl Journal,
) -> Result<Applied, Failed> {
    let wish = ExposureWish { mark, desired: None };
    Box::pin(wish.carry_out(client, recorded, notes, fresh, journal)).await
}

struct ExposureWish<'a> {
    mark: &'a Mark,
    desired: Option<&'a Desired>,
}

impl ExposureWish<'_> {
    async fn carry_out(
        &self,
        client: &Client,
        recorded: &Footprint,
        notes: &Notes,
        fresh: Fresh,
        journal: &impl Journal,
    ) -> Result<Applied, Failed> {
        let (mut notes, mut so_far) = (notes.clone(), Failed::before(recorded));
        let (mut attempt, mut first) = (0, None);
        loop {
            let (reader, intent) = (client.reader(), notes.intent.as_ref());
            let gathered = gather_with(&reader, self.mark, self.desired, &so_far.footprint, intent, fresh).await;
            let planned = gathered.and_then(|live| self.plan(&so_far.footprint, &live, &notes));
            let exposure = match planned {
                Ok(exposure) => exposure,
                Err(problem) => return Err(Failed { problem, stale: false, ..so_far }),
            };
            if so_far.would_repeat(&exposure) {
                return Err(Failed { stale: false, ..so_far });
            }
            // Nothing was written before, and the answers to what was read tell the API's time.
            let began = *first.get_or_insert_with(|| client.time());
            let failed = match apply_again(client, &exposure, journal, attempt).await {
                Ok(applied) => return Ok(so_far.then(applied)),
                Err(failed) => failed,
            };
            attempt += 1;
            let again = failed.stale && attempt < ROUNDS;
            so_far = so_far.followed_by(failed);
            if !again {
                return Err(so_far);
            }
            self.look_again(&mut notes, &so_far, began);
        }
    }

    fn plan(&self, recorded: &Footprint, live: &Live, notes: &Notes) -> Result<Exposure, Problem> {
        match self.desired {
            Some(desired) => plan(desired, recorded, live, notes),
            None => withdraw(self.mark, recorded, live, notes),
        }
    }

    /// The next round knows that this one may have made things whose answers were lost. Snapshots that turned out wrong are
    /// in doubt already.
    fn look_again(&self, notes: &mut Notes, so_far: &Failed, began: Timestamp) {
        if let Some(desired) = self.desired {
            notes.intent = Some(intend(desired, notes.intent.as_ref(), began));
        }
        // A secret that was handed over in an earlier round is there.
        notes.secret_present |= so_far.changes.changes.iter().any(|change| change.target.kind == SERVICE_TOKEN);
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

fn extend_notices(all: &mut Vec<portolan_publication::Notice>, more: Vec<portolan_publication::Notice>) {
    for notice in more {
        if !all.contains(&notice) {
            all.push(notice);
        }
    }
}
