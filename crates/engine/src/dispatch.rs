//! Which object has its turn: what was seen of a kind's objects, the queue, and one pass at a time for each.
//!
//! ```text
//! watch ─▶ Dispatcher ─▶ queue ─▶ pass ─▶ requeue at once, later, or after a backoff by the class of its problem
//! ```

pub(crate) mod backoff;
pub(crate) mod controller;
pub(crate) mod dispatcher;
pub(crate) mod fingerprint;
pub(crate) mod handle;
pub(crate) mod queue;
pub(crate) mod store;
