//! The bind9 job: clusters and instances of BIND 9 become servers that run.
//!
//! ```text
//! ClusterBind9Provider ─► Bind9Cluster ─► Bind9Instance ─► ServiceAccount, Secret, ConfigMap, workload, Services, budget
//!                           readiness ◄──── readiness ◄──── pods
//! DNSZone ─► zones on the servers of those pods, seeded and opened on one, followed by the others
//! ```
//!
//! What follows from what is in [`model`]; here it is read, written and told.

mod cluster_controller;
mod definition;
mod instance_controller;
mod job;
mod kubernetes;
mod provider_controller;
mod rights;
mod seeding;
mod shared;
mod zone_controller;

pub use definition::JOB;
pub use job::Settings;
pub use portolan_bind9_model as model;
