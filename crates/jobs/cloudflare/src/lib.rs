//! The cloudflare job: the kinds of `networking.cloudflare-operator.io`.
//!
//! A kind is one file in [`kinds`] and one row in its table; everything else is shared: what an object wants is looked
//! up (`resolve`), compared with what stands at Cloudflare (`portolan_core::ownership`) and carried out (`reconciler`) for all kinds alike.

mod allow;
pub mod blocks;
mod credentials;
mod definition;
mod drift;
mod drift_memory;
mod gone;
mod guard;
mod job;
pub mod kind;
pub mod kinds;
mod lookup;
mod projection;
pub mod reasons;
mod reconciler;
pub mod reference;
mod resolve;
mod rights;
pub mod sheet;
pub mod shown;
pub mod sources;
mod targets;
mod triggers;
pub mod used;

pub use definition::JOB;
pub use job::LEASE;
pub use portolan_engine::{Drift, JobHandle, Passed};
