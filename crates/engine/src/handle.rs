//! The outside of a controller: what it knows, and how to make it run.

use std::sync::{Arc, Mutex, MutexGuard};

use portolan_core::ObjectKey;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::queue::Queue;
use crate::store::{Projected, Store};

/// A controller as others see it. Clones share it; it works before the controller runs and after it ended.
pub struct Handle<P> {
    shared: Arc<Shared<P>>,
}

struct Shared<P> {
    state: Mutex<State<P>>,
    wake: Notify,
}

/// What a controller knows and plans.
pub(crate) struct State<P> {
    pub(crate) store: Store<P>,
    pub(crate) queue: Queue,
    /// Whether the first list is complete.
    pub(crate) listed: bool,
    /// Whether the controller runs.
    pub(crate) running: bool,
}

impl<P> Clone for Handle<P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<P> Default for Handle<P> {
    fn default() -> Self {
        let state = State { store: Store::default(), queue: Queue::default(), listed: false, running: false };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), wake: Notify::new() }) }
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
        let mut state = self.lock();
        for key in keys {
            state.queue.push(key, now);
        }
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Lets an object run after a while, unless it runs sooner anyway.
    pub fn enqueue_after(&self, key: &ObjectKey, wait: std::time::Duration) {
        self.lock().queue.push(key, Instant::now() + wait);
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

    /// Reads what is known of the objects. The closure must not use the handle.
    pub fn read<T>(&self, look: impl FnOnce(&Store<P>) -> T) -> T {
        look(&self.lock().store)
    }

    /// What is known of one object.
    pub fn get(&self, key: &ObjectKey) -> Option<Projected<P>>
    where
        P: Clone,
    {
        self.read(|store| store.get(key).cloned())
    }

    /// How many objects are at work or wait though their time has come; a controller that has not listed its objects
    /// yet counts as one. 0 means that nothing happens before something changes or a time comes.
    pub fn busy(&self) -> usize {
        let state = self.lock();
        state.queue.busy(Instant::now()) + usize::from(state.running && !state.listed)
    }

    /// Whether the first list is complete.
    pub fn is_listed(&self) -> bool {
        self.lock().listed
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.shared.state.lock().expect("nothing panics while it is held")
    }

    pub(crate) async fn woken(&self) {
        self.shared.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(projection: u8) -> Projected<u8> {
        Projected {
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
            handle.lock().store.put(ObjectKey::cluster(name), known(projection));
        }

        let count = handle.enqueue_where(|_, projection| *projection == 1);

        assert_eq!((count, handle.busy()), (2, 2));
        handle.woken().await;
    }

    #[tokio::test]
    async fn what_waits_for_its_time_is_not_busy() {
        let handle = Handle::<u8>::new();
        handle.enqueue_after(&ObjectKey::cluster("a"), std::time::Duration::from_secs(30));

        assert_eq!(handle.busy(), 0);
    }
}
