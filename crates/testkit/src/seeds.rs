//! Many histories from seeds, on all cores; those that fail are told with how to replay them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
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
    let (first, count) = (setting("PORTOLAN_SEED", 1), setting("PORTOLAN_HISTORIES", usual));
    let (next, told, failing) = (AtomicU64::new(first), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(|| {
                while let seed @ 0.. = next.fetch_add(1, Ordering::Relaxed)
                    && seed < first + count
                {
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
    Lived { count, told: told.into_inner().unwrap_or_else(PoisonError::into_inner), failing }
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
