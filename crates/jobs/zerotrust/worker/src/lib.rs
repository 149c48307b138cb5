//! The zerotrust job's side at Cloudflare: carries tasks out.
//!
//! ```text
//! CloudflareTask ─ due? ─ gather ─ plan ─ claim ─ apply ─▶ completed, failed (again at …) or given back
//!                                           │       ├─ credentials of a token → a Secret at once
//!                                           │       └─ ids without a mark → the task's status
//!                                           └─ one status write over the version that was seen
//! ```
//!
//! All tasks of a tunnel or zone run side by side, and the writers of `cloudflare-api` send what they have in common once.
//! A worker touches tasks, Leases and Secrets of the operator's namespace, and reads the Secrets that tasks name, by their
//! names; it has no right to list Secrets, or to touch routes.

mod claim;
mod credential;
mod due;
mod handover;
mod liveness;
mod locks;
mod log;
mod metrics;
mod projection;
#[cfg(test)]
mod purity_tests;
mod reason;
mod recorded_elsewhere;
mod retry;
mod secret_poller;
mod settings;
mod task_controller;
mod task_journal;
mod task_status;
mod work;
mod worker;

pub use metrics::METRICS;
pub use settings::Settings;
pub use worker::Worker;
