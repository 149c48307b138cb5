//! A document's writer: read, merge what gathered, write, and again where that is needed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tracing::Instrument;

use super::queue::Source;
use super::{Committed, Content, Raced, Shared};
use crate::error::{ApiError, Effect, ErrorClass};
use crate::manner::Manner;

/// Times that a document is merged again because somebody else wrote it meanwhile.
const MERGES: u32 = 5;
/// How long an edit waits for others that are about to come.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs until it is dropped.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        if shared.queue.next().is_none() {
            shared.queue.gathering.next().await;
            continue;
        }
        shared.queue.gathering.complete(PATIENCE, || false).await;
        if let Some((manner, span)) = shared.queue.next() {
            commit(&shared, manner).instrument(span).await;
        }
    }
}

/// Reads the document, then takes what has gathered meanwhile, and writes.
async fn commit(shared: &Shared, manner: Manner) {
    let (lane, permit) = shared.queue.urgency.permit(&shared.sender, manner.lane).await;
    let manner = manner.in_lane(lane);
    let live = shared.read(Some(permit), manner).await;
    let group = shared.queue.take();
    shared.queue.urgency.settle();
    let mut live = match live {
        Ok(live) => live,
        Err(error) => {
            let answer = Err(error);
            return group.into_iter().for_each(|source| source.answer(&answer));
        }
    };
    shared.sender.metrics().committed(shared.kind.name, group.len());
    let mut groups = vec![group];
    while let Some(mut group) = groups.pop() {
        match apply(shared, manner, Arc::clone(&live), &group).await {
            Err(error) if group.len() > 1 && concerns_content(&error) => {
                let second = group.split_off(group.len().div_ceil(2));
                groups.extend([second, group]);
            }
            answer => {
                if let Ok(committed) = &answer {
                    live = Arc::clone(&committed.content);
                }
                for source in group {
                    source.answer(&answer);
                }
            }
        }
    }
}

async fn apply(shared: &Shared, manner: Manner, live: Arc<Content>, group: &[Source]) -> Result<Committed, ApiError> {
    let mut so_far = Committed { content: live, written: false, raced: None };
    let (mut merges, mut attempt) = (0, 0);
    loop {
        let wanted = merged(&so_far.content.value, group);
        if wanted == so_far.content.value {
            return Ok(so_far);
        }
        if merges == MERGES {
            return Err(never_still());
        }
        match shared.write(manner, &wanted).await {
            Ok(now) => {
                let raced = take_in(shared, &mut so_far, now);
                if !raced {
                    return Ok(so_far);
                }
                merges += 1;
                so_far.content = shared.read(None, manner).await?;
            }
            Err(error) if shared.sender.again(manner.retry, &error, attempt).await => {
                attempt += 1;
                let now = shared.read(None, manner).await?;
                if error.effect == Effect::Unknown && now.value == wanted {
                    take_in(shared, &mut so_far, now);
                } else {
                    so_far.content = now;
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn merged(live: &Value, group: &[Source]) -> Value {
    let mut wanted = live.clone();
    for source in group {
        source.apply(&mut wanted);
    }
    wanted
}

/// Our write is in `now`; true if somebody else's was overtaken.
fn take_in(shared: &Shared, so_far: &mut Committed, now: Arc<Content>) -> bool {
    let race = race(&so_far.content, &now);
    if let Some(Raced { read, became }) = race {
        let document = shared.kind.name;
        tracing::warn!(document, of = shared.segments[1], read, became, "Somebody else wrote at the same time");
    }
    so_far.written = true;
    so_far.raced = race.or(so_far.raced);
    so_far.content = now;
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
