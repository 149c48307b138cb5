//! What runs while it may: jobs as data, under a lease each, their tasks, locks between processes, and looking for drift.

pub(crate) mod definition;
pub(crate) mod drift;
pub(crate) mod drift_memory;
pub(crate) mod handle;
pub(crate) mod leadership;
pub(crate) mod lease;
pub(crate) mod lock;
pub(crate) mod provisions;
pub(crate) mod supervisor;
pub(crate) mod task;
