//! Sources that wait for a write → the most urgent lane of them, and as many as one write carries.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::linger::{Linger, PendingWrite};
use crate::parts::still_allowed;

/// One caller's changes, which are written together or not at all.
pub trait Source: Sized {
    /// How urgent it is; what is less is more urgent.
    type Lane: Copy + Ord;

    /// How urgent this one is.
    fn lane(&self) -> Self::Lane;

    /// Whether it waits for the pace of writes.
    fn is_paced(&self) -> bool;

    /// Whether somebody waits for it who may still write.
    fn may_go(&self) -> bool;

    /// Tells whoever waits that it may not be written any more.
    fn lapse(self);

    /// How much of a write's room it takes.
    fn size(&self) -> usize {
        1
    }

    /// What it touches. Sources that touch the same thing do not go in one write.
    fn touches(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The sources that wait.
#[derive(Debug)]
pub struct Queue<S> {
    waiting: Mutex<VecDeque<S>>,
    linger: Arc<Linger>,
}

impl<S> Default for Queue<S> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), linger: Arc::default() }
    }
}

impl<S: Source> Queue<S> {
    /// Puts a source at the end.
    pub fn push(&self, source: S) {
        self.waiting().push_back(source);
        self.linger.arrived();
    }

    /// Puts a source at the end, or lets it `join` the first one that is `like` it.
    pub fn push_or_join(&self, source: S, like: impl Fn(&S) -> bool, join: impl FnOnce(&mut S, S)) {
        let mut waiting = self.waiting();
        match waiting.iter_mut().find(|older| like(older)) {
            Some(older) => join(older, source),
            None => waiting.push_back(source),
        }
        drop(waiting);
        self.linger.arrived();
    }

    /// Says that a source is likely to come soon.
    pub fn expect<T>(&self) -> PendingWrite<T> {
        self.linger.expect()
    }

    /// Sources that wait.
    pub fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// Looks at those who wait and may still write.
    pub fn look<R>(&self, look: impl FnOnce(&VecDeque<S>) -> R) -> R {
        look(&self.allowed())
    }

    /// Waits until somebody is there who may write, and tells how urgent it is.
    pub async fn somebody(&self) -> S::Lane {
        self.more_urgent(None).await
    }

    /// Waits for a turn in `lane`, and in a more urgent one as soon as somebody needs it: in a patient lane alone, somebody in
    /// a hurry would wait behind a slow turn.
    pub async fn turn<P, F: Future<Output = P>>(&self, mut lane: S::Lane, turn: impl Fn(S::Lane) -> F) -> (S::Lane, P) {
        loop {
            tokio::select! {
                biased;
                granted = turn(lane) => return (lane, granted),
                urgent = self.more_urgent(Some(lane)) => lane = urgent,
            }
        }
    }

    /// Takes all, as they came.
    pub fn take_all(&self) -> Vec<S> {
        self.waiting().drain(..).collect()
    }

    /// Takes as many as fit, urgent ones first. A source that touches what another one in the write touches stays, and so do
    /// those behind it that touch the same. The first one goes even where it does not fit.
    pub fn take(&self, room: usize) -> Vec<S> {
        let mut waiting = self.allowed();
        waiting.make_contiguous().sort_by_key(Source::lane);
        let (mut taken, mut left, mut size) = (Vec::new(), VecDeque::new(), 0);
        let mut touched: HashSet<String> = HashSet::new();
        for source in waiting.drain(..) {
            let fits = taken.is_empty() || size + source.size() <= room;
            let touches = source.touches();
            let free = touches.iter().all(|thing| !touched.contains(thing));
            touched.extend(touches);
            if fits && free {
                size += source.size();
                taken.push(source);
            } else {
                left.push_back(source);
            }
        }
        *waiting = left;
        taken
    }

    /// Whether a write is full; never where its room is not known.
    pub(crate) fn fills(&self, room: Option<usize>) -> bool {
        room.is_some_and(|room| self.waiting().iter().map(Source::size).sum::<usize>() >= room)
    }

