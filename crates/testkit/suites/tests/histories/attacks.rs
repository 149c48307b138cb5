//! Seeded histories that attack: `PORTOLAN_HISTORIES` of them (300); and the namespace of the worked examples deleted in
//! `PORTOLAN_ORDERS` orders (10). Half of the seeds are the same each time, half come from the commit.

use portolan_testkit_suites::history::live;
use portolan_testkit_suites::seeds::{live_through, live_through_of};
use portolan_testkit_suites::zerotrust::attacks::AttackHistory;
use portolan_testkit_suites::zerotrust::orders;
use portolan_testkit_suites::{paused, tell};

#[test]
fn whatever_vanishes_breaks_or_comes_late_no_protected_name_stands_open() {
    let lived = live_through(300, |seed| paused(live::<AttackHistory>(seed)));

    tell(&format!(
        "attacks: {} histories lived (seeds {}), {} attacks, {} requests, {} crashes, {} questions to the edge, each late once more",
        lived.count,
        lived.seeds,
        lived.sum(|told| told.count("attacks")),
        lived.sum(|told| told.requests),
        lived.sum(|told| told.crashes),
        lived.sum(|told| told.count("questions"))
    ));
    lived.assert_all("-p portolan-testkit-suites --test histories attacks");
}

#[test]
fn the_same_seed_tells_the_same_attacks() {
    assert_eq!(paused(live::<AttackHistory>(7)), paused(live::<AttackHistory>(7)));
    assert_ne!(paused(live::<AttackHistory>(7)).what_happened(), paused(live::<AttackHistory>(8)).what_happened());
}

#[test]
fn a_namespace_goes_in_whatever_order_and_leaves_nothing() {
    let lived = live_through_of("PORTOLAN_ORDERS", 10, |seed| paused(orders::live(seed)));

    let longest = lived.told.iter().map(|told| told.seconds).max().unwrap_or_default();
    tell(&format!(
        "deletion orders: {} namespaces of the worked examples went (seeds {}), the slowest in {longest} s; nothing public, nothing left",
        lived.told.len(),
        lived.seeds
    ));
    lived.assert_all("-p portolan-testkit-suites --test histories attacks");
}
