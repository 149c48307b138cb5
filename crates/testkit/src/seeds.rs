//! Many histories from seeds, on all cores; those that fail are told with how to replay them.

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
    failing: Vec<u64>,
}

/// Lives through `PORTOLAN_HISTORIES` histories (or as many as usual) from `PORTOLAN_SEED` (or 1) on.
pub fn live_through<T: Send>(usual: u64, live: impl Fn(u64) -> T + Sync) -> Lived<T> {
    live_through_of("PORTOLAN_HISTORIES", usual, live)
}

/// The same, as many as another variable says.
pub fn live_through_of<T: Send>(variable: &str, usual: u64, live: impl Fn(u64) -> T + Sync) -> Lived<T> {
    let (first, count) = (setting("PORTOLAN_SEED", 1), setting(variable, usual));
    live_all(&(first..first + count).collect::<Vec<_>>(), live)
}

/// The same, but half of the seeds are others with every commit, unless a seed is set; says where those begin.
pub fn live_through_anew<T: Send>(usual: u64, live: impl Fn(u64) -> T + Sync) -> (Lived<T>, u64) {
    let (count, fresh) = (setting("PORTOLAN_HISTORIES", usual), fresh());
    if std::env::var_os("PORTOLAN_SEED").is_some() {
        let first = setting("PORTOLAN_SEED", 1);
        return (live_through(usual, live), first);
    }
    let seeds: Vec<u64> = (1..=count / 2).chain(fresh..fresh + count.div_ceil(2)).collect();
    (live_all(&seeds, live), fresh)
}

/// A number that the commit gives, or `PORTOLAN_FRESH`.
fn fresh() -> u64 {
    let commit = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    let commit = commit.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default();
    let number = u64::from_str_radix(commit.get(..8).unwrap_or_default(), 16).unwrap_or(1_000_000);
    // Far from the seeds that are always lived through.
    setting("PORTOLAN_FRESH", number + 1_000_000)
}

fn live_all<T: Send>(seeds: &[u64], live: impl Fn(u64) -> T + Sync) -> Lived<T> {
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
    Lived { count: seeds.len() as u64, told, failing }
}

impl<T> Lived<T> {
    /// The sum of what each told.
    pub fn sum(&self, of: impl Fn(&T) -> usize) -> usize {
        self.told.iter().map(of).sum()
    }

    /// Fails where a history did, and says how to replay it in `test`.
    pub fn assert_all(&self, test: &str) {
        for seed in self.failing.iter().take(SHOWN) {
            println!("failing seed: {seed}");
            println!(
                "  PORTOLAN_SEED={seed} PORTOLAN_HISTORIES=1 cargo test -p portolan-testkit --test {test} -- --nocapture"
            );
        }
        let (failed, count) = (self.failing.len(), self.count);
        assert!(failed == 0, "{failed} of {count} histories failed; failing seed: {}", self.failing[0]);
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}
