//! What is written and how → a loop that writes it, with whatever gathered, until it is dropped.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::pace::Pace;
use crate::queue::{Queue, Source};

/// What one writer writes, such as a zone's records or a tunnel's configuration.
pub trait Target {
    /// What waits for it.
    type Source: Source;

    /// How long a write that is ready waits for others that are about to come.
    const PATIENCE: Duration;

    /// Those who wait.
    fn queue(&self) -> &Queue<Self::Source>;

    /// The pace of all who write the same; none where writes need none.
    fn pace(&self) -> Option<&Mutex<Pace>>;

    /// How much one write carries, where that is limited.
    fn room(&self) -> Option<usize>;

    /// One write: waits for a turn, takes what has gathered meanwhile, and tells every source what became of it. `lane` is
    /// that of the first who came. Answers when the write began; nothing where there was none.
    fn commit(&self, lane: <Self::Source as Source>::Lane) -> impl Future<Output = Option<Instant>> + Send;
}

/// Writes whatever comes, for ever. What is waited for comes before what is taken, so that waiting makes writes larger, not
/// queues longer.
pub async fn run<T: Target>(target: &T) {
    loop {
        let lane = target.queue().somebody().await;
        waypoint!();
        paced(target).await;
        target.queue().gathered(T::PATIENCE, target.room()).await;
        let began = target.commit(lane).await;
        if let (Some(began), Some(pace)) = (began, target.pace()) {
            locked(pace).wrote(began, Instant::now());
        }
    }
}

/// Waits until the next write may begin, or is full; who does not wait for the pace does not let others wait.
async fn paced<T: Target>(target: &T) {
    let Some(pace) = target.pace() else { return };
    loop {
        let next = locked(pace).next(Instant::now());
        let is_full = target.queue().fills(target.room());
        let Some(next) = next.filter(|_| !is_full && target.queue().is_paced()) else { return };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = target.queue().arrival() => {}
        }
    }
}

fn locked(pace: &Mutex<Pace>) -> MutexGuard<'_, Pace> {
    pace.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::{Edit, Lane, named};

    const LATENCY: Duration = Duration::from_millis(100);

    /// A target that writes down what it wrote together.
    #[derive(Default)]
    struct Diary {
        queue: Queue<Edit>,
        pace: Mutex<Pace>,
        written: Mutex<Vec<Vec<String>>>,
    }

    impl Target for Diary {
        type Source = Edit;

        const PATIENCE: Duration = Duration::from_secs(1);

        fn queue(&self) -> &Queue<Edit> {
            &self.queue
        }

        fn pace(&self) -> Option<&Mutex<Pace>> {
            Some(&self.pace)
        }

        fn room(&self) -> Option<usize> {
            Some(3)
        }

        async fn commit(&self, _: Lane) -> Option<Instant> {
            let (began, group) = (Instant::now(), self.queue.take(3));
            tokio::time::sleep(LATENCY).await;
            let names = group.iter().map(|edit| edit.name.clone()).collect();
            self.written.lock().unwrap().push(names);
            for edit in group {
                edit.tell("written");
            }
            Some(began)
        }
    }

    impl Diary {
        fn writes(&self) -> Vec<Vec<String>> {
            self.written.lock().unwrap().clone()
        }
    }

    async fn written_after(diary: &Diary, time: Duration) {
        let _ = tokio::time::timeout(time, run(diary)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_a_write_is_on_its_way_goes_with_the_next() {
        let diary = Arc::new(Diary::default());
        diary.queue.push(named("a"));
        let later = async {
            tokio::time::sleep(LATENCY / 2).await;
            diary.queue.push(named("b"));
            diary.queue.push(named("c"));
        };

        tokio::join!(written_after(&diary, LATENCY * 4), later);

        assert_eq!(diary.writes(), [vec!["a"], vec!["b", "c"]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_for_what_was_announced_but_not_for_ever() {
        let diary = Diary::default();
        let (announced, never) = (diary.queue.expect::<()>(), diary.queue.expect::<()>());
        diary.queue.push(named("a"));
        let later = async {
            tokio::time::sleep(LATENCY).await;
            diary.queue.push(named("b"));
            drop(announced);
        };

        tokio::join!(written_after(&diary, Diary::PATIENCE + LATENCY * 2), later);
        drop(never);

        assert_eq!(diary.writes(), [["a", "b"]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_write_does_not_wait_for_what_was_announced() {
        let diary = Diary::default();
        let _announced = diary.queue.expect::<()>();
        for name in ["a", "b", "c", "d"] {
            diary.queue.push(named(name));
        }

        written_after(&diary, LATENCY * 2).await;

        assert_eq!(diary.writes(), [["a", "b", "c"]]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hurries_does_not_wait_for_the_pace() {
        let diary = Diary::default();
        let now = Instant::now();
        diary.pace.lock().unwrap().wrote(now, now + Duration::from_millis(900));
        diary.queue.push(named("patient"));
        let later = async {
            tokio::time::sleep(LATENCY).await;
            diary.queue.push(named("urgent").in_lane(Lane::Protect));
        };

        tokio::join!(written_after(&diary, LATENCY * 3), later);

        assert_eq!(diary.writes(), [["urgent", "patient"]]);
    }
}
