//! Who lives: this worker's own Lease, and those of the workers whose claims stand in the way.

pub(crate) mod heartbeat;
pub(crate) mod peers;
