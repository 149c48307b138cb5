//! Who may ask a server now, and who waits: a limit for each, so that a server that hangs gathers no crowd.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::TransportFault;

/// The turns at one server.
#[derive(Debug)]
pub(super) struct Turns {
    under_way: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
}

/// Leaves the crowd, whether the turn came or not.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turns {
    pub(super) fn new(under_way: usize, most_waiting: usize) -> Self {
        Self { under_way: Arc::new(Semaphore::new(under_way.max(1))), waiting: AtomicUsize::new(0), most_waiting }
    }

    /// Waits for a turn, in the order of those who ask; it is over when what is returned is dropped.
    pub(super) async fn take(&self) -> Result<OwnedSemaphorePermit, TransportFault> {
        if let Ok(turn) = Arc::clone(&self.under_way).try_acquire_owned() {
            return Ok(turn);
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.most_waiting {
            return Err(TransportFault::Busy);
        }
        Arc::clone(&self.under_way).acquire_owned().await.map_err(|_| TransportFault::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_than_may_wait_are_refused_and_who_gives_up_leaves_its_place() {
        let turns = Turns::new(1, 1);
        let first = turns.take().await.unwrap();
        {
            let mut second = std::pin::pin!(turns.take());
            assert!(futures::poll!(second.as_mut()).is_pending());
            assert_eq!(turns.take().await.unwrap_err(), TransportFault::Busy);
        }
        let mut third = std::pin::pin!(turns.take());
        assert!(futures::poll!(third.as_mut()).is_pending());

        drop(first);

        assert!(third.await.is_ok());
    }
}
