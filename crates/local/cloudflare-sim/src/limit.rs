//! Requests per credential in a fixed window, and the headers that tell of it.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

/// What is left of a window after a request was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) requests: u32,
    /// Seconds until the window ends, rounded up.
    pub(crate) seconds: u64,
    /// Whether the request was over the limit.
    pub(crate) exceeded: bool,
}

#[derive(Debug)]
struct Window {
    start: Instant,
    used: u32,
}

/// Windows of all credentials.
#[derive(Debug, Default)]
pub(crate) struct Limits(BTreeMap<String, Window>);

impl Limits {
    /// Counts a request. One over the limit is refused and costs nothing more.
    pub(crate) fn take(&mut self, credential: &str, (limit, length): (u32, Duration), now: Instant) -> Left {
        let window = self.0.entry(credential.to_owned()).or_insert(Window { start: now, used: 0 });
        if now.duration_since(window.start) >= length {
            *window = Window { start: now, used: 0 };
        }
        let exceeded = window.used >= limit;
        if !exceeded {
            window.used += 1;
        }
        let rest = length.saturating_sub(now.duration_since(window.start));
        Left { requests: limit - window.used, seconds: whole_seconds(rest), exceeded }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Seconds, rounded up.
pub(crate) fn whole_seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}

impl Left {
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
    async fn a_window_refuses_what_is_over_its_limit_until_it_ends() {
        let policy = (2, Duration::from_secs(300));
        let mut limits = Limits::default();
        let mut take = |who: &str| limits.take(who, policy, Instant::now());

        assert_eq!(take("a"), Left { requests: 1, seconds: 300, exceeded: false });
        assert!(!take("a").exceeded);
        assert!(take("a").exceeded);
        assert!(!take("b").exceeded);
        tokio::time::advance(Duration::from_millis(299_500)).await;
        assert_eq!(take("a"), Left { requests: 0, seconds: 1, exceeded: true });
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(take("a"), Left { requests: 1, seconds: 300, exceeded: false });
    }
}
