//! The governor's asynchronous front: requests wait here for their turn, lanes first, then in order of arrival.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::budget::governor::{Budget, Decision, Governor, Lane, Limit};
use crate::budget::rotation::DriftShare;
use crate::call::headers::BudgetHeaders;
use crate::call::retry::LONGEST_SILENCE;

/// One credential's queue.
#[derive(Debug)]
pub(crate) struct Limiter {
    start: Instant,
    state: Mutex<LimiterState>,
}

#[derive(Debug)]
struct LimiterState {
    governor: Governor,
    waiting: BTreeMap<(Lane, u64), Arc<Notify>>,
    next: u64,
}

enum Admission {
    Granted,
    Until(Instant),
    Behind,
    /// The API wants to hear nothing for so long.
    Blocked(Duration),
}

impl Limiter {
    pub(crate) fn new(limit: Limit) -> Arc<Self> {
        let state = LimiterState { governor: Governor::new(limit), waiting: BTreeMap::new(), next: 0 };
        Arc::new(Self { start: Instant::now(), state: Mutex::new(state) })
    }

    /// Waits for a turn. Dropping the future gives the place up. A pause that the API asked for and that is too long to be waited
    /// for in silence is an error.
    pub(crate) async fn permit(self: &Arc<Self>, lane: Lane) -> Result<Permit, Duration> {
        portolan_core::waypoint!();
        let place = QueuePlace::take(self, lane);
        loop {
            match self.step(&place) {
                Admission::Granted => return Ok(Permit { limiter: self.clone(), lane, open: true }),
                Admission::Blocked(pause) => return Err(pause),
                Admission::Behind => place.woken.notified().await,
                Admission::Until(time) => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep_until(time) => {}
                        () = place.woken.notified() => {}
                    }
                }
            }
        }
    }

    pub(crate) fn budget(&self) -> Budget {
        let now = self.now();
        self.state().governor.budget(now)
    }

    /// How long the API wants to hear nothing.
    pub(crate) fn blocked_for(&self) -> Duration {
        self.state().governor.blocked_for(self.now())
    }

    pub(crate) fn drift_share(&self) -> DriftShare {
        let now = self.now();
        self.state().governor.drift_share(now)
    }

    fn step(&self, place: &QueuePlace) -> Admission {
        let now = self.now();
        let mut state = self.state();
        let pause = state.governor.blocked_for(now);
        if pause > LONGEST_SILENCE {
            return Admission::Blocked(pause);
        }
        if state.waiting.first_key_value().is_some_and(|(first, _)| *first != place.key) {
            return Admission::Behind;
        }
        match state.governor.decide(now, place.key.0) {
            Decision::Wait(until) => Admission::Until(self.start + until),
            Decision::Go => {
                state.governor.granted(now, place.key.0);
                Admission::Granted
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Governor, Duration)) {
        let now = self.now();
        let mut state = self.state();
        change(&mut state.governor, now);
        state.wake_first();
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimiterState {
    fn wake_first(&self) {
        if let Some((_, woken)) = self.waiting.first_key_value() {
            woken.notify_one();
        }
    }
}

/// A place in the queue; leaving it lets the next one step forward.
struct QueuePlace {
    limiter: Arc<Limiter>,
    key: (Lane, u64),
    woken: Arc<Notify>,
}

impl QueuePlace {
    fn take(limiter: &Arc<Limiter>, lane: Lane) -> Self {
        let woken = Arc::new(Notify::new());
        let mut state = limiter.state();
        let key = (lane, state.next);
        state.next += 1;
        state.waiting.insert(key, woken.clone());
        Self { limiter: limiter.clone(), key, woken }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        state.waiting.remove(&self.key);
        state.wake_first();
    }
}

/// A granted request. Dropped without an answer, it counts as lost.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<Limiter>,
    lane: Lane,
    open: bool,
}

impl Permit {
    /// The answer came.
    pub(crate) fn answered(mut self, told: &BudgetHeaders, refused: bool) {
        self.open = false;
        self.limiter.change(|governor, now| governor.answered(now, told, refused));
    }

    /// Nothing was sent.
    pub(crate) fn unused(mut self) {
        self.open = false;
        self.limiter.change(|governor, _| governor.returned(self.lane));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.open {
            self.limiter.change(|governor, _| governor.lost());
        }
    }
}
