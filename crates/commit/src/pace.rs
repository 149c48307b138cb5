//! How far apart the writes of one document are: none after a quiet time, up to a second while changes keep coming. Pure.
//!
//! A write that begins as soon as the last one ended carries what came during one answer. Changes that come evenly would
//! cost a write for each answer's time; so the gap doubles, and each write carries more.

use std::time::Duration;

use tokio::time::Instant;

/// The largest gap from the beginning of a write to the beginning of the next.
const MOST: Duration = Duration::from_secs(1);
/// After so long without a write the next one goes at once, and gaps grow anew.
const QUIET: Duration = Duration::from_secs(2);

/// The pace of one document's writes.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<LastWrite>,
}

#[derive(Clone, Copy, Debug)]
struct LastWrite {
    began: Instant,
    ended: Instant,
    gap: Duration,
}

impl Pace {
    /// When the next write may begin, where that is not now.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        self.busy(now).map(|last| last.began + last.gap).filter(|next| *next > now)
    }

    /// A write began and ended. The gap begins as the time that an answer takes.
    pub fn wrote(&mut self, began: Instant, ended: Instant) {
        let gap = self.busy(began).map_or(ended - began, |last| last.gap * 2).min(MOST);
        self.last = Some(LastWrite { began, ended, gap });
    }

    /// The last write, where it was not long ago.
    fn busy(&self, now: Instant) -> Option<LastWrite> {
        self.last.filter(|last| now < last.ended + QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Duration = Duration::from_millis(150);

    /// When writes begin, in milliseconds, if there is always something to write.
    fn beginnings(pace: &mut Pace, start: Instant, count: usize) -> Vec<u128> {
        let mut now = start;
        let mut begun = Vec::new();
        for _ in 0..count {
            now = pace.next(now).unwrap_or(now);
            begun.push((now - start).as_millis());
            pace.wrote(now, now + LATENCY);
            now += LATENCY;
        }
        begun
    }

    #[test]
    fn the_gap_doubles_from_the_answers_time_to_one_second() {
        let begun = beginnings(&mut Pace::default(), Instant::now(), 7);

        assert_eq!(begun, [0, 150, 450, 1050, 2050, 3050, 4050]);
    }

    #[test]
    fn after_two_quiet_seconds_a_write_goes_at_once_and_gaps_grow_anew() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        beginnings(&mut pace, start, 7);

        let later = start + Duration::from_millis(4050) + LATENCY + QUIET;
        assert_eq!(beginnings(&mut pace, later, 4), [0, 150, 450, 1050]);
    }

    #[test]
    fn changes_further_apart_than_the_gap_never_wait() {
        let (mut pace, start) = (Pace::default(), Instant::now());

        for n in 0..20 {
            let now = start + Duration::from_millis(1500) * n;
            assert_eq!(pace.next(now), None);
            pace.wrote(now, now + LATENCY);
        }
    }

    #[test]
    fn a_write_that_took_longer_than_the_gap_is_followed_at_once() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        pace.wrote(start, start + Duration::from_secs(5));

        assert_eq!(pace.next(start + Duration::from_secs(5)), None);
    }
}
