//! Group commit: while one write is on its way others gather, and the next carries them all.
//!
//! ```text
//! source ─► Queue ─► Target::commit: turn (most urgent lane) ─► take ─► in_parts: attempt, split, attempt … ─► every source
//!   expect ─► Linger ─┘     └─ Line: one write at a time, told to whoever follows; Pace: how far apart          knows its fate
//! ```
//! Idle, a change goes out at once; while changes keep coming, writes are up to a second apart ([`Pace`]). Who knows early
//! that a write is to come says so, and writes that are ready wait for it a little ([`PendingWrite`]). A refused write is
//! split by source until the bad one is alone ([`in_parts`]). What is written, how it is read first and what a refusal
//! means is for the [`Target`] to say. [`Validity`] is the clock by which a snapshot of what is written is good or not.

/// A span of no length that names its module, for the walks in `docs/architecture.md`; as in the core, of which this crate knows
/// nothing.
macro_rules! waypoint {
    () => {
        if cfg!(debug_assertions) {
            tracing::trace_span!("waypoint").in_scope(|| ());
        }
    };
}

mod line;
mod lines;
mod linger;
mod pace;
mod parts;
mod queue;
#[cfg(test)]
mod testing;
mod validity;
mod writer;

pub use line::Line;
pub use lines::Lines;
pub use linger::{Linger, PendingWrite};
pub use pace::Pace;
pub use parts::{Attempt, in_parts, split, still_allowed};
pub use queue::{Queue, Source};
pub use validity::{Freshness, Moment, Validity};
pub use writer::{Target, run};
