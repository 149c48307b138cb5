//! Which object runs next: keys with a time, each at most once in line and at most once at work.
//!
//! A key that is pushed while it is at work waits until that ends. Of two times for a key the earlier counts.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_core::ObjectKey;
use tokio::time::Instant;

/// Where a key stands in line: its time, then first come first served.
type QueuePosition = (Instant, u64);

/// The queue of one controller. Pure: `now` is an argument.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    line: BTreeMap<QueuePosition, ObjectKey>,
    keys: BTreeMap<ObjectKey, KeyState>,
    pushed: u64,
    running: usize,
}

#[derive(Clone, Copy, Debug)]
enum KeyState {
    InLine(QueuePosition),
    Running { again: Option<Instant> },
}

impl Queue {
    /// Lets a key run at a time, or earlier where it is in line already.
    pub(crate) fn push(&mut self, key: &ObjectKey, at: Instant) {
        portolan_core::waypoint!();
        match self.keys.get_mut(key) {
            None => self.line_up(key.clone(), at),
            Some(KeyState::Running { again }) => *again = Some(again.map_or(at, |earlier| earlier.min(at))),
            Some(KeyState::InLine(place)) if place.0 <= at => {}
            Some(KeyState::InLine(place)) => {
                self.line.remove(place);
                self.line_up(key.clone(), at);
            }
        }
    }

    fn line_up(&mut self, key: ObjectKey, at: Instant) {
        let place = (at, self.pushed);
        self.pushed += 1;
        self.line.insert(place, key.clone());
        self.keys.insert(key, KeyState::InLine(place));
    }

    /// The next key whose time has come; it is at work until [`finish`](Self::finish).
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(ObjectKey, Duration)> {
        let first = self.line.first_entry().filter(|entry| entry.key().0 <= now)?;
        let waited = now - first.key().0;
        let key = first.remove();
        self.keys.insert(key.clone(), KeyState::Running { again: None });
        self.running += 1;
        Some((key, waited))
    }

    /// A key's work ended; it runs again at `next`, or earlier where it was pushed meanwhile.
    pub(crate) fn finish(&mut self, key: &ObjectKey, next: Option<Instant>) {
        let Some(KeyState::Running { again }) = self.keys.get(key).copied() else { return };
        self.keys.remove(key);
        self.running -= 1;
        if let Some(at) = [again, next].into_iter().flatten().min() {
            self.line_up(key.clone(), at);
        }
    }

    /// Takes a key out of line; its work, where it is at work, ends in peace and is not repeated.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        match self.keys.get_mut(key) {
            Some(KeyState::InLine(place)) => {
                self.line.remove(place);
                self.keys.remove(key);
            }
            Some(KeyState::Running { again }) => *again = None,
            None => {}
        }
    }

    /// Whether a key is at work.
    pub(crate) fn is_running(&self, key: &ObjectKey) -> bool {
        matches!(self.keys.get(key), Some(KeyState::Running { .. }))
    }

    /// When the next key's time comes.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.line.first_key_value().map(|(place, _)| place.0)
    }

    /// How many keys are at work.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// How many keys wait though their time has come.
    pub(crate) fn ready(&self, now: Instant) -> usize {
        self.line.range(..=(now, u64::MAX)).count()
    }

    /// How many keys are in line, those whose time has not come among them.
    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }

    /// How long the first in line has waited beyond its time.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        self.next().map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }

    /// How many keys are at work, wait because their time has come, or will run again right after their work.
    pub(crate) fn busy(&self, now: Instant) -> usize {
        self.running + self.ready(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: None, name: name.to_owned() }
    }

    fn names(queue: &mut Queue, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| queue.pop(now)).map(|(key, _)| key.name).collect()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn keys_run_in_order_of_time_then_of_arrival() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(&key("late"), now + SECOND);
        queue.push(&key("b"), now);
        queue.push(&key("a"), now);

        assert_eq!(names(&mut queue, now), ["b", "a"]);
        assert_eq!(queue.next(), Some(now + SECOND));
        assert_eq!(names(&mut queue, now + SECOND), ["late"]);
    }

    #[test]
    fn a_key_stands_in_line_once_at_its_earliest_time() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(&key("a"), now + SECOND);
        queue.push(&key("a"), now);
        queue.push(&key("a"), now + 2 * SECOND);

        assert_eq!(queue.ready(now), 1);
        assert_eq!(names(&mut queue, now + 5 * SECOND), ["a"]);
    }

    #[test]
    fn a_key_at_work_does_not_run_twice_at_once() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(&key("a"), now);
        queue.pop(now);
        queue.push(&key("a"), now);

        assert_eq!(queue.pop(now), None);
        assert_eq!(queue.busy(now), 1);

        queue.finish(&key("a"), Some(now + SECOND));
        assert_eq!(names(&mut queue, now), ["a"]);
    }

    #[test]
    fn a_finished_key_runs_again_only_when_asked() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(&key("a"), now);
        queue.pop(now);
        queue.finish(&key("a"), None);

        assert_eq!(queue.next(), None);
        assert_eq!(queue.busy(now), 0);
        queue.finish(&key("a"), Some(now));
        assert_eq!(queue.busy(now), 0, "a key that is not at work cannot finish");
    }

    #[test]
    fn forgotten_keys_leave_the_line_and_are_not_repeated() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(&key("waiting"), now);
        queue.push(&key("working"), now);
        queue.forget(&key("waiting"));
        assert_eq!(names(&mut queue, now), ["working"]);

        queue.push(&key("working"), now);
        queue.forget(&key("working"));
        queue.finish(&key("working"), None);

        assert_eq!(names(&mut queue, now), Vec::<String>::new());
    }

    #[test]
    fn the_age_is_how_long_the_first_has_waited_beyond_its_time() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        assert_eq!(queue.age(now), Duration::ZERO);
        queue.push(&key("a"), now);

        assert_eq!(queue.age(now + 3 * SECOND), 3 * SECOND);
        assert_eq!(queue.pop(now + 3 * SECOND).map(|(_, waited)| waited), Some(3 * SECOND));
    }
}
