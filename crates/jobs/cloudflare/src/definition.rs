//! The job as data: its names, kinds, rights and reasons, and how it starts.

use portolan_core::job::{JobSheet, LeaseName, plain};
use portolan_engine::{JobDefinition, Steering};
use serde_json::Value;

use crate::job::{self, GROUP, LEASE, NAME};
use crate::rights::ROLES;
use crate::{kinds, reasons};

/// The job.
pub static JOB: JobDefinition = JobDefinition { lease: |_| Some(LEASE), ..JobDefinition::of(SHEET, job::start) };

/// Where users steer single objects, as the older operator's users do.
pub(crate) const STEERING: Steering = Steering::with(OLDER_PREFIXES);

const OLDER_PREFIXES: &[&str] = &["cloudflare-operator.io/"];

const SHEET: JobSheet = JobSheet {
    help: "The kinds of networking.cloudflare-operator.io",
    about: "the kinds of networking.cloudflare-operator.io",
    definitions,
    permissions,
    roles: ROLES,
    leases: &[LeaseName::Leader(LEASE)],
    // Secrets that objects of the cluster name are in the process's namespace.
    pod_fields: &[("POD_NAMESPACE", "metadata.namespace")],
    reasons: &[reasons::ALL],
    older_prefixes: OLDER_PREFIXES,
    ..JobSheet::named(NAME, GROUP)
};

fn definitions() -> Vec<Value> {
    kinds::crds().into_iter().map(plain).collect()
}

fn permissions(kind: &str) -> Vec<&'static str> {
    kinds::table().into_iter().filter(|row| row.kind == kind).map(|row| row.permission).collect()
}

#[cfg(test)]
mod tests {
    use portolan_engine::Provisions;

    use super::*;

    #[test]
    fn the_job_is_led_in_the_namespace_of_its_process_by_the_older_operators_lease() {
        let candidacy = JOB.candidacy("cloudflare-operator-system", &Provisions::default(), "me").unwrap();

        assert_eq!(candidacy.namespace, "cloudflare-operator-system");
        assert_eq!(candidacy.lease, "9f193cf8.cloudflare-operator.io");
    }

    #[test]
    fn every_kind_says_what_a_token_must_be_allowed() {
        for kind in JOB.sheet.kinds() {
            let names = (JOB.sheet.permissions)(&kind);
            assert!(
                matches!(names[..], [name] if name.starts_with("Account · ") || name.starts_with("Zone · ")),
                "{kind}"
            );
        }
        assert_eq!((JOB.sheet.permissions)("DNSRecord"), ["Zone · DNS · Edit"]);
        assert_eq!((JOB.sheet.permissions)("CloudflareDomain"), ["Zone · Zone · Read"]);
    }

    #[test]
    fn all_kinds_are_of_the_jobs_group() {
        assert!(definitions().iter().all(|definition| definition["spec"]["group"] == GROUP));
        assert_eq!(JOB.sheet.kinds().len(), kinds::table().len());
    }
}
