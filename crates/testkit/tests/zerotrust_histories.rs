//! Seeded histories of the zerotrust job: `PORTOLAN_HISTORIES` of them (1,000), from `PORTOLAN_SEED` (1) on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use portolan_testkit::zerotrust::histories::live;
use portolan_testkit::{paused, tell};

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[derive(Default)]
struct Sums {
    requests: AtomicUsize,
    failed: AtomicUsize,
    crashes: AtomicUsize,
    questions: AtomicUsize,
}

#[test]
fn whatever_happened_no_name_stood_open_and_all_ends_as_the_users_last_said() {
    let (first, count) = (setting("PORTOLAN_SEED", 1), setting("PORTOLAN_HISTORIES", 1000));
    let (next, sums, failing) = (AtomicU64::new(first), Sums::default(), Mutex::new(Vec::new()));

    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(|| {
                while let seed @ 0.. = next.fetch_add(1, Ordering::Relaxed)
                    && seed < first + count
                {
                    match catch_unwind(AssertUnwindSafe(|| paused(live(seed)))) {
                        Ok(told) => {
                            sums.requests.fetch_add(told.requests, Ordering::Relaxed);
                            sums.failed.fetch_add(told.failed, Ordering::Relaxed);
                            sums.crashes.fetch_add(told.crashes, Ordering::Relaxed);
                            sums.questions.fetch_add(told.questions, Ordering::Relaxed);
                        }
                        Err(_) => failing.lock().expect("nothing panics while it is held").push(seed),
                    }
                }
            });
        }
    });

    let Sums { requests, failed, crashes, questions } = sums;
    tell(&format!(
        "histories: {count} of zerotrust lived, {} requests, {} of them failed, {} crashes, {} questions to the edge",
        requests.into_inner(),
        failed.into_inner(),
        crashes.into_inner(),
        questions.into_inner()
    ));
    let mut failing = failing.into_inner().expect("nothing panicked while it was held");
    failing.sort_unstable();
    for seed in failing.iter().take(10) {
        println!("failing seed: {seed}");
        println!(
            "  PORTOLAN_SEED={seed} PORTOLAN_HISTORIES=1 cargo test -p portolan-testkit --test zerotrust_histories -- --nocapture"
        );
    }
    assert!(failing.is_empty(), "{} of {count} histories failed; failing seed: {}", failing.len(), failing[0]);
}

#[test]
fn the_same_seed_tells_the_same_history() {
    assert_eq!(paused(live(7)), paused(live(7)));
    assert_ne!(paused(live(7)).events, paused(live(8)).events);
}
