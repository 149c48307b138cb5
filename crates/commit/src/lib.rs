//! Group commit: while one write is on its way others gather, and the next carries them all.

mod lines;
mod linger;
mod pace;

pub use lines::Lines;
pub use linger::{Linger, PendingWrite};
pub use pace::Pace;
