//! The zerotrust job: an annotated `HTTPRoute` becomes a live, protected name.
//!
//! ```text
//! HTTPRoute + tenant + templates ─► routes (kube_worker) ─► CloudflareTask ─► worker (cloudflare_worker) ─► Cloudflare
//!                                     ▲   Secret, state, annotations  ◄── result ──┘
//! ```
//!
//! The two sides are crates of their own, because each may do what the other must not: `routes` cannot write to
//! Cloudflare, `worker` does not touch routes. They meet in the tasks alone, in one process or in two. A third side,
//! `manager`, knows neither: it keeps the Deployments in shape that the operator itself runs in.

mod definition;
mod job;
pub mod names;
mod rights;
mod role;

pub use definition::JOB;
pub use job::{NAMESPACE, Settings};
pub use portolan_zerotrust_manager as manager;
pub use portolan_zerotrust_model as model;
pub use role::{LEASE, MANAGER_LEASE, Role};
