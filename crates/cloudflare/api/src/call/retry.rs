//! Whether and when a failed request is sent again. Pure.
//!
//! A POST that may have arrived is never repeated here: only a look at what is there can tell whether it was applied. Whoever
//! can look does so after the same pauses: [`CollectionHandle::create`](crate::CollectionHandle::create) for a collection,
//! [`Client::again`](crate::Client::again) for anything else.

use std::time::Duration;

use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::call::request::Request;

/// A longer pause that the API asks for is not waited for here: whoever asked tells it, and comes again.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// What chance does to a pause, so that many who failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Up to half of it less.
    Less,
    /// Up to a quarter of it more.
    More,
}

/// How patient the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// Repeats after the first attempt.
    pub retries: u32,
    /// Pause before the first repeat; doubled each time.
    pub first: Duration,
    /// Longest pause, before the jitter.
    pub most: Duration,
    /// What chance does to each pause.
    pub jitter: Jitter,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 3, first: Duration::from_secs(1), most: Duration::from_secs(30), jitter: Jitter::Less }
    }
}

impl RetryPolicy {
    /// Every failure goes straight to the caller, which has a backoff of its own.
    pub const NONE: Self = Self { retries: 0, first: Duration::ZERO, most: Duration::ZERO, jitter: Jitter::Less };

    /// Three repeats after 5, 10 and 20 seconds, and a little more.
    pub const PATIENT: Self =
        Self { retries: 3, first: Duration::from_secs(5), most: Duration::from_secs(20), jitter: Jitter::More };

    /// The pause before the next attempt, or none if there is no other. `attempt` counts from 0, `jitter` is in 0..1.
    /// After a refusal by the rate limit the governor knows how long to wait, so the pause here is none.
    pub fn pause(&self, request: &Request, error: &ApiError, attempt: u32, jitter: f64) -> Option<Duration> {
        let repeatable = request.is_idempotent() || never_sent(error) || error.class == ErrorClass::RateLimit;
        if repeatable { self.look_again(error, attempt, jitter) } else { None }
    }

    /// The pause before somebody who looks first tries again, whatever became of the failed attempt.
    pub fn look_again(&self, error: &ApiError, attempt: u32, jitter: f64) -> Option<Duration> {
        match error.class {
            _ if attempt >= self.retries => None,
            _ if error.retry_after.is_some_and(|pause| pause > LONGEST_SILENCE) => None,
            ErrorClass::RateLimit => Some(Duration::ZERO),
            ErrorClass::Transient => Some(error.retry_after.unwrap_or_else(|| self.backoff(attempt, jitter))),
            _ => None,
        }
    }

    /// The one that goes on for longer.
    pub(crate) fn more_patient(self, other: Self) -> Self {
        let length = |policy: &Self| (policy.retries, policy.most, policy.first);
        std::cmp::max_by_key(self, other, length)
    }

    fn backoff(&self, attempt: u32, jitter: f64) -> Duration {
        let pause = self.first.saturating_mul(2_u32.saturating_pow(attempt)).min(self.most);
        let jitter = jitter.clamp(0.0, 1.0);
        pause.mul_f64(match self.jitter {
            Jitter::Less => 0.5 + jitter / 2.0,
            Jitter::More => 1.0 + jitter / 4.0,
        })
    }
}

/// No answer came, and nothing can have arrived.
fn never_sent(error: &ApiError) -> bool {
    error.status.is_none() && error.effect == Effect::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn pause(method: Method, error: &ApiError, attempt: u32) -> Option<Duration> {
        RetryPolicy::default().pause(&Request::new(method, "/x", &[]), error, attempt, 1.0)
    }

    #[test]
    fn reads_and_writes_by_id_are_repeated_with_growing_pauses() {
        let error = ApiError::transient("broken", Effect::Unknown);

        for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
            let pauses: Vec<_> = (0..4).map(|attempt| pause(method.clone(), &error, attempt)).collect();
            assert_eq!(
                pauses,
                [1, 2, 4].map(|s| Some(Duration::from_secs(s))).into_iter().chain([None]).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_post_that_may_have_arrived_is_not_repeated() {
        assert_eq!(pause(Method::POST, &ApiError::transient("timeout", Effect::Unknown), 0), None);
    }

    #[test]
    fn a_post_that_never_left_is_repeated() {
        assert!(pause(Method::POST, &ApiError::transient("refused", Effect::None), 0).is_some());
    }

    #[test]
    fn a_post_refused_by_the_rate_limit_is_repeated_when_the_governor_allows() {
        let error = ApiError { class: ErrorClass::RateLimit, ..ApiError::transient("429", Effect::None) };

        assert_eq!(pause(Method::POST, &error, 0), Some(Duration::ZERO));
    }

    #[test]
    fn finding_33_a_long_pause_that_the_api_asks_for_is_the_callers() {
        let after = |class, seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            pause(Method::GET, &ApiError { class, retry_after, ..ApiError::transient("later", Effect::None) }, 0)
        };

        assert_eq!(after(ErrorClass::Transient, 30), Some(Duration::from_secs(30)));
        assert_eq!((after(ErrorClass::Transient, 31), after(ErrorClass::RateLimit, 31)), (None, None));
    }

    #[test]
    fn a_refused_body_is_not_repeated() {
        let error = ApiError { class: ErrorClass::Validation, ..ApiError::transient("bad", Effect::None) };

        assert_eq!(pause(Method::GET, &error, 0), None);
    }

    #[test]
    fn the_patient_policy_waits_at_least_its_steps() {
        let pauses = |jitter| (0..4).map(move |attempt| RetryPolicy::PATIENT.backoff(attempt, jitter).as_millis());

        assert_eq!(pauses(0.0).collect::<Vec<_>>(), [5_000, 10_000, 20_000, 20_000]);
        assert_eq!(pauses(1.0).collect::<Vec<_>>(), [6_250, 12_500, 25_000, 25_000]);
    }

    #[test]
    fn who_looks_first_may_try_a_post_of_unknown_outcome_again_until_the_repeats_are_used_up() {
        let error = ApiError::transient("timeout", Effect::Unknown);
        let pause = |attempt| RetryPolicy::PATIENT.look_again(&error, attempt, 0.0);

        assert_eq!(pause(0), Some(Duration::from_secs(5)));
        assert_eq!(pause(3), None);
    }

    #[test]
    fn of_two_policies_the_one_that_goes_on_for_longer_is_the_more_patient() {
        let (usual, none) = (RetryPolicy::default(), RetryPolicy::NONE);

        assert_eq!(none.more_patient(RetryPolicy::PATIENT), RetryPolicy::PATIENT);
        assert_eq!(usual.more_patient(none), usual);
    }

    #[test]
    fn jitter_shortens_a_pause_by_half_at_most() {
        let policy = RetryPolicy::default();

        assert_eq!(policy.backoff(9, 0.0), Duration::from_secs(15));
        assert_eq!(policy.backoff(9, 1.0), Duration::from_secs(30));
    }
}
