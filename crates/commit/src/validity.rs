//! Which of what is known of a thing is still good: a clock that counts requests, writes and doubts. Pure.
//!
//! Order is counted in ticks, not in time, so that two things at the same instant still have an order.

use std::time::Duration;

use tokio::time::Instant;

/// How old a snapshot may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Any age, as long as nothing shed doubt on it.
    Any,
    /// At most this old.
    Within(Duration),
    /// Listed after this was asked.
    AfterNow,
}

/// A moment in the order of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    tick: u64,
    at: Instant,
}

impl Moment {
    /// Whether it is later in the order of things.
    pub fn is_after(self, other: Self) -> bool {
        self.tick > other.tick
    }

    /// When it was.
    pub fn at(self) -> Instant {
        self.at
    }
}

/// The clock of one snapshot, with the last failure to make one.
#[derive(Clone, Debug)]
pub struct Validity<E> {
    tick: u64,
    doubted: u64,
    failed: Option<(u64, E)>,
}

impl<E> Default for Validity<E> {
    fn default() -> Self {
        Self { tick: 0, doubted: 0, failed: None }
    }
}

impl<E: Clone> Validity<E> {
    /// This moment, which comes after all others.
    pub fn now(&mut self) -> Moment {
        self.moment(Instant::now())
    }

    /// The same, by a clock that was read before.
    pub fn moment(&mut self, at: Instant) -> Moment {
        self.tick += 1;
        Moment { tick: self.tick, at }
    }

    /// What a caller who asked at `asked` has of a snapshot whose request began at `known`: it, or the failure of a request
    /// that they waited for; nothing where they have to ask themselves.
    pub fn answer(&self, known: Option<Moment>, freshness: Freshness, asked: Moment) -> Option<Result<(), E>> {
        if known.is_some_and(|known| self.is_good(known, freshness, asked)) {
            return Some(Ok(()));
        }
        let (tick, error) = self.failed.as_ref()?;
        (*tick > asked.tick).then(|| Err(error.clone()))
    }

    /// A request was answered.
    pub fn succeed(&mut self) {
        self.failed = None;
    }

    /// A request failed.
    pub fn fail(&mut self, error: E) {
        self.failed = Some((self.now().tick, error));
    }

    /// Something may have happened that no snapshot shows whose request began before.
    pub fn doubt(&mut self) {
        self.doubted = self.now().tick;
    }

    fn is_good(&self, known: Moment, freshness: Freshness, asked: Moment) -> bool {
        let is_fresh = match freshness {
            Freshness::Any => true,
            Freshness::Within(age) => known.at.elapsed() <= age,
            Freshness::AfterNow => known.is_after(asked),
        };
        is_fresh && known.tick > self.doubted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Validity<&'static str> {
        Validity::default()
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_is_good_for_as_long_as_is_asked() {
        let mut clock = clock();
        let known = clock.now();
        tokio::time::advance(Duration::from_secs(30)).await;
        let asked = clock.now();
        let is_good = |freshness| clock.answer(Some(known), freshness, asked).is_some();

        assert!(is_good(Freshness::Any) && is_good(Freshness::Within(Duration::from_secs(30))));
        assert!(!is_good(Freshness::Within(Duration::from_secs(29))) && !is_good(Freshness::AfterNow));
    }

    #[test]
    fn a_doubt_takes_what_began_before_it() {
        let mut clock = clock();
        let before = clock.now();
        clock.doubt();
        let after = clock.now();

        assert_eq!(clock.answer(Some(before), Freshness::Any, after), None);
        assert_eq!(clock.answer(Some(after), Freshness::Any, after), Some(Ok(())));
    }

    #[test]
    fn a_failure_is_shared_by_those_who_asked_before_it() {
        let mut clock = clock();
        let before = clock.now();
        clock.fail("no");
        let after = clock.now();

        assert_eq!(clock.answer(None, Freshness::Any, before), Some(Err("no")));
        assert_eq!(clock.answer(None, Freshness::Any, after), None);
        clock.succeed();
        assert_eq!(clock.answer(None, Freshness::Any, before), None);
    }
}
