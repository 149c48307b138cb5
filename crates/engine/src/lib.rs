//! Runs gather, plan, apply and report for any controller: everything between a kind and Kubernetes.
//!
//! Watches → [`Store`] and queue → one pass at a time per object → finalizer, status, events, backoff. A kind brings a
//! [`Reconcile`]; a job brings its kinds' [`Controller`]s to the [`Manager`], which runs them while it leads.
//!
//! What happens is logged by [`logs`], in text or JSON. Work in a log scope is marked ([`Levels`]): its lines name the scope and
//! obey the scope's own level. [`outcome`] has the lines that end a reconciliation, [`telemetry`] sends spans to a collector.

mod context;
mod deletions;
mod dispatch;
mod jobs;
pub mod logs;
mod namespaces;
mod observe;
mod pass;
mod purity;
mod reconcile;
mod secrets;
mod verdicts;
mod watch;

pub use context::{Context, FIELD_MANAGER, PlanSink, Timing, WriteMode, cluster_owner};
pub use deletions::{DeletionScope, Deletions, LedgerWork, Loaded, Surroundings, Unheld};
pub use dispatch::backoff::jitter;
pub use dispatch::controller::Controller;
pub use dispatch::fingerprint::key_of;
pub use dispatch::handle::Handle;
pub use dispatch::store::{Projected, Store};
pub use jobs::definition::{JobDefinition, JobStart, Lacking, NeededKind, OwnNamespace};
pub use jobs::drift::{Drift, Passed};
pub use jobs::drift_memory::DriftMemory;
pub use jobs::handle::JobHandle;
pub use jobs::leadership::Leadership;
pub use jobs::lease::{Candidacy, Election, Term};
pub use jobs::lock::{DocumentLock, HeldLock};
pub use jobs::provisions::Provisions;
pub use jobs::supervisor::{Job, Manager};
pub use jobs::task::{Busy, JobTasks, Task};
pub use logs::levels::{ByScope, Levels, level};
pub use logs::{outcome, telemetry};
pub use namespaces::is_ending;
pub use observe::collected::{CollectedFrom, CollectedGauge, LabelledCounts, counting};
pub use observe::health::{Check, Health, Probes};
pub use observe::metrics::{METRICS, Metrics};
pub use observe::serve::{health_routes, metrics_routes, serve};
pub use pass::annotations::Steering;
pub use pass::events::Events;
pub use pass::kubernetes_problem;
pub use pass::report::Report;
pub use pass::status::in_time;
pub use portolan_core::{Notice, Severity};
pub use purity::{Purity, refuse_pure_step};
pub use reconcile::{Object, Outcome, PassFailure, Profile, Reconcile};
pub use secrets::guard::{CREDENTIAL_FINALIZERS, SecretGuard, SecretNeed};
pub use secrets::{FoundSecret, SecretValues, SecretVersion, Secrets};
pub use verdicts::Verdicts;
pub use watch::Selection;
pub use watch::cache::{Cache, Doubt, Lookup};
pub use watch::claims::{Claims, Seniority};
pub use watch::mapping::Related;
pub use watch::referrers::Referrers;

pub use tokio_util::sync::CancellationToken;
