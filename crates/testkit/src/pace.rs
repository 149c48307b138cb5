//! How fast time goes in a world: as told under a paused clock, shortened under the wall's.

use std::time::Duration;

use portolan_cloudflare_api::RetryPolicy;
use portolan_engine::Timing;
use tokio::time::Instant;

use crate::world::Backend;

/// The pace of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldPace {
    /// By how much waits are divided.
    faster: u32,
    /// How long nothing must happen for the world to be at rest.
    quiet: Duration,
    /// How often to look.
    tick: Duration,
    /// Shortest limit of a wait, since real servers take real time.
    patience: Duration,
    /// Limit of what a watch brings; what only time would bring takes longer.
    by_watch: Duration,
}

impl WorldPace {
    /// Under a paused clock.
    const PAUSED: Self = Self {
        faster: 1,
        quiet: Duration::from_millis(1500),
        tick: Duration::from_millis(50),
        patience: Duration::ZERO,
        by_watch: Duration::from_secs(20),
    };
    /// On the wall's clock. A watch takes milliseconds; a busy machine may make seconds of them.
    const WALLS: Self = Self {
        faster: 100,
        quiet: Duration::from_millis(250),
        tick: Duration::from_millis(20),
        patience: Duration::from_secs(300),
        by_watch: Duration::from_secs(20),
    };

    pub(crate) fn of(backend: &Backend) -> Self {
        match backend {
            Backend::Embedded => Self::PAUSED,
            Backend::Real(_) => Self::WALLS,
        }
    }

    /// Whether it is the wall's clock that goes, where no two runs are alike to the step.
    pub(crate) fn is_walls(&self) -> bool {
        !self.patience.is_zero()
    }

    /// A duration as this world has it.
    pub fn scaled(&self, time: Duration) -> Duration {
        time / self.faster
    }

    /// The engine's waits in this world.
    pub(crate) fn timing(&self) -> Timing {
        let usual = Timing::default();
        Timing {
            transient: self.scaled(usual.transient),
            transient_most: self.scaled(usual.transient_most),
            // Whatever waits or was refused is tried again after more time than a watch may take.
            waiting: self.scaled(usual.waiting).max(self.by_watch * 3 / 2),
            denied: self.scaled(usual.denied).max(self.by_watch * 3 / 2),
            ..usual
        }
    }

    /// The client's waits in this world.
    pub(crate) fn retry(&self) -> RetryPolicy {
        let usual = RetryPolicy::default();
        RetryPolicy { first: self.scaled(usual.first), most: self.scaled(usual.most), ..usual }
    }

    pub(crate) fn stopwatch(&self, limit: Duration) -> Stopwatch {
        self.stopwatch_of(self.scaled(limit).max(self.patience))
    }

    /// Ends before time alone brings what a watch should.
    pub(crate) fn by_watch(&self) -> Stopwatch {
        self.stopwatch_of(self.by_watch)
    }

    fn stopwatch_of(&self, limit: Duration) -> Stopwatch {
        let now = Instant::now();
        Stopwatch { pace: *self, end: now + limit, since: now, pause: self.tick }
    }
}

/// Looks at the time while waiting.
pub(crate) struct Stopwatch {
    pace: WorldPace,
    end: Instant,
    since: Instant,
    pause: Duration,
}

impl Stopwatch {
    /// Waits a little. Under a paused clock this returns when everything else waits too.
    pub(crate) async fn tick(&self) {
        tokio::time::sleep(self.pace.tick).await;
    }

    /// Waits a little longer each time, for looks that cost something.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(self.pace.tick * 40);
    }

    pub(crate) fn disturbed(&mut self) {
        self.since = Instant::now();
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.since.elapsed() >= self.pace.quiet
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_watch_should_bring_is_not_waited_for_until_time_brings_it() {
        for pace in [WorldPace::PAUSED, WorldPace::WALLS] {
            let timing = pace.timing();

            assert!(pace.by_watch < timing.waiting && pace.by_watch < timing.denied, "{pace:?}");
        }
    }
}
