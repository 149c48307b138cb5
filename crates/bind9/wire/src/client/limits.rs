//! How long a server may take, and how much of it there may be.

use std::time::Duration;

/// How long is waited for one server, and how much is under way with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// For a connection.
    pub connect: Duration,
    /// For one answer, once it is asked for; `reconfig` of a server with many zones is the slowest.
    pub answer: Duration,
    /// For one datagram, before it is sent again.
    pub datagram: Duration,
    /// How often a datagram is sent.
    pub datagrams: u32,
    /// For a whole operation, the wait for its turn included; transfers have [`TransferBounds`].
    pub operation: Duration,
    /// Updates and transfers under way at once, each with a connection of its own. (Commands are one at a time.)
    pub under_way: usize,
    /// Questions under way at once: they do not wait for updates and transfers.
    pub questions: usize,
    /// Operations that wait for their turn; more are refused at once.
    pub waiting: usize,
    /// Updates of one `update_all` that are sent before the first one's answer is there.
    pub pipelined: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            answer: Duration::from_secs(10),
            datagram: Duration::from_secs(1),
            datagrams: 3,
            operation: Duration::from_secs(30),
            under_way: 8,
            questions: 64,
            waiting: 1_000,
            // A zone's updates happen one after another, but the next ones can be made, sent and read meanwhile. Measured by
            // `examples/measure.rs` on 9.18.49, 20,000 records in messages of 500: 45,000 records a second with 4 on the way as with
            // 16, and 31,500 with 1 (memory); 20,000 and 15,500 (a disk).
            pipelined: 4,
        }
    }
}

/// How much of a zone is taken before a transfer is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferBounds {
    /// Records.
    pub records: u64,
    /// Bytes of messages.
    pub bytes: u64,
    /// For all of it. One message takes at most [`ServerLimits::answer`].
    pub time: Duration,
}

impl Default for TransferBounds {
    fn default() -> Self {
        Self { records: 10_000_000, bytes: 1 << 30, time: Duration::from_secs(600) }
    }
}
