//! Zones that are being seeded → answers to the servers that fetch them, and to nobody else.
//!
//! ```text
//! datagram, or message of a connection ─► reply (pure) ─► nothing, one message, or a transfer's messages one by one
//!                                           └─ SeedTable: the zones, their records, the key of each
//! ```
//! Answered are SOA, AXFR and IXFR (with all of the zone) for zones of the table, signed by the zone's own key. Everything else is
//! REFUSED, or NOTAUTH where the signature does not hold, or not answered at all where it is no question.
//!
//! How a server gets a zone that is complete before it is open (tried on 9.18.49, `tests/named/seeding.rs`):
//!
//! 1. `addzone Z { type secondary; file F; allow-query { none; }; primaries { US key K; }; }`. Queries are refused, with SERVFAIL while it
//!    has nothing and REFUSED afterwards.
//! 2. `zonestatus Z` is no longer "zone not loaded": the zone is in memory, but F may not be there for a quarter of a second (20,000
//!    records). A `delzone` now may lose it (1 of 20 tries): so `sync Z`, which has it written whatever becomes of the zone (40 of 40).
//! 3. `delzone Z` without `-clean`, then `addzone Z { type primary; file F; masterfile-format raw; … }`, again while that says "file not
//!    found". Where it says so for seconds, begin again. F is renamed into place: it is whole, or not there.
//!
//! `RndcClient::open_seeded` does these, five commands a zone. With default quotas named asks for 20 serials a second and fetches two
//! zones at a time from one address; a server that is seeded wants `serial-query-rate 1000; transfers-in 50; transfers-per-ns 50;`. With
//! these, 200 zones are open within 0.9 to 1.6 times what the hand-tuned pair needs to serve as many (memory, a busy disk;
//! `examples/measure.rs`).

mod listener;
mod pages;
mod reply;
mod table;

pub use listener::{ResponderLimits, SeedResponder};
pub use table::{SeedTable, ZoneSeed};
