//! Seeded histories of the cloudflare job: `PORTOLAN_HISTORIES` of them (150), half of them the same each time and half by the
//! commit, or from `PORTOLAN_SEED` on.

use portolan_testkit_suites::histories::live;
use portolan_testkit_suites::seeds::live_through;
use portolan_testkit_suites::{paused, tell};

#[test]
fn whatever_happened_everything_ends_as_the_users_last_said() {
    let lived = live_through(150, |seed| paused(live(seed)));

    tell(&format!(
        "histories: {} of cloudflare lived (seeds {}), {} requests, {} of them failed, {} crashes",
        lived.count,
        lived.seeds,
        lived.sum(|told| told.requests),
        lived.sum(|told| told.failed),
        lived.sum(|told| told.crashes)
    ));
    lived.assert_all("histories cloudflare");
}

#[test]
fn the_same_seed_tells_the_same_history() {
    assert_eq!(paused(live(7)), paused(live(7)));
    assert_ne!(paused(live(7)).events, paused(live(8)).events);
}
