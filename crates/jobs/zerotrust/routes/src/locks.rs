//! One pass at a time over a name, whoever makes it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_core::ObjectKey;
use tokio::sync::OwnedMutexGuard;

/// A lock for every name that somebody works on.
#[derive(Default)]
pub(crate) struct Locks {
    names: Mutex<HashMap<ObjectKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// As long as it lives, nobody else works on the name.
pub(crate) type NameTurn = OwnedMutexGuard<()>;

impl Locks {
    /// Waits for one's turn.
    pub(crate) async fn turn(&self, key: &ObjectKey) -> NameTurn {
        portolan_core::waypoint!();
        let lock = {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            // Who waits or works holds a second reference.
            names.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(names.entry(key.clone()).or_default())
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_has_one_turn_at_a_time_and_others_do_not_wait_for_it() {
        let (locks, a) = (Locks::default(), ObjectKey::namespaced("default", "a"));
        let first = locks.turn(&a).await;

        let second = futures::FutureExt::now_or_never(locks.turn(&a));
        let other = futures::FutureExt::now_or_never(locks.turn(&ObjectKey::namespaced("default", "b")));
        assert!(second.is_none() && other.is_some());

        drop(first);
        assert!(futures::FutureExt::now_or_never(locks.turn(&a)).is_some());
    }
}
