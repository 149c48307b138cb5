//! What other users of the same credential spend, seen as drops of the budget that are not ours.

use std::{collections::VecDeque, time::Duration};

/// Drops seen in the last window, gathered by the second: answers that overtake each other even out.
#[derive(Debug, Default)]
pub(super) struct Others {
    seen: VecDeque<Drop>,
}

#[derive(Clone, Copy, Debug)]
struct Drop {
    at: Duration,
    span: f64,
    amount: f64,
}

/// A rate seen over a shorter time counts as seen over this, in seconds.
const LEAST_SPAN: f64 = 10.0;

impl Others {
    /// The budget dropped by `amount` more than we spent, over `span` until `at`. May be negative for a moment.
    pub(super) fn observe(&mut self, at: Duration, span: Duration, amount: f64) {
        let drop = Drop { at, span: span.as_secs_f64(), amount };
        match self.seen.back_mut() {
            Some(last) if last.at.as_secs() == at.as_secs() => {
                *last = Drop { at, span: last.span + drop.span, amount: last.amount + amount };
            }
            _ => self.seen.push_back(drop),
        }
    }

    /// Forgets what was seen before `start`.
    pub(super) fn forget(&mut self, start: Duration) {
        while self.seen.front().is_some_and(|drop| drop.at < start) {
            self.seen.pop_front();
        }
    }

    /// Requests a second.
    pub(super) fn rate(&self) -> f64 {
        let (amount, span) = self.seen.iter().fold((0.0, 0.0), |sum, drop| (sum.0 + drop.amount, sum.1 + drop.span));
        amount.max(0.0) / f64::max(span, LEAST_SPAN)
    }

    /// The most that came at once, beyond the rate.
    pub(super) fn burst(&self) -> f64 {
        let rate = self.rate();
        self.seen.iter().map(|drop| drop.amount - rate * drop.span).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_steady_spender_has_a_rate_and_no_burst() {
        let mut others = Others::default();
        for second in 1..=100 {
            others.observe(s(second), s(1), 2.0);
        }

        assert!((others.rate() - 2.0).abs() < 1e-9);
        assert!(others.burst() < 1e-9);
    }

    #[test]
    fn a_burst_stands_out() {
        let mut others = Others::default();
        for second in 1..=100 {
            others.observe(s(second), s(1), if second == 50 { 20.0 } else { 0.0 });
        }

        assert!(others.burst() > 19.0);
    }

    #[test]
    fn answers_that_overtake_each_other_are_nobody_else() {
        let mut others = Others::default();
        others.observe(Duration::from_millis(1_100), s(1), 5.0);
        for _ in 0..5 {
            others.observe(Duration::from_millis(1_200), Duration::ZERO, -1.0);
        }

        assert!(others.rate() < 1e-9 && others.burst() < 1e-9);
    }

    #[test]
    fn what_is_older_than_a_window_is_forgotten() {
        let mut others = Others::default();
        others.observe(s(1), s(1), 100.0);

        others.forget(s(2));

        assert!(others.rate() < 1e-9);
    }
}
