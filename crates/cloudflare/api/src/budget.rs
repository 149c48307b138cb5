//! When a request may go: what the API's limits and quotas leave, and who is in a hurry.

pub mod audit;
pub mod governor;
pub(crate) mod limiter;
pub(crate) mod limits;
pub(crate) mod priority;
pub(crate) mod quota;
pub mod rotation;
pub(crate) mod schedule;
