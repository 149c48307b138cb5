//! The line of all who write one thing in this process: one write is on its way at a time, and everybody who knows the thing
//! hears of it. Nobody waits in line for a budget or after a failure.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::pace::Pace;

/// A line. `Last` is what the writer before left for the next one, `F` somebody with a snapshot of their own.
pub struct Line<Last, F: ?Sized> {
    turn: tokio::sync::Mutex<Last>,
    followers: Mutex<Vec<Weak<F>>>,
    pace: Mutex<Pace>,
}

impl<Last: Default, F: ?Sized> Default for Line<Last, F> {
    fn default() -> Self {
        Self { turn: tokio::sync::Mutex::default(), followers: Mutex::default(), pace: Mutex::default() }
    }
}

impl<Last, F: ?Sized> Line<Last, F> {
    /// Waits until no other write is on its way. Others wait for as long as this is held.
    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, Last> {
        self.turn.lock().await
    }

    /// How far apart writes are.
    pub fn pace(&self) -> &Mutex<Pace> {
        &self.pace
    }

    /// Somebody follows the writes of others, for as long as they are there.
    pub fn follow(&self, follower: Weak<F>) {
        let mut followers = self.followers();
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(follower);
    }

    /// Everybody who follows but the one who writes.
    pub fn others<W: ?Sized>(&self, writer: *const W) -> Vec<Arc<F>> {
        let others = |follower: &&Weak<F>| !std::ptr::addr_eq(follower.as_ptr(), writer);
        self.followers().iter().filter(others).filter_map(Weak::upgrade).collect()
    }

    fn followers(&self) -> MutexGuard<'_, Vec<Weak<F>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Last, F: ?Sized> fmt::Debug for Line<Last, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("followers", &self.followers().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_are_those_who_are_still_there_but_not_the_writer() {
        let line = Line::<(), str>::default();
        let [one, two, gone] = ["one", "two", "gone"].map(Arc::<str>::from);
        for name in [&one, &two, &gone] {
            line.follow(Arc::downgrade(name));
        }
        drop(gone);

        let others = line.others(Arc::as_ptr(&one));

        assert_eq!(others, [two]);
    }

    #[tokio::test]
    async fn a_writer_finds_what_the_one_before_left() {
        let line = Line::<u32, ()>::default();
        *line.turn().await = 7;

        assert_eq!(*line.turn().await, 7);
    }
}
