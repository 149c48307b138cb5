//! The zerotrust job's manager: an `OperatorConfig` shapes the operator's own Deployments.
//!
//! ```text
//! POD_NAME ─▶ Pod ─▶ ReplicaSet ─▶ own Deployment ─┐
//! OperatorConfig (the oldest) ─────────────────────┴─ shape ─▶ own Deployment ─ worker ─▶ kube-worker, cloudflare-worker
//! rollouts of all three ─▶ Applied, Ready
//! ```
//!
//! What a configuration does not name stays as it was deployed. What it replaced is remembered on the Deployment, and is
//! put back when the configuration names it no longer.

mod asked_fields;
mod config_controller;
mod config_states;
mod deployment_change;
mod deployment_controller;
mod field;
mod json_equivalence;
mod managed_fields;
mod manager;
mod own_deployment;
mod previous_values;
#[cfg(test)]
mod purity_tests;
mod quantity;
mod settings;
mod shared;
mod worker;
mod write;

pub use managed_fields::MANAGER as FIELD_MANAGER;
pub use manager::{LEASE, Manager};
pub use previous_values::ANNOTATION;
pub use settings::{Settings, Workers};
pub use worker::{IMAGE_DIGEST, WorkerKind};
