//! Acting as someone else: what the headers ask for, and whether the one who asks may.
//!
//! There are five modes. The constrained ones need two rights: to be that user, and to do this very request in that
//! mode. The old one needs the first only. They are tried in order; the first refusal is the one that is told.

mod mode;
mod wanted;

pub use mode::{ImpersonationMode, act_as};
pub use wanted::{Header, wanted};
