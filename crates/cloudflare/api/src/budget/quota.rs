//! How much room one account or zone has for more objects of a collection: a known limit warns, a refusal blocks for minutes.
//!
//! All clients of a process share it, whatever their credentials: limits are the account's or the zone's. Only what Cloudflare
//! itself refuses is not asked again, and only for a while, since others make room and limits are raised without a word. When
//! that is over one create goes ahead of the others, which share what comes of it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::budget::limits::is_near;
use crate::call::error::{ApiError, Effect, ErrorClass};

/// So long a refusal is not put to the test.
pub(crate) const BLOCKED: Duration = Duration::from_secs(300);

/// Nearly as many as there may be, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearlyFull {
    /// How many there are.
    pub used: usize,
    /// How many there may be.
    pub limit: usize,
}

/// The room for objects of one collection in one account or zone.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    state: Mutex<QuotaState>,
    /// Held by the one who tries whether there is room again.
    probe: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct QuotaState {
    limit: Option<usize>,
    /// Whether it was asked how many there may be.
    asked: bool,
    used: usize,
    near: bool,
    /// Somebody has to be told that it is near.
    news: bool,
    /// The last refusal, and until when nobody asks again.
    refused: Option<(Instant, ApiError)>,
}

/// Whether another one may be asked for.
enum Room {
    Unknown,
    Refused(ApiError),
    /// The refusal is old.
    Doubtful,
}

/// The right to make one. Held until the answer is there, where it puts an old refusal to the test.
pub(crate) struct Admitted<'a> {
    _probe: Option<tokio::sync::MutexGuard<'a, ()>>,
}

impl Quota {
    /// What is known of the limit.
    pub(crate) fn set_limit(&self, limit: Option<usize>) {
        let mut state = self.state();
        state.limit = limit.or(state.limit);
        state.asked |= limit.is_some();
    }

    /// Whether nobody asked yet how many there may be; asks only once.
    pub(crate) fn is_to_be_asked(&self) -> bool {
        !std::mem::replace(&mut self.state().asked, true)
    }

    /// There are so many now. Answers how many more the known limit leaves, where that is few, and whether that is news.
    pub(crate) fn counted(&self, used: usize) -> (Option<usize>, bool) {
        let mut state = self.state();
        let before = (state.near, state.used);
        state.used = used;
        state.near = state.limit.is_some_and(|limit| is_near(used, limit));
        state.news = state.near && (state.news || !before.0);
        let left = state.limit.filter(|_| state.near).map(|limit| limit.saturating_sub(used));
        (left, before != (state.near, used) && (before.0 || state.near))
    }

    /// Tells once, after each time that the limit came near.
    pub(crate) fn news(&self) -> Option<NearlyFull> {
        let mut state = self.state();
        let limit = state.limit.filter(|_| std::mem::take(&mut state.news))?;
        Some(NearlyFull { used: state.used, limit })
    }

    /// The refusal that still holds, with the time until it is put to the test.
    pub(crate) fn refusal(&self) -> Option<ApiError> {
        match self.room() {
            Room::Refused(error) => Some(error),
            Room::Unknown | Room::Doubtful => None,
        }
    }

    /// Waits until it is clear whether another one may be asked for.
    pub(crate) async fn admit(&self) -> Result<Admitted<'_>, ApiError> {
        match self.room() {
            Room::Unknown => return Ok(Admitted { _probe: None }),
            Room::Refused(error) => return Err(error),
            Room::Doubtful => {}
        }
        let probe = self.probe.lock().await;
        match self.room() {
            Room::Unknown => Ok(Admitted { _probe: None }),
            Room::Refused(error) => Err(error),
            Room::Doubtful => Ok(Admitted { _probe: Some(probe) }),
        }
    }

    /// A create was refused. Where it was for want of room, nobody asks again for a while.
    pub(crate) fn refused(&self, error: &ApiError) {
        if error.class == ErrorClass::Quota && !is_of_one_object(error) {
            self.state().refused = Some((Instant::now() + BLOCKED, error.clone()));
        }
    }

    /// One was made, or went: there is room, as far as known.
    pub(crate) fn has_room(&self) {
        self.state().refused = None;
    }

    fn room(&self) -> Room {
        let state = self.state();
        let Some((until, error)) = &state.refused else { return Room::Unknown };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Room::Doubtful;
        }
        Room::Refused(ApiError { retry_after: Some(left), effect: Effect::None, ..error.clone() })
    }

    fn state(&self) -> MutexGuard<'_, QuotaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the object itself is too large (`maximum number of domains per application`), which says nothing of others.
fn is_of_one_object(error: &ApiError) -> bool {
    let message = error.message.to_ascii_lowercase();
    ["per application", "per group", "per policy", "per rule"].iter().any(|part| message.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(message: &str) -> ApiError {
        ApiError { class: ErrorClass::Quota, ..ApiError::transient(message, Effect::None) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_holds_for_five_minutes_and_says_how_long() {
        let quota = Quota::default();
        quota.refused(&full("no more"));

        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(quota.refusal().and_then(|error| error.retry_after), Some(Duration::from_secs(200)));
        assert!(quota.admit().await.is_err());
        tokio::time::advance(Duration::from_secs(200)).await;
        assert!(quota.refusal().is_none() && quota.admit().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_refusal_one_tries_and_the_others_share_what_comes_of_it() {
        let quota = Quota::default();
        quota.refused(&full("no more"));
        tokio::time::advance(BLOCKED).await;

        let first = quota.admit().await.expect("the refusal is old");
        let second = quota.admit();
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        quota.refused(&full("still no more"));
        drop(first);

        assert_eq!(second.await.err().map(|error| error.message).as_deref(), Some("still no more"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_made_or_goes_ends_a_refusal_and_an_object_that_is_too_large_begins_none() {
        let quota = Quota::default();
        quota.refused(&full("no more"));
        quota.has_room();
        assert!(quota.refusal().is_none());

        quota.refused(&full("maximum number of domains per application has been reached (5)"));
        quota.refused(&ApiError::transient("503", Effect::None));
        assert!(quota.refusal().is_none());
    }

    #[test]
    fn a_limit_that_comes_near_is_told_once_and_again_when_it_has_been_far() {
        let quota = Quota::default();
        quota.set_limit(Some(50));

        assert_eq!(quota.counted(44), (None, false));
        assert_eq!(quota.counted(45), (Some(5), true));
        assert_eq!(quota.news(), Some(NearlyFull { used: 45, limit: 50 }));
        assert_eq!((quota.counted(46), quota.news()), ((Some(4), true), None));
        assert_eq!((quota.counted(44), quota.counted(60)), ((None, true), (Some(0), true)));
        assert_eq!(quota.news(), Some(NearlyFull { used: 60, limit: 50 }));
    }
}
