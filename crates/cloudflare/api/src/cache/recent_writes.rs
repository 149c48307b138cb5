//! What was written lately: a listing may not show it yet. Pure.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// How long listings may lag behind our own writes. The API promises no time.
const LAG: Duration = Duration::from_secs(30);

/// Ids that were written within the last while, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct RecentWrites(VecDeque<(Instant, String, LateWrite)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LateWrite {
    Stored,
    Removed,
}

impl RecentWrites {
    pub(crate) fn stored(&mut self, id: &str, now: Instant) {
        self.push(id, LateWrite::Stored, now);
    }

    pub(crate) fn removed(&mut self, id: &str, now: Instant) {
        self.push(id, LateWrite::Removed, now);
    }

    fn push(&mut self, id: &str, fate: LateWrite, now: Instant) {
        while self.0.front().is_some_and(|(at, ..)| *at + LAG < now) {
            self.0.pop_front();
        }
        self.0.push_back((now, id.to_owned(), fate));
    }

    /// What is there by our own writes, as a listing that began then may not know. The last written first.
    pub(crate) fn present(&self, began: Instant) -> Vec<&str> {
        self.last(began, LateWrite::Stored)
    }

    /// The same for what is gone. An id does not come back.
    pub(crate) fn gone(&self, began: Instant) -> Vec<&str> {
        self.last(began, LateWrite::Removed)
    }

    fn last(&self, began: Instant, fate: LateWrite) -> Vec<&str> {
        let mut seen = HashSet::new();
        let recent = self.0.iter().rev().take_while(|(at, ..)| *at + LAG >= began);
        recent
            .filter(|(_, id, _)| seen.insert(id))
            .filter(|(.., is)| *is == fate)
            .map(|(_, id, _)| id.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_write_of_an_id_counts_and_only_for_a_while() {
        let (mut recent, began) = (RecentWrites::default(), Instant::now());
        recent.stored("a", began);
        recent.stored("b", began);
        recent.removed("a", began);
        let later = began + LAG;
        recent.stored("c", later);

        assert_eq!((recent.present(later), recent.gone(later)), (vec!["c", "b"], vec!["a"]));
        let last = later + Duration::from_secs(1);
        assert_eq!((recent.present(last), recent.gone(last)), (vec!["c"], vec![]));
        recent.stored("d", last);
        assert_eq!(recent.0.len(), 2, "what is old is forgotten");
    }
}
