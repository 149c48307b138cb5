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

mod board;
mod config_controller;
mod deployment_controller;
mod field;
mod loose;
mod manager;
mod own;
mod owners;
mod quantity;
mod record;
mod settings;
mod shape;
mod shared;
mod wishes;
mod worker;
mod writes;

pub use manager::{LEASE, Manager};
pub use owners::MANAGER as FIELD_MANAGER;
pub use record::ANNOTATION;
pub use settings::{Settings, Workers};
pub use worker::{IMAGE_DIGEST, WorkerKind};
