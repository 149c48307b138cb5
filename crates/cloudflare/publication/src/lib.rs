//! What a published name shall be, and what is recorded of it: the values that pass between who decides about a name and
//! who makes it reachable.
//!
//! ```text
//! jobs/zerotrust/model ── Desired ──▶ exposure ── Footprint ──▶ state, status
//!                                     (Intent is noted before its first call)
//! ```
//!
//! Pure: no clock, no client, no Kubernetes.

mod desired;
mod footprint;
mod intent;
pub mod reasons;

pub use desired::{Access, Desired, Record, Rotate, Rule, Token};
pub use footprint::{Footprint, Former, Part};
pub use intent::Intent;
