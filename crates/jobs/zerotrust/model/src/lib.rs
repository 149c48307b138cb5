//! The zerotrust job's kinds, and what an annotated route asks for.
//!
//! ```text
//! HTTPRoute ─▶ RouteInput ─┐
//! tenants, templates ──────┴─ select ─▶ Selected ─ settings ─▶ Settings ─ desired (zone, address) ─▶ CloudflareTaskSpec + hash
//! CloudflareTaskSpec ─▶ portolan_publication::Desired        State ◀─▶ ConfigMap
//! ```
//!
//! All of it is pure: values in, values out.

pub mod annotations;
mod desired;
mod duration;
#[cfg(test)]
mod fixture;
mod former;
pub mod gateway;
mod hash;
pub mod kinds;
pub mod names;
mod operator_config;
mod origin;
mod origin_tls;
pub mod permits;
pub mod reasons;
mod reference;
mod route;
mod rules;
mod select;
pub mod settings;
pub mod state;
pub mod target;
pub mod task;
mod template;
mod tenant;
pub mod zone;

pub use desired::{RouteWish, WantedRoute, desired};
pub use former::Former;
pub use gateway::HttpRoute;
pub use kinds::{GROUP, crds};
pub use operator_config::{
    CloudflareZeroTrustOperatorConfig, CloudflareZeroTrustOperatorConfigSpec, OperatorConfigStatus,
    OperatorEnvironment, OperatorResources,
};
pub use origin_tls::OriginTls;
pub use reference::{RouteRef, SecretRef, TenantRef};
pub use route::{Enabled, RouteInput, hostname};
pub use select::{Catalogue, DEFAULT_TEMPLATE, NO_TEMPLATE, Selected, Sought, select, select_tenant, still_there};
pub use settings::{Layer, Settings, settings};
pub use state::{Leftover, State};
pub use target::AddressSource;
pub use task::{CloudflareTask, CloudflareTaskSpec, CloudflareTaskStatus, Phase, TaskResult};
pub use template::{
    AccessSettings, CloudflareZeroTrustTemplate, CloudflareZeroTrustTemplateSpec, DnsOnlySettings, OriginSettings,
    ServiceRef, TemplateStatus, TokenSettings,
};
pub use tenant::{
    CloudflareZeroTrustTenant, CloudflareZeroTrustTenantSpec, CredentialRef, TOKEN_KEY, TenantDefaults, TenantLogLevel,
    TenantStatus, TenantSummary,
};

/// What the job is called.
pub const JOB: &str = "zerotrust";
/// The finalizer on published routes and on tenants.
pub const FINALIZER: &str = "cfzt.cloudflare.com/cleanup";
/// The finalizer that an older operator left on routes and tenants, and that nobody else will take away.
pub const OLDER_FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
/// Where the operator lives, where nothing else is said.
pub const OPERATOR_NAMESPACE: &str = "cloudflare-zero-trust";
/// The lease of the one process that sees routes.
pub const OPERATOR_LEASE: &str = "cloudflare-zero-trust-operator";
