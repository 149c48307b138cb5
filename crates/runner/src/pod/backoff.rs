//! When a container that ended is started again: at once, then after 10 s, doubling to 300 s, as
//! `kuberuntime/kuberuntime_manager.go` (`doBackOff`) and client-go's `flowcontrol.Backoff` have it.

use jiff::{SignedDuration, Timestamp};

/// The times between restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// The first wait.
    pub first: SignedDuration,
    /// The longest.
    pub most: SignedDuration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self { first: SignedDuration::from_secs(10), most: SignedDuration::from_secs(300) }
    }
}

/// What is remembered of a container's restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestartBackoff {
    last: Option<LastRestart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastRestart {
    wait: SignedDuration,
    at: Timestamp,
}

impl RestartBackoff {
    /// How long to wait after an end, where there is something to wait for. The first restart waits for nothing; a container
    /// that ran for twice the longest wait begins anew.
    pub fn wait_after(&self, ended: Timestamp, limits: BackoffLimits) -> Option<SignedDuration> {
        let last = self.last?;
        (!is_forgotten(last, ended, limits)).then_some(last.wait)
    }

    /// Notes a restart after an end.
    #[must_use]
    pub fn restarted(self, ended: Timestamp, now: Timestamp, limits: BackoffLimits) -> Self {
        let wait = match self.last {
            Some(last) if !is_forgotten(last, ended, limits) => (last.wait * 2).min(limits.most),
            Some(_) | None => limits.first,
        };
        Self { last: Some(LastRestart { wait, at: now }) }
    }
}

fn is_forgotten(last: LastRestart, ended: Timestamp, limits: BackoffLimits) -> bool {
    ended.duration_since(last.at) > limits.most * 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;

    /// The waits before each of so many restarts, where the container ends after it ran for `ran` seconds.
    fn waits(restarts: usize, ran: i64) -> Vec<i64> {
        let limits = BackoffLimits::default();
        let (mut backoff, mut ended) = (RestartBackoff::default(), at(0));
        let mut waits = Vec::new();
        for _ in 0..restarts {
            let wait = backoff.wait_after(ended, limits).unwrap_or_default();
            waits.push(wait.as_secs());
            let now = ended.checked_add(wait).expect("the tests' times are times");
            backoff = backoff.restarted(ended, now, limits);
            ended = now.checked_add(SignedDuration::from_secs(ran)).expect("the tests' times are times");
        }
        waits
    }

    #[test]
    fn the_first_restart_is_immediate_and_the_waits_double_to_five_minutes() {
        assert_eq!(waits(9, 1), [0, 10, 20, 40, 80, 160, 300, 300, 300]);
    }

    #[test]
    fn a_container_that_ran_for_more_than_ten_minutes_is_restarted_at_once() {
        assert_eq!(waits(4, 601), [0, 0, 0, 0]);
        assert_eq!(waits(4, 600), [0, 10, 20, 40]);
    }
}
