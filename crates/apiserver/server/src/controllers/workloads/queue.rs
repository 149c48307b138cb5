//! Which objects are to be planned for, and when: each once, however often it was asked for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use portolan_workloads::ObjectName;
use tokio::time::Instant;

/// A controller's index and the name of an object of its collection.
pub(super) type QueueKey = (usize, ObjectName);

const FIRST_RETRY: Duration = Duration::from_millis(5);
const LAST_RETRY: Duration = Duration::from_secs(60);

pub(super) struct DueQueue {
    hold: Duration,
    due: HashMap<QueueKey, Instant>,
    /// The same by time; an entry whose time is no longer the one in `due` is stale.
    order: BinaryHeap<Reverse<(Instant, QueueKey)>>,
    planned: HashMap<QueueKey, Instant>,
    failures: HashMap<QueueKey, u32>,
}

impl DueQueue {
    /// Between two plans for one object there is at least `hold`.
    pub(super) fn new(hold: Duration) -> Self {
        Self { hold, due: HashMap::new(), order: BinaryHeap::new(), planned: HashMap::new(), failures: HashMap::new() }
    }

    /// Asks for a plan at a time; an earlier one that was asked for stands.
    pub(super) fn add(&mut self, key: QueueKey, at: Instant) {
        let at = self.planned.get(&key).map_or(at, |planned| at.max(*planned + self.hold));
        if self.due.get(&key).is_none_or(|due| at < *due) {
            self.due.insert(key.clone(), at);
            self.order.push(Reverse((at, key)));
        }
    }

    /// The next that is due.
    pub(super) fn pop(&mut self, now: Instant) -> Option<QueueKey> {
        self.drop_stale();
        let due = self.order.peek().is_some_and(|Reverse((at, _))| *at <= now);
        let Reverse((_, key)) = due.then(|| self.order.pop()).flatten()?;
        self.due.remove(&key);
        self.planned.insert(key.clone(), now);
        Some(key)
    }

    /// When the next one is due.
    pub(super) fn next_due(&mut self) -> Option<Instant> {
        self.drop_stale();
        self.order.peek().map(|Reverse((at, _))| *at)
    }

    fn drop_stale(&mut self) {
        while let Some(Reverse((at, key))) = self.order.peek()
            && self.due.get(key) != Some(at)
        {
            self.order.pop();
        }
    }

    /// Asks for another plan later: the more often in vain, the later.
    pub(super) fn retry(&mut self, key: &QueueKey, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_default();
        let wait = FIRST_RETRY.saturating_mul(1 << (*failures).min(20)).min(LAST_RETRY);
        *failures = failures.saturating_add(1);
        let wait = wait + jitter(key, *failures, wait / 4);
        self.add(key.clone(), now + wait);
    }

    pub(super) fn succeeded(&mut self, key: &QueueKey) {
        self.failures.remove(key);
    }

    /// Everything about an object that is gone.
    pub(super) fn forget(&mut self, key: &QueueKey) {
        self.failures.remove(key);
        self.planned.remove(key);
    }
}

/// A part of `most` that differs by object and attempt, and is the same in every run.
fn jitter(key: &QueueKey, attempt: u32, most: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (key, attempt).hash(&mut hasher);
    let part = u32::try_from(hasher.finish() % 1000).unwrap_or(0);
    most * part / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> QueueKey {
        (0, ObjectName { namespace: "n".to_owned(), name: name.to_owned() })
    }

    fn queue() -> DueQueue {
        DueQueue::new(Duration::from_millis(10))
    }

    #[test]
    fn a_burst_is_one_plan_now_and_one_after_the_hold() {
        let (mut queue, now) = (queue(), Instant::now());
        for _ in 0..1000 {
            queue.add(key("a"), now);
        }

        assert_eq!(queue.pop(now), Some(key("a")));
        assert_eq!(queue.pop(now), None);

        for _ in 0..1000 {
            queue.add(key("a"), now);
        }
        assert_eq!(queue.pop(now), None);
        assert_eq!(queue.next_due(), Some(now + Duration::from_millis(10)));
        assert_eq!(queue.pop(now + Duration::from_millis(10)), Some(key("a")));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn an_earlier_wish_replaces_a_later_one() {
        let (mut queue, now) = (queue(), Instant::now());

        queue.add(key("a"), now + Duration::from_secs(60));
        queue.add(key("a"), now + Duration::from_secs(1));
        queue.add(key("a"), now + Duration::from_secs(30));

        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(1)));
        assert_eq!(queue.pop(now + Duration::from_secs(1)), Some(key("a")));
        assert_eq!(queue.pop(now + Duration::from_secs(90)), None);
    }

    #[test]
    fn what_fails_again_waits_longer_up_to_a_limit() {
        let (mut queue, mut now) = (queue(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..30 {
            queue.retry(&key("a"), now);
            let due = queue.next_due().expect("a retry is due");
            waits.push(due - now);
            now = due;
            queue.pop(now);
        }

        assert!(waits[5] > waits[0] * 8, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LAST_RETRY * 5 / 4), "{waits:?}");
    }
}
