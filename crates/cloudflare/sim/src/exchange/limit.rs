//! Requests per user in a fixed window, the time for which who asked too often is turned away, and the headers that tell of it.
//!
//! <https://developers.cloudflare.com/fundamentals/api/reference/limits/>: all tokens and keys of a user are counted together, a
//! token of an account by itself; whoever exceeds the limit is refused for the next five minutes.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

/// What is left of a window after a request was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowRest {
    pub(crate) requests: u32,
    /// Seconds until there is room again, rounded up.
    pub(crate) seconds: u64,
    /// Whether the request was over the limit.
    pub(crate) exceeded: bool,
}

#[derive(Debug)]
struct Window {
    start: Instant,
    used: u32,
    /// Until when everything is refused, since the limit was exceeded.
    blocked: Option<Instant>,
}

impl Window {
    fn new(start: Instant) -> Self {
        Self { start, used: 0, blocked: None }
    }
}

/// How much is allowed: so many requests in a window, and how long more than that is punished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitPolicy {
    pub(crate) limit: u32,
    pub(crate) window: Duration,
    pub(crate) penalty: Duration,
}

/// Windows of all users.
#[derive(Debug, Default)]
pub(crate) struct UserLimits(BTreeMap<String, Window>);

impl UserLimits {
    /// Counts a request. The first one over the limit begins the penalty; those refused during it cost nothing more.
    pub(crate) fn take(&mut self, user: &str, policy: LimitPolicy, now: Instant) -> WindowRest {
        let window = self.0.entry(user.to_owned()).or_insert_with(|| Window::new(now));
        let over = window.blocked.map_or(now.duration_since(window.start) >= policy.window, |until| now >= until);
        if over {
            *window = Window::new(now);
        }
        let exceeded = window.used >= policy.limit;
        if exceeded {
            window.blocked.get_or_insert(now + policy.penalty);
        } else {
            window.used += 1;
        }
        let end = window.blocked.unwrap_or(window.start + policy.window);
        let rest = end.saturating_duration_since(now);
        WindowRest { requests: policy.limit - window.used, seconds: whole_seconds(rest), exceeded }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Seconds, rounded up.
pub(crate) fn whole_seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}

impl WindowRest {
    /// `Ratelimit` and `Ratelimit-Policy`.
    pub(crate) fn headers(self, (limit, length): (u32, Duration)) -> [(&'static str, String); 2] {
        [
            ("ratelimit", format!("\"default\";r={};t={}", self.requests, self.seconds)),
            ("ratelimit-policy", format!("\"default\";q={limit};w={}", length.as_secs())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_exceeds_a_window_is_refused_until_the_penalty_ends() {
        let policy = LimitPolicy { limit: 2, window: Duration::from_secs(300), penalty: Duration::from_secs(300) };
        let mut limits = UserLimits::default();
        let mut take = |who: &str| limits.take(who, policy, Instant::now());

        assert_eq!(take("a"), WindowRest { requests: 1, seconds: 300, exceeded: false });
        assert!(!take("a").exceeded);
        tokio::time::advance(Duration::from_secs(200)).await;
        assert_eq!(take("a"), WindowRest { requests: 0, seconds: 300, exceeded: true }, "the penalty begins");
        assert!(!take("b").exceeded);
        tokio::time::advance(Duration::from_millis(299_500)).await;
        assert_eq!(take("a"), WindowRest { requests: 0, seconds: 1, exceeded: true }, "asking does not prolong it");
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(take("a"), WindowRest { requests: 1, seconds: 300, exceeded: false });
    }
}
