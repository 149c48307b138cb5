//! The outside of a controller: what it knows, and how to make it run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use portolan_core::ObjectKey;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::dispatch::queue::Queue;
use crate::dispatch::store::{Projected, Store};

/// A controller as others see it. Clones share it; it works before the controller runs and after it ended.
pub struct Handle<P> {
    shared: Arc<HandleInner<P>>,
}

struct HandleInner<P> {
    /// Read again and again, also by who reads it already: foreign code looks at it under the lock.
    store: RwLock<Store<P>>,
    /// Never held while foreign code runs.
    queue: Mutex<Queue>,
    wake: Notify,
    /// Whether the first list is complete.
    listed: watch::Sender<bool>,
    /// Whether the controller runs.
    running: AtomicBool,
}

impl<P> Clone for Handle<P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<P> Default for Handle<P> {
    fn default() -> Self {
        let shared = HandleInner {
            store: RwLock::new(Store::default()),
            queue: Mutex::new(Queue::default()),
            wake: Notify::new(),
            listed: watch::channel(false).0,
            running: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl<P> Handle<P> {
    /// A handle to give to a controller that is still to be made.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets an object run now, or after its present pass.
    pub fn enqueue(&self, key: &ObjectKey) {
        self.enqueue_all([key]);
    }

    /// Lets objects run now.
    pub fn enqueue_all<'a>(&self, keys: impl IntoIterator<Item = &'a ObjectKey>) {
        let now = Instant::now();
        let mut queue = self.queue();
        for key in keys {
            queue.push(key, now);
        }
        drop(queue);
        self.shared.wake.notify_one();
    }

    /// Lets an object run after a while, unless it runs sooner anyway.
    pub fn enqueue_after(&self, key: &ObjectKey, wait: Duration) {
        self.queue().push(key, Instant::now() + wait);
        self.shared.wake.notify_one();
    }

    /// Lets all objects run whose projection asks for it; answers how many.
    pub fn enqueue_where(&self, asks: impl Fn(&ObjectKey, &P) -> bool) -> usize {
        self.enqueue_mapped(|store| {
            store.projections().filter(|(key, projection)| asks(key, projection)).map(|(key, _)| key.clone()).collect()
        })
    }

    /// Lets the objects run that a look at the store names; answers how many.
    pub(crate) fn enqueue_mapped(&self, map: impl FnOnce(&Store<P>) -> Vec<ObjectKey>) -> usize {
        let keys = self.read(map);
        self.enqueue_all(&keys);
        keys.len()
    }

    /// Reads what is known of the objects. The closure may use the handle, and should be quick.
    pub fn read<T>(&self, look: impl FnOnce(&Store<P>) -> T) -> T {
        look(&self.shared.store.read_recursive())
    }

    /// What is known of one object.
    pub fn get(&self, key: &ObjectKey) -> Option<Projected<P>>
    where
        P: Clone,
    {
        self.read(|store| store.get(key).cloned())
    }

    /// The copy of a key that is kept of an object.
    pub fn key(&self, key: &ObjectKey) -> Option<Arc<ObjectKey>> {
        self.read(|store| store.get(key).map(|one| Arc::clone(&one.key)))
    }

    /// How many objects are at work or wait though their time has come; a controller that has not listed its objects
    /// yet counts as one. 0 means that nothing happens before something changes or a time comes.
    pub fn busy(&self) -> usize {
        let unlisted = self.shared.running.load(Ordering::Relaxed) && !self.is_listed();
        self.queue().busy(Instant::now()) + usize::from(unlisted)
    }

    /// Whether the first list is complete.
    pub fn is_listed(&self) -> bool {
        *self.shared.listed.borrow()
    }

    /// Waits until the first list is complete.
    pub async fn listed(&self) {
        // The sender lives as long as the handle.
        let _ = self.shared.listed.subscribe().wait_for(|listed| *listed).await;
    }

    pub(crate) fn set_listed(&self) {
        self.shared.listed.send_replace(true);
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.shared.running.store(running, Ordering::Relaxed);
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock()
    }

    pub(crate) fn store(&self) -> RwLockWriteGuard<'_, Store<P>> {
        self.shared.store.write()
    }

    pub(crate) async fn woken(&self) {
        self.shared.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str, projection: u8) -> Projected<u8> {
        Projected {
            key: Arc::new(ObjectKey::cluster(name)),
            uid: "u".into(),
            generation: 1,
            created: None,
            deleting: false,
            ready: None,
            projection: Some(projection),
            version: 1,
            passed: 0,
        }
    }

    #[tokio::test]
    async fn objects_are_enqueued_by_what_is_known_of_them() {
        let handle = Handle::new();
        for (name, projection) in [("a", 1), ("b", 2), ("c", 1)] {
            handle.store().put(known(name, projection));
        }

        let count = handle.enqueue_where(|_, projection| *projection == 1);

        assert_eq!((count, handle.busy()), (2, 2));
        handle.woken().await;
    }

    #[tokio::test]
    async fn what_waits_for_its_time_is_not_busy() {
        let handle = Handle::<u8>::new();
        handle.enqueue_after(&ObjectKey::cluster("a"), Duration::from_secs(30));

        assert_eq!(handle.busy(), 0);
    }

    #[tokio::test]
    async fn who_looks_may_use_the_handle_even_while_a_writer_waits() {
        let handle = Handle::<u8>::new();
        handle.store().put(known("a", 1));
        let writer = handle.clone();
        let (started, is_started) = std::sync::mpsc::channel();

        handle
            .read(|_| {
                let writing = std::thread::spawn(move || {
                    started.send(()).unwrap();
                    writer.store().remove(&ObjectKey::cluster("a"));
                });
                is_started.recv().unwrap();
                // The writer waits for us by now, or will.
                for _ in 0..1000 {
                    std::thread::yield_now();
                    assert_eq!(handle.enqueue_where(|_, _| true), 1);
                }
                writing
            })
            .join()
            .unwrap();

        assert_eq!(handle.read(Store::len), 0);
    }
}
