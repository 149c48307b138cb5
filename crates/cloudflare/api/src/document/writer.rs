//! A document's writer: read, merge what gathered, write, and again where that is needed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_commit::{Attempt, Pace, Queue, Source, Target, in_parts, split};
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument;

use super::line::WriteTurn;
use super::queue::PendingEdit;
use super::{Committed, Content, DocumentInner, Live, Raced};
use crate::budget::governor::Lane;
use crate::budget::limiter::Permit;
use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::call::options::CallOptions;

/// Times that a document is merged again because somebody else wrote it meanwhile.
const MERGES: u32 = 5;

/// Runs until it is dropped.
pub(super) async fn run(shared: Arc<DocumentInner>) {
    portolan_commit::run(&*shared).await;
}

impl Target for DocumentInner {
    type Source = PendingEdit;

    const PATIENCE: Duration = Duration::from_secs(2);

    fn queue(&self) -> &Queue<PendingEdit> {
        self.queue.sources()
    }

    fn pace(&self) -> Option<&Mutex<Pace>> {
        Some(self.line.pace())
    }

    /// A document holds whatever is edited into it.
    fn room(&self) -> Option<usize> {
        None
    }

    async fn commit(&self, _: Lane) -> Option<Instant> {
        let (options, span) = self.queue.next()?;
        let began = Instant::now();
        commit(self, options).instrument(span).await;
        Some(began)
    }
}

/// Reads the document, then takes what has gathered meanwhile, and writes.
async fn commit(shared: &DocumentInner, options: CallOptions) {
    portolan_core::waypoint!();
    let (lane, permit) = shared.queue.sources().turn(options.lane, |lane| shared.sender.permit(lane)).await;
    let options = options.in_lane(lane);
    let live = match permit {
        Ok(permit) => shared.look(Some(permit), options).await,
        Err(error) => Err(error),
    };
    let group = shared.queue.sources().take_all();
    match live {
        Ok(live) => {
            shared.sender.metrics().committed(shared.kind.name, group.len());
            in_parts(&mut Merge { shared, options, live }, group).await;
        }
        Err(error) => answer_all(group, &Err(error)),
    }
}

/// One group on its way into the document as it stands.
struct Merge<'a> {
    shared: &'a DocumentInner,
    options: CallOptions,
    live: Live,
}

impl Attempt for Merge<'_> {
    type Source = PendingEdit;

    async fn attempt(&mut self, group: Vec<PendingEdit>) -> Vec<Vec<PendingEdit>> {
        match apply(self.shared, self.options, &mut self.live, &group).await {
            Err(_) if !group.iter().all(PendingEdit::may_go) => vec![group],
            Err(error) if group.len() > 1 && concerns_content(&error) => split(group, &[]),
            answer => {
                answer_all(group, &answer);
                Vec::new()
            }
        }
    }
}

fn answer_all(group: Vec<PendingEdit>, answer: &Result<Committed, ApiError>) {
    for source in group {
        source.answer(answer);
    }
}

async fn apply(
    shared: &DocumentInner,
    options: CallOptions,
    live: &mut Live,
    group: &[PendingEdit],
) -> Result<Committed, ApiError> {
    let mut so_far = Committed { content: Arc::clone(&live.content), written: false, raced: None };
    let (mut merges, mut attempt) = (0, 0);
    loop {
        if merged(&live.content.value, group) == live.content.value {
            so_far.content = Arc::clone(&live.content);
            return Ok(so_far);
        }
        if merges == MERGES {
            return Err(never_still());
        }
        let Some(turn) = turn(shared, options, live).await? else {
            merges += 1;
            continue;
        };
        let wanted = merged(&live.content.value, group);
        if wanted == live.content.value {
            turn.0.unused();
            continue;
        }
        if !group.iter().all(PendingEdit::may_go) {
            turn.0.unused();
            return Err(ApiError::lapsed());
        }
        match shared.write(turn, options, &wanted).await {
            Ok(now) => {
                let raced = take_in(shared, &mut so_far, live, now);
                if !raced {
                    return Ok(so_far);
                }
                merges += 1;
                *live = shared.look(None, options).await?;
            }
            Err(error) if shared.sender.again(options.retry, &error, attempt).await => {
                attempt += 1;
                let now = shared.look(None, options).await?;
                if error.effect == Effect::Unknown && now.content.value == wanted {
                    take_in(shared, &mut so_far, live, now);
                } else {
                    *live = now;
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// The turn to write over `live`, which is the document as the last write of this process left it. The budget is waited
/// for before the turn, so that nobody else waits for it. None where the document had to be read again.
async fn turn<'a>(
    shared: &'a DocumentInner,
    options: CallOptions,
    live: &mut Live,
) -> Result<Option<(Permit, WriteTurn<'a>)>, ApiError> {
    let permit = shared.sender.permit(options.lane).await?;
    let turn = shared.line.turn().await;
    if turn.follows(live.writes) {
        return Ok(Some((permit, turn)));
    }
    // Who found the document may know what others made of it since.
    if let Some((content, writes)) = turn.last().filter(|_| live.found) {
        // A read that took long may be the newer one: it holds what somebody else made of our last write.
        let content = if content.version >= live.content.version { content } else { Arc::clone(&live.content) };
        *live = Live { content, writes, found: true };
        return Ok(Some((permit, turn)));
    }
    drop(turn);
    *live = shared.look(Some(permit), options).await?;
    Ok(None)
}

fn merged(live: &Value, group: &[PendingEdit]) -> Value {
    let mut wanted = live.clone();
    for source in group {
        source.apply(&mut wanted);
    }
    wanted
}

/// Our write is in `now`; true if somebody else's was overtaken.
fn take_in(shared: &DocumentInner, so_far: &mut Committed, live: &mut Live, now: Live) -> bool {
    let race = race(&live.content, &now.content);
    if let Some(Raced { read, became }) = race {
        let document = shared.kind.name;
        tracing::warn!(document, of = shared.segments[1], read, became, "Somebody else wrote at the same time");
    }
    so_far.written = true;
    so_far.raced = race.or(so_far.raced);
    so_far.content = Arc::clone(&now.content);
    *live = now;
    race.is_some()
}

fn race(before: &Content, after: &Content) -> Option<Raced> {
    let (read, became) = (before.version?, after.version?);
    (became != read + 1).then_some(Raced { read, became })
}

fn never_still() -> ApiError {
    ApiError {
        class: ErrorClass::Conflict,
        ..ApiError::transient(
            format!("somebody else wrote the document at the same time, {MERGES} times in a row"),
            Effect::Unknown,
        )
    }
}

fn concerns_content(error: &ApiError) -> bool {
    error.effect == Effect::None
        && matches!(error.class, ErrorClass::Validation | ErrorClass::Conflict | ErrorClass::Unknown)
}
