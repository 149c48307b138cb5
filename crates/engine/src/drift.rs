//! Drift passes: when what stands at the other side is compared anew with what is wanted, though nothing changed here.

use std::time::Duration;

use tokio::time::Instant;

/// When drift passes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Only when asked for.
    Off,
    /// One after the other, each beginning at least so long after the last.
    Every(Duration),
}

impl Default for Drift {
    fn default() -> Self {
        Self::Every(Duration::from_secs(60))
    }
}

/// What a pass found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Zones, tunnels and account collections that were read.
    pub scopes: usize,
    /// Of those, how many could not be.
    pub failed: usize,
    /// Objects that are reconciled because something differs.
    pub drifted: usize,
}

impl std::ops::AddAssign for Passed {
    fn add_assign(&mut self, other: Self) {
        self.scopes += other.scopes;
        self.failed += other.failed;
        self.drifted += other.drifted;
    }
}

impl Drift {
    /// Makes passes, one after the other, for good.
    pub async fn keep_passing<F: Future<Output = Passed>>(self, pass: impl Fn() -> F) {
        let Self::Every(least) = self else { return std::future::pending().await };
        loop {
            let began = Instant::now();
            tokio::time::sleep_until(began + least).await;
            let passed = pass().await;
            tracing::debug!(?passed, duration_ms = began.elapsed().as_millis(), "Checked for drift");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn passes_begin_at_least_the_interval_apart_and_never_when_off() {
        let passes = Cell::new(0);
        let count = || async {
            passes.set(passes.get() + 1);
            Passed::default()
        };
        let hour = Duration::from_secs(3600);

        let _ = tokio::time::timeout(hour, Drift::Off.keep_passing(count)).await;
        assert_eq!(passes.get(), 0);

        let _ = tokio::time::timeout(hour, Drift::Every(Duration::from_secs(700)).keep_passing(count)).await;
        assert_eq!(passes.get(), 5);
    }
}
