//! Runs gather, plan, apply and report for any controller: everything between a kind and Kubernetes.
//!
//! Watches → [`Store`] and queue → one pass at a time per object → finalizer, status, events, backoff. A kind brings a
//! [`Reconcile`]; a job brings its kinds' [`Controller`]s to the [`Manager`], which runs them while it leads.
//!
//! What happens is logged by [`logs`], in text or JSON. Work of a tenant is marked ([`Levels`]): its lines carry the tenant and
//! obey the tenant's own level. [`outcome`] has the lines that end a reconciliation, [`telemetry`] sends spans to a collector.

pub mod annotations;
mod backoff;
mod cache;
mod context;
mod controller;
mod counted;
mod deletions;
mod desk;
mod drift;
mod events;
mod finalizer;
mod handle;
mod health;
mod identity;
mod leadership;
mod lease;
mod levels;
mod lock;
pub mod logs;
mod malformed;
mod manager;
mod metrics;
pub mod outcome;
mod pass;
mod pulse;
mod queue;
mod raw;
mod reconcile;
mod report;
mod running;
mod secret_guard;
mod secrets;
mod serve;
mod status;
mod store;
mod task;
pub mod telemetry;
mod trigger;
mod watch;

pub use backoff::jitter;
pub use cache::{Cache, Doubt, Lookup};
pub use context::{Context, FIELD_MANAGER, Mode, PlanSink, Timing, cluster_owner};
pub use controller::Controller;
pub use counted::{Counted, Counts, Source, counting};
pub use deletions::{Deletions, Loaded, Scope, Surroundings, Unheld};
pub use drift::{Drift, Passed};
pub use events::Events;
pub use handle::Handle;
pub use health::{Check, Health, Probes};
pub use identity::key_of;
pub use leadership::Leadership;
pub use lease::{Candidacy, Election, Term};
pub use levels::{ByTenant, Levels, level};
pub use lock::{DocumentLock, Held};
pub use manager::{Job, Manager};
pub use metrics::{METRICS, Metrics};
pub use pass::kubernetes_problem;
pub use reconcile::{Object, Outcome, Reconcile};
pub use report::{Notice, Report, Severity};
pub use running::JobHandle;
pub use secret_guard::{CREDENTIAL_FINALIZERS, Need, SecretGuard};
pub use secrets::{FoundSecret, SecretValues, SecretVersion, Secrets};
pub use serve::{health_routes, metrics_routes, serve};
pub use status::in_time;
pub use store::{Projected, Store};
pub use task::{Busy, Task};
pub use trigger::Seen;
pub use watch::Selection;

pub use tokio_util::sync::CancellationToken;