    /// Whether somebody waits, and everybody for the pace too.
    pub(crate) fn is_paced(&self) -> bool {
        self.look(|waiting| !waiting.is_empty() && waiting.iter().all(Source::is_paced))
    }

    /// Waits for the next arrival.
    pub(crate) async fn arrival(&self) {
        self.linger.next().await;
    }

    /// Waits for those who said that they are about to write, until a write is full or they take too long.
    pub(crate) async fn gathered(&self, patience: Duration, room: Option<usize>) {
        waypoint!();
        self.linger.complete(patience, || self.fills(room)).await;
    }

    /// Waits until something more urgent than `than` is there.
    async fn more_urgent(&self, than: Option<S::Lane>) -> S::Lane {
        loop {
            match self.look(|waiting| waiting.iter().map(Source::lane).min()) {
                Some(lane) if than.is_none_or(|than| lane < than) => return lane,
                _ => self.arrival().await,
            }
        }
    }

    /// Those who wait, without those who may not write any more, who are told so.
    fn allowed(&self) -> MutexGuard<'_, VecDeque<S>> {
        let mut waiting = self.waiting();
        *waiting = still_allowed(waiting.drain(..).collect()).into();
        waiting
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<S>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Edit, Lane, named, names};

    #[test]
    fn as_many_as_fit_are_taken_urgent_ones_first() {
        let queue = Queue::default();
        for (name, lane) in [("a", Lane::Drift), ("b", Lane::Change), ("c", Lane::Protect)] {
            queue.push(named(name).in_lane(lane));
        }

        assert_eq!(names(&queue.take(2)), ["c", "b"]);
        assert_eq!(names(&queue.take(2)), ["a"]);
    }

    #[test]
    fn a_source_that_is_larger_than_a_write_goes_alone() {
        let queue = Queue::default();
        queue.push(named("large").of_size(9));
        queue.push(named("small"));

        assert_eq!(names(&queue.take(4)), ["large"]);
        assert_eq!(names(&queue.take(4)), ["small"]);
    }

    #[test]
    fn sources_that_touch_the_same_go_one_after_the_other() {
        let queue = Queue::default();
        for (name, touches) in [("a", "1"), ("b", "1"), ("c", "1"), ("d", "2")] {
            queue.push(named(name).touching(touches));
        }

        assert_eq!(names(&queue.take(9)), ["a", "d"]);
        assert_eq!(names(&queue.take(9)), ["b"]);
    }

    #[test]
    fn who_may_not_write_any_more_is_told_so_and_not_taken() {
        let (queue, late) = (Queue::default(), named("late"));
        let fate = late.fate();
        late.forbid();
        queue.push(late);
        queue.push(named("good"));

        assert_eq!(names(&queue.take(9)), ["good"]);
        assert_eq!(fate.told().as_deref(), Some("lapsed"));
    }

    #[test]
    fn a_source_may_take_the_place_of_an_older_one() {
        let queue = Queue::default();
        for name in ["a", "b"] {
            queue.push(named(name));
        }

        queue.push_or_join(named("a").of_size(7), |older| older.name == "a", |older, newer| *older = newer);
        queue.push_or_join(named("c"), |older| older.name == "c", |older, newer| *older = newer);

        let taken: Vec<Edit> = queue.take_all();
        assert_eq!(names(&taken), ["a", "b", "c"]);
        assert_eq!(taken[0].size(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_asked_for_anew_when_somebody_in_a_hurry_comes() {
        let queue = Queue::default();
        queue.push(named("patient").in_lane(Lane::Drift));
        let lane = queue.somebody().await;
        let granted = |lane: Lane| async move {
            if lane == Lane::Drift {
                std::future::pending::<()>().await;
            }
        };

        let hurry = async {
            tokio::task::yield_now().await;
            queue.push(named("urgent").in_lane(Lane::Protect));
        };
        let ((lane, ()), ()) = tokio::join!(queue.turn(lane, granted), hurry);

        assert_eq!(lane, Lane::Protect);
    }
}
