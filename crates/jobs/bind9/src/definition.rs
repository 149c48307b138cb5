//! The job as data: its name, kinds, roles and reasons, and how it starts.

use portolan_bind9_model::{GROUP, JOB as NAME, crds, reasons};
use portolan_core::job::{JobSheet, LeaseName, plain};
use portolan_engine::{JobDefinition, Lacking};
use serde_json::Value;

use crate::job;
use crate::rights::ROLES;

/// The lease by which one process leads; the older operator's, so that both never lead together.
pub(crate) const LEASE: &str = "bindy-leader";

/// The job.
pub static JOB: JobDefinition = JobDefinition {
    lease: |_| Some(LEASE),
    lacking: Lacking::Waits,
    marks: |_| false,
    ..JobDefinition::of(SHEET, job::start)
};

const SHEET: JobSheet = JobSheet {
    help: "BIND 9 servers and their zones: the kinds of bindy.firestoned.io",
    about: "the kinds of bindy.firestoned.io",
    definitions,
    roles: ROLES,
    leases: &[LeaseName::Leader(LEASE)],
    reasons: &[reasons::ALL],
    older_prefixes: &["bindy.firestoned.io/"],
    ..JobSheet::named(NAME, GROUP)
};

fn definitions() -> Vec<Value> {
    crds().into_iter().map(plain).collect()
}
