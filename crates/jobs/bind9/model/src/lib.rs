//! The bind9 job's kinds, and what follows from them.
//!
//! ```text
//! provider, cluster, role, instance ─ settings ─▶ ServerSettings ─┬─ validate ─▶ findings ─▶ conditions
//! keys and their age ─ keys ─▶ KeyRing ────────────────────────────┼─ conf ─────▶ named.conf, keys.conf, rndc.conf, checked
//! zones of the servers ─ discovery ─▶ who serves what, who writes ─┘─ objects ──▶ Secret, ConfigMap, workload, Services, …
//! zone ─ contents, serial ─▶ what is served; how it stands on its servers ─ zone_plan ─▶ steps
//!                                                passes over a zone ─ phases ─▶ conditions, in their words
//! ```
//!
//! All of it is pure: values in, values out.

pub mod cluster;
pub mod conf;
pub mod contents;
pub mod defaults;
pub mod deletion;
pub mod discovery;
pub mod finding;
pub mod instance_status;
pub mod keys;
pub mod kinds;
pub mod names;
pub mod objects;
pub mod phases;
pub mod reasons;
pub mod serial;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod validate;
pub mod zone_plan;
pub mod zone_status;

pub use finding::{Finding, Weight};
pub use kinds::crds;
pub use names::GROUP;

/// What the job is called.
pub const JOB: &str = "bind9";
