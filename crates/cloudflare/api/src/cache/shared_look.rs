//! What a look at something found: kept for a while by everybody who uses the credential, so that many who need to know
//! the same cost one look.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::budget::governor::Lane;
use crate::call::error::ApiError;

/// What is known of one thing. Clones share it.
#[derive(Debug)]
pub struct SharedLook<T> {
    shared: Arc<SharedLookState<T>>,
}

#[derive(Debug)]
struct SharedLookState<T> {
    known: Mutex<LastLook<T>>,
    ticks: AtomicU64,
    /// One look at a time and lane: who is in a hurry does not wait for the budget of those who are not.
    flights: [tokio::sync::Mutex<()>; 3],
}

#[derive(Debug)]
struct LastLook<T> {
    heard: Option<(Instant, T)>,
    /// The last look failed, at this tick.
    failed: Option<(u64, ApiError)>,
}

impl<T> Clone for SharedLook<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for SharedLook<T> {
    fn default() -> Self {
        let known = Mutex::new(LastLook { heard: None, failed: None });
        Self { shared: Arc::new(SharedLookState { known, ticks: AtomicU64::new(0), flights: Default::default() }) }
    }
}

impl<T: Clone> SharedLook<T> {
    /// What was found at most so long ago.
    pub fn within(&self, age: Duration) -> Option<T> {
        self.known().heard.as_ref().filter(|(at, _)| at.elapsed() <= age).map(|(_, found)| found.clone())
    }

    /// Something was found.
    pub fn note(&self, found: T) {
        *self.known() = LastLook { heard: Some((Instant::now(), found)), failed: None };
    }

    /// What was found is no longer trusted: the next one who asks looks.
    pub fn forget(&self) {
        self.known().heard = None;
    }

    /// What was found at most so long ago, else what `look` finds now. Those who ask meanwhile share its answer, and its
    /// failure.
    pub async fn get(
        &self,
        lane: Lane,
        age: Duration,
        look: impl AsyncFnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let asked = self.tick();
        let _flight = self.shared.flights[lane as usize].lock().await;
        if let Some(found) = self.within(age) {
            return Ok(found);
        }
        if let Some((_, error)) = self.known().failed.as_ref().filter(|(failed, _)| *failed > asked) {
            return Err(error.clone());
        }
        let found = look().await;
        match &found {
            Ok(found) => self.note(found.clone()),
            Err(error) => self.known().failed = Some((self.tick(), error.clone())),
        }
        found
    }

    fn tick(&self) -> u64 {
        self.shared.ticks.fetch_add(1, Ordering::Relaxed)
    }

    fn known(&self) -> MutexGuard<'_, LastLook<T>> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;

    use super::*;
    use crate::call::error::Effect;

    const KEPT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn sixty_who_ask_at_once_share_one_look_and_the_next_one_comes_when_it_is_old() {
        let (looked, looks) = (SharedLook::default(), Cell::new(0));
        let ask = || {
            looked.get(Lane::Change, KEPT, async || {
                looks.set(looks.get() + 1);
                tokio::time::sleep(Duration::from_millis(150)).await;
                Ok(looks.get())
            })
        };

        assert!(join_all((0..60).map(|_| ask())).await.iter().all(|found| *found == Ok(1)));
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(ask().await, Ok(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(ask().await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_shared_by_those_who_waited_for_it_and_by_nobody_else() {
        let (looked, looks) = (SharedLook::<()>::default(), Cell::new(0));
        let ask = || {
            looked.get(Lane::Change, KEPT, async || {
                looks.set(looks.get() + 1);
                tokio::time::sleep(Duration::from_millis(150)).await;
                Err(ApiError::transient("503", Effect::None))
            })
        };

        assert!(join_all((0..60).map(|_| ask())).await.iter().all(Result::is_err));
        assert_eq!(looks.get(), 1);
        assert!(ask().await.is_err());
        assert_eq!(looks.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_in_a_hurry_does_not_wait_for_a_patient_look() {
        let looked = SharedLook::default();
        let patient = looked.get(Lane::Drift, KEPT, std::future::pending::<Result<u8, ApiError>>);
        let hurried = looked.get(Lane::Change, KEPT, async || Ok(7));

        let found = tokio::select! {
            biased;
            _ = async { tokio::join!(patient) } => None,
            found = hurried => found.ok(),
        };

        assert_eq!(found, Some(7));
    }
}
