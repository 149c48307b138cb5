//! What is asked of servers: each operation has a deadline, and each server a limit on what is under way, so that one that hangs,
//! resets or answers rubbish holds up nobody but those who ask it.

mod dns;
mod error;
mod limits;
mod query;
mod rndc;
mod seeding;
mod stream;
mod transfer;
mod turns;
mod update;

pub use dns::DnsClient;
pub use error::{DnsError, RndcError, TransportFault};
pub use limits::{ServerLimits, TransferBounds};
pub use query::{DnsAnswer, soa_of_all};
pub use rndc::RndcClient;
pub use seeding::{Seeding, SeedingError};
pub use transfer::{ZoneContents, ZoneTransfer};

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970, which signatures are made with.
pub(crate) fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
