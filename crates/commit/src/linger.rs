//! Who knows early that a write is to come says so; a writer that is ready waits for it a little.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// What arrived and what is announced, for one writer.
#[derive(Debug, Default)]
pub struct Linger {
    arrived: Notify,
    expected: AtomicUsize,
}

impl Linger {
    /// A write is likely to come soon.
    pub fn expect<T>(self: &Arc<Self>) -> PendingWrite<T> {
        self.expected.fetch_add(1, Ordering::Relaxed);
        PendingWrite { linger: Arc::clone(self), of: PhantomData }
    }

    /// Something is there for the writer.
    pub fn arrived(&self) {
        self.arrived.notify_one();
    }

    /// Waits for the next arrival, or for one since the last wait.
    pub async fn next(&self) {
        self.arrived.notified().await;
    }

    /// Waits for those who said that they are about to write, until there is `enough` or they take too long.
    pub async fn complete(&self, patience: Duration, enough: impl Fn() -> bool) {
        let patience = tokio::time::sleep(patience);
        tokio::pin!(patience);
        while self.expected.load(Ordering::Relaxed) > 0 && !enough() {
            tokio::select! {
                () = &mut patience => return,
                () = self.next() => {}
            }
        }
    }
}

/// A write that is about to come. Drop it when the write begins, or when it is not to come after all.
#[derive(Debug)]
pub struct PendingWrite<T = ()> {
    linger: Arc<Linger>,
    of: PhantomData<fn() -> T>,
}

impl<T> Drop for PendingWrite<T> {
    fn drop(&mut self) {
        self.linger.expected.fetch_sub(1, Ordering::Relaxed);
        self.linger.arrived();
    }
}
