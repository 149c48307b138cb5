//! Time in a world: tokio's clock, counted from a fixed day, so that a paused clock repeats a run exactly.

use jiff::{SignedDuration, Timestamp};
use portolan_core::Clock;
use tokio::time::Instant;

/// When every world begins: 2026-01-05T08:00:00Z.
const BEGINNING: i64 = 1_767_600_000;

/// When every world begins that does not say otherwise.
pub(crate) fn beginning() -> Timestamp {
    Timestamp::from_second(BEGINNING).expect("a day of this century")
}

/// A clock that moves with tokio's, from a time on. Must be made, and asked, inside a runtime.
pub fn tokio_clock(beginning: Timestamp) -> Clock {
    let start = Instant::now();
    std::sync::Arc::new(move || {
        portolan_engine::refuse_pure_step("the time");
        let passed = SignedDuration::try_from(start.elapsed()).expect("no world lives that long");
        beginning.checked_add(passed).expect("no world lives that long")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_clock_moves_with_tokio_alone() {
        let clock = tokio_clock(beginning());
        let before = clock();

        tokio::time::advance(Duration::from_secs(90)).await;

        assert_eq!(clock().duration_since(before), SignedDuration::from_secs(90));
        assert_eq!(portolan_core::rfc3339(before), "2026-01-05T08:00:00Z");
    }
}
