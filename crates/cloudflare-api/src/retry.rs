//! Whether and when a failed request is sent again. Pure.
//!
//! A POST that may have arrived is never repeated here: only a look at what is there can tell whether it was applied.

use std::time::Duration;

use crate::error::{ApiError, Effect, ErrorClass};
use crate::request::Request;

/// How patient the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repeats after the first attempt.
    pub retries: u32,
    /// Pause before the first repeat; doubled each time.
    pub first: Duration,
    /// Longest pause.
    pub most: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 3, first: Duration::from_secs(1), most: Duration::from_secs(30) }
    }
}

impl RetryPolicy {
    /// Every failure goes straight to the caller, which has a backoff of its own.
    pub const NONE: Self = Self { retries: 0, first: Duration::ZERO, most: Duration::ZERO };

    /// The pause before the next attempt, or none if there is no other. `attempt` counts from 0, `jitter` is in 0..1.
    /// After a refusal by the rate limit the governor knows how long to wait, so the pause here is none.
    pub fn pause(&self, request: &Request, error: &ApiError, attempt: u32, jitter: f64) -> Option<Duration> {
        if attempt >= self.retries {
            return None;
        }
        match error.class {
            ErrorClass::RateLimit => Some(Duration::ZERO),
            ErrorClass::Transient if request.is_idempotent() || never_sent(error) => {
                Some(error.retry_after.unwrap_or_else(|| self.backoff(attempt, jitter)))
            }
            _ => None,
        }
    }

    fn backoff(&self, attempt: u32, jitter: f64) -> Duration {
        let pause = self.first.saturating_mul(2_u32.saturating_pow(attempt)).min(self.most);
        pause.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
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
    fn a_refused_body_is_not_repeated() {
        let error = ApiError { class: ErrorClass::Validation, ..ApiError::transient("bad", Effect::None) };

        assert_eq!(pause(Method::GET, &error, 0), None);
    }

    #[test]
    fn jitter_shortens_a_pause_by_half_at_most() {
        let policy = RetryPolicy::default();

        assert_eq!(policy.backoff(9, 0.0), Duration::from_secs(15));
        assert_eq!(policy.backoff(9, 1.0), Duration::from_secs(30));
    }
}
