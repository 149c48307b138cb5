//! What is seen from outside: metrics, probes, and the server that answers for both.

pub(crate) mod collected;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod serve;
pub(crate) mod watchdog;
