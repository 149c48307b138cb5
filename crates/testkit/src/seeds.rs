//! Many histories from seeds, on all cores; those that fail are told with how to replay them.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Failing seeds that are told in full.
const SHOWN: usize = 10;

/// What came of the histories of some seeds.
pub struct Lived<T> {
    /// How many there were.
    pub count: u64,
    /// What each told that came to its end.
    pub told: Vec<T>,
    /// The seeds that were lived through: `1…150 and 9000…9149`.
    pub seeds: String,
    failing: Vec<u64>,
}

/// The seeds of a run: some that are the same each time, and others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seeds {
    fixed: Range<u64>,
    fresh: Range<u64>,
}

impl Seeds {
    /// From a seed that is asked for; otherwise half from 1 on, for what comes back, and half from where the commit says,
    /// for what is new.
    fn of(asked: Option<u64>, count: u64, fresh: u64) -> Self {
        let end = count / 2 + 1;
        match asked {
            Some(asked) => Self { fixed: asked..asked + count, fresh: 0..0 },
            None => Self { fixed: 1..end, fresh: fresh..fresh + count.div_ceil(2) },
        }
    }

    fn all(&self) -> Vec<u64> {
        self.fixed.clone().chain(self.fresh.clone()).collect()
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = [&self.fixed, &self.fresh].into_iter().filter(|range| !range.is_empty());
        let told: Vec<String> = ranges.map(|range| format!("{}…{}", range.start, range.end - 1)).collect();
        f.write_str(&told.join(" and "))
    }
}

/// Lives through `PORTOLAN_HISTORIES` histories, or as many as usual: half of the seeds are the same each time, half are
/// others with every commit, unless `PORTOLAN_SEED` says where all of them begin.
pub fn live_through<T: Send>(usual: u64, live: impl Fn(u64) -> T + Sync) -> Lived<T> {
    live_through_of("PORTOLAN_HISTORIES", usual, live)
}

/// The same, as many as another variable says.
pub fn live_through_of<T: Send>(variable: &str, usual: u64, live: impl Fn(u64) -> T + Sync) -> Lived<T> {
    let count = setting(variable).unwrap_or(usual);
    let seeds = Seeds::of(setting("PORTOLAN_SEED"), count, setting("PORTOLAN_FRESH").unwrap_or_else(of_commit));
    live_all(&seeds, live)
}

/// A number that the commit gives, far from the seeds that are always lived through.
fn of_commit() -> u64 {
    let commit = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    let commit = commit.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default();
    u64::from_str_radix(commit.get(..8).unwrap_or_default(), 16).unwrap_or(1_000_000) + 1_000_000
}

fn live_all<T: Send>(chosen: &Seeds, live: impl Fn(u64) -> T + Sync) -> Lived<T> {
    let seeds = chosen.all();
    let (next, told, failing) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                    match catch_unwind(AssertUnwindSafe(|| live(seed))) {
                        Ok(one) => told.lock().unwrap_or_else(PoisonError::into_inner).push(one),
                        Err(_) => failing.lock().unwrap_or_else(PoisonError::into_inner).push(seed),
                    }
                }
            });
        }
    });
    let mut failing = failing.into_inner().unwrap_or_else(PoisonError::into_inner);
    failing.sort_unstable();
    let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    Lived { count: seeds.len() as u64, told, seeds: chosen.to_string(), failing }
}

impl<T> Lived<T> {
    /// The sum of what each told.
    pub fn sum(&self, of: impl Fn(&T) -> usize) -> usize {
        self.told.iter().map(of).sum()
    }

    /// Fails where a history did, and says how to replay it by `cargo test` with these arguments.
    pub fn assert_all(&self, test: &str) {
        for seed in self.failing.iter().take(SHOWN) {
            println!("failing seed: {seed}");
            println!("  PORTOLAN_SEED={seed} PORTOLAN_HISTORIES=1 cargo test {test} -- --nocapture");
        }
        let (failed, count) = (self.failing.len(), self.count);
        assert!(failed == 0, "{failed} of {count} histories failed; failing seed: {}", self.failing[0]);
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_seeds_are_always_the_same_and_half_come_from_the_commit() {
        let seeds = Seeds::of(None, 5, 9000);

        assert_eq!(seeds.all(), [1, 2, 9000, 9001, 9002]);
        assert_eq!(seeds.to_string(), "1…2 and 9000…9002");
        assert_eq!(Seeds::of(None, 1, 9000).to_string(), "9000…9000");
    }

    #[test]
    fn a_soak_and_a_replay_take_the_seeds_that_they_are_given() {
        assert_eq!(Seeds::of(Some(7), 3, 9000).all(), [7, 8, 9]);
        assert_eq!(Seeds::of(Some(7), 1, 9000).to_string(), "7…7");
    }

    #[test]
    fn a_history_that_fails_is_told_by_its_seed_and_the_others_are_lived() {
        let lived = live_all(&Seeds::of(Some(1), 4, 0), |seed| assert!(seed != 3, "the third fails"));

        assert_eq!((lived.count, lived.told.len(), lived.failing.as_slice()), (4, 3, [3].as_slice()));
    }
}
