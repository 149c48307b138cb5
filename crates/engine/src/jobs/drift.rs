//! Drift passes: when what stands at the other side is compared anew with what is wanted, though nothing changed here.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::jobs::task::Task;

/// When drift passes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Only when asked for.
    Off,
    /// One after the other, each beginning at least so long after the last. Passes look at what fits into their share of
    /// the API's budget, so that this is how often a small account is compared.
    Every(Duration),
}

/// How often passes are made where nobody asks for more.
const USUAL: Duration = Duration::from_secs(60);

impl Default for Drift {
    fn default() -> Self {
        Self::Every(USUAL)
    }
}

/// What a pass found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Remote collections and documents that were read.
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
    /// Passes by which everything is compared at least so often, as far as the budget allows. As usual, that is more often.
    pub fn at_least_every(longest: Duration) -> Self {
        Self::Every(longest.min(USUAL))
    }

    /// How far apart passes are.
    pub fn interval(self) -> Duration {
        match self {
            Self::Off => USUAL,
            Self::Every(interval) => interval,
        }
    }

    /// Making passes as a task of a job.
    pub fn into_task<F>(self, shutdown: CancellationToken, pass: impl Fn() -> F + Send + Sync + 'static) -> Task
    where
        F: Future<Output = Passed> + Send + 'static,
    {
        let run = async move {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.keep_passing(pass) => {}
            }
        };
        Task::new("drift", || 0, run)
    }

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

    #[test]
    fn an_older_interval_of_an_hour_is_kept_by_looking_every_minute() {
        assert_eq!(Drift::at_least_every(Duration::from_secs(3600)), Drift::default());
        assert_eq!(Drift::at_least_every(Duration::from_secs(20)).interval(), Duration::from_secs(20));
    }

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
