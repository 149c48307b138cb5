//! What is kept of what was read: answers in, and for how long they are believed out.

pub(crate) mod recent_writes;
pub(crate) mod shared_look;
pub(crate) mod single;
pub(crate) mod snapshot;
pub(crate) mod snapshot_store;
