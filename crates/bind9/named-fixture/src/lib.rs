//! Real `named` processes for tests: a configuration → a server on a loopback address and in a folder of its own, until it is
//! dropped.
//!
//! ```no_run
//! # use portolan_named_fixture::{NamedConfiguration, NamedServer};
//! let configuration = NamedConfiguration::default().with_key("update", "hmac-sha256", "c2VjcmV0");
//! // Nothing where there is no named; the run says so.
//! let Some(server) = NamedServer::start(configuration) else { return };
//! println!("{} {}", server.dns(), server.control());
//! ```
//! Dev only: for tests and benchmarks of what speaks with BIND 9. No sleeps: who waits polls, with a bound.

mod configuration;
mod programs;
mod server;

pub use configuration::NamedConfiguration;
pub use programs::{programs, tell};
pub use server::NamedServer;
