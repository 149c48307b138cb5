//! Seeded histories of the zerotrust job: `PORTOLAN_HISTORIES` of them (200), half of them the same each time and half by the
//! commit, or from `PORTOLAN_SEED` on.

use portolan_testkit_suites::history::live;
use portolan_testkit_suites::seeds::live_through;
use portolan_testkit_suites::zerotrust::histories::RouteHistory;
use portolan_testkit_suites::{paused, tell};

#[test]
fn whatever_happened_no_name_stood_open_and_all_ends_as_the_users_last_said() {
    let lived = live_through(200, |seed| paused(live::<RouteHistory>(seed)));

    tell(&format!(
        "histories: {} of zerotrust lived (seeds {}), {} requests, {} of them failed, {} crashes, {} questions to the edge",
        lived.count,
        lived.seeds,
        lived.sum(|told| told.requests),
        lived.sum(|told| told.failed),
        lived.sum(|told| told.crashes),
        lived.sum(|told| told.count("questions"))
    ));
    lived.assert_all("-p portolan-testkit-suites --test histories zerotrust");
}

#[test]
fn the_same_seed_tells_the_same_history() {
    assert_eq!(paused(live::<RouteHistory>(7)), paused(live::<RouteHistory>(7)));
    assert_ne!(paused(live::<RouteHistory>(7)).what_happened(), paused(live::<RouteHistory>(8)).what_happened());
}
