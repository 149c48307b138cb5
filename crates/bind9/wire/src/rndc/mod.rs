//! The control channel: what is asked for → bytes, and bytes → what the server says. Pure.

mod answer;
mod command;
mod frame;
mod refusal;
mod statement;
mod table;

pub use answer::{DnssecKey, DnssecStatus, KnownKey, ServerStatus, ZoneRole, ZoneStatus};
pub use command::{JournalFile, RndcCommand, ZoneFiles};
pub(crate) use frame::{CommandEnvelope, Frame, FrameFault, LONGEST_ANSWER, LONGEST_COMMAND, read, write};
pub use refusal::RndcRefusal;
pub use statement::says_the_same;
