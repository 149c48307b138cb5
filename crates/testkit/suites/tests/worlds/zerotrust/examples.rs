//! The worked examples on the embedded API server.

use portolan_testkit_suites::zerotrust::{self as z, examples};
use portolan_testkit_suites::{paused, tell};

#[test]
fn the_four_worked_examples_hold_exactly() {
    let count = paused(examples::all(&z::world()));

    tell(&format!("examples: {count} worked examples on the embedded API server"));
    assert_eq!(count, 4);
}
