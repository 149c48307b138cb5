//! Zones that are being seeded → answers to the servers that fetch them, and to nobody else.
//!
//! ```text
//! datagram, or message of a connection ─► reply (pure) ─► nothing, one message, or a transfer's messages one by one
//!                                           └─ SeedTable: the zones, their records, the key of each
//! ```
//! Answered are SOA, AXFR and IXFR (with all of the zone) for zones of the table, signed by the zone's own key. Everything else is
//! REFUSED, or NOTAUTH where the signature does not hold, or not answered at all where it is no question.

mod listener;
mod pages;
mod reply;
mod table;

pub use listener::{ResponderLimits, SeedResponder};
pub use table::{SeedTable, ZoneSeed};
