//! The beat of the runtime: whether its tasks still get their turn.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::observe::health::Check;

/// How often it beats.
const BEAT: Duration = Duration::from_secs(5);
/// A runtime that gave no turn for so long is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// A task that does nothing but come to its turn.
pub(crate) struct Watchdog {
    last: Arc<Mutex<Instant>>,
    beating: AbortHandle,
}

impl Watchdog {
    /// Begins to beat.
    pub(crate) fn start() -> Self {
        let last = Arc::new(Mutex::new(Instant::now()));
        let beat = Arc::clone(&last);
        let beating = tokio::spawn(async move {
            loop {
                tokio::time::sleep(BEAT).await;
                *beat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            }
        });
        Self { last, beating: beating.abort_handle() }
    }

    /// Looks at it from outside.
    pub(crate) fn check(&self) -> impl Fn() -> Check + Send + Sync + 'static {
        let last = Arc::clone(&self.last);
        move || {
            let silent = last.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
            let stuck = silent > STUCK;
            Check::of("runtime", stuck.then(|| format!("no task had its turn for {} seconds", silent.as_secs())))
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_runtime_whose_tasks_have_no_turn_is_stuck() {
        let watchdog = Watchdog::start();
        let check = watchdog.check();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(check(), Check::passed("runtime"));

        watchdog.beating.abort();
        tokio::time::sleep(Duration::from_secs(66)).await;

        let failure = check().failure.expect("nothing beats");
        assert!(failure.starts_with("no task had its turn for "), "{failure}");
    }
}
