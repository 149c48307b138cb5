//! Seeded histories of the cloudflare job: `PORTOLAN_HISTORIES` of them (150), half of them the same each time and half by the
//! commit, or from `PORTOLAN_SEED` on.

use portolan_testkit_suites::histories::CloudflareHistory;
use portolan_testkit_suites::history::live;
use portolan_testkit_suites::seeds::live_through;
use portolan_testkit_suites::{paused, tell};

#[test]
fn whatever_happened_everything_ends_as_the_users_last_said() {
    let lived = live_through(150, |seed| paused(live::<CloudflareHistory>(seed)));

    tell(&format!(
        "histories: {} of cloudflare lived (seeds {}), {} requests, {} of them failed, {} crashes",
        lived.count,
        lived.seeds,
        lived.sum(|told| told.requests),
        lived.sum(|told| told.failed),
        lived.sum(|told| told.crashes)
    ));
    lived.assert_all("-p portolan-testkit-suites --test histories cloudflare");
}

#[test]
fn the_same_seed_tells_the_same_history() {
    assert_eq!(paused(live::<CloudflareHistory>(7)), paused(live::<CloudflareHistory>(7)));
    assert_ne!(
        paused(live::<CloudflareHistory>(7)).what_happened(),
        paused(live::<CloudflareHistory>(8)).what_happened()
    );
}
