//! The control channel: what is asked for → bytes, and bytes → what the server says. Pure.

mod answer;
mod command;
mod frame;
mod refusal;
mod table;

pub use answer::{DnssecKey, DnssecStatus, KnownKey, ServerStatus, ZoneRole, ZoneStatus};
pub use command::{Journal, RndcCommand, ZoneFiles};
pub(crate) use frame::{Envelope, Frame, FrameFault, LONGEST_ANSWER, LONGEST_COMMAND, read, write};
pub use refusal::RndcRefusal;
