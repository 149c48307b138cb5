//! What a kubelet decides about a pod, as values: nothing here waits, asks the time, or touches a file or a process.

pub mod backoff;
pub mod claims;
pub mod containers;
pub mod downward;
pub mod environment;
pub mod expand;
pub mod identity;
pub mod lifecycle;
pub mod limits;
pub mod paths;
pub mod probes;
pub mod programs;
pub mod record;
pub mod references;
pub mod resumed;
pub mod status;
#[cfg(test)]
pub(crate) mod testing;
pub mod volumes;
