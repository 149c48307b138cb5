//! The zerotrust job's side in the cluster: routes become tasks, results come back.
//!
//! ```text
//! HTTPRoute, tenants, templates, zone ─ look ─▶ RouteContext ─ plan ─▶ RoutePlan ─ carry out ─▶ CloudflareTask
//! CloudflareTask Completed ─ collect ─▶ Secret → state ConfigMap → annotations → the task goes
//! ```
//!
//! Nothing here writes to Cloudflare: the clients of this side can only read.

mod board;
mod credentials;
mod decide;
mod drift;
mod hand;
mod job;
mod locks;
mod losses;
mod metrics;
mod needs;
mod outputs;
mod permits;
mod preview;
mod reasons;
mod records;
mod recover;
mod rivals;
mod route_plan;
mod routes;
mod settings;
mod shared;
mod subject;
mod sweep;
mod templates;
mod tenants;
mod token;
mod zones;

pub use job::Routes;
pub use metrics::METRICS;
pub use needs::CREDENTIAL_FINALIZER;
pub use settings::Settings;
