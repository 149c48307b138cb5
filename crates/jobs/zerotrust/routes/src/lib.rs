//! The zerotrust job's side in the cluster: routes become tasks, results come back.
//!
//! ```text
//! HTTPRoute, tenants, templates, zone ─ look ─▶ RouteContext ─ plan ─▶ RoutePlan ─ carry out ─▶ CloudflareTask
//! CloudflareTask Completed ─ collect ─▶ Secret → state ConfigMap → annotations → the task goes
//! ```
//!
//! Nothing here writes to Cloudflare: the clients of this side can only read.

mod credentials;
mod decide;
mod drift;
mod execute;
mod hostname_owner;
mod job;
mod locks;
mod losses;
mod metrics;
mod needs;
mod outputs;
mod permits;
mod preview;
#[cfg(test)]
mod purity_tests;
mod reasons;
mod recover;
mod route_context;
mod route_plan;
mod route_status;
mod routes;
mod settings;
mod shared;
mod state_index;
mod sweep;
mod templates;
mod tenants;
mod token;
mod zones;

pub use job::Routes;
pub use metrics::METRICS;
pub use needs::CREDENTIAL_FINALIZER;
pub use settings::Settings;
