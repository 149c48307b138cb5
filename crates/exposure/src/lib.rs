//! Makes a name reachable, protected first: rules, records and Access as one ordered plan.
//!
//! ```text
//! Desired + Footprint (what is recorded as ours) ─┐
//! Reader ── gather ──▶ Live ──────────────────────┴─ plan | withdraw ──▶ Exposure ── apply ──▶ Applied (new Footprint)
//! ```
//!
//! [`plan()`] and [`withdraw()`] are pure. The order of their steps is the security of the whole: what protects a name is
//! written before what publishes it, and taken away after it. [`gather()`] reads, [`apply()`] writes.

mod desired;
mod footprint;
mod journal;
mod notes;
mod notice;
mod quota;
pub mod reasons;
pub mod rules;

pub use desired::{Access, Desired, Record, Rotate, Rule, Token};
pub use footprint::{Footprint, Part};
pub use journal::{Applied, Failed, Journal, NewCredential};
pub use notes::{Elsewhere, Intent, Notes};
pub use notice::Notice;
pub use quota::{Counted, Quotas, Reserved};
