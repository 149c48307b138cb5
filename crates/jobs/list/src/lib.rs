//! The jobs: one line each. The binary runs them and shows what is theirs; installation, chart, documentation, dashboards,
//! alerts and the test world read from here what a job has.

use portolan_core::job::JobSheet;
use portolan_engine::JobDefinition;

/// All jobs, in the order in which they are started and shown.
#[rustfmt::skip]
pub static ALL: &[&JobDefinition] = &[
    &portolan_cloudflare::JOB,
    &portolan_zerotrust::JOB,
];

/// What is known of jobs without running them.
pub fn sheets(jobs: &[&'static JobDefinition]) -> Vec<&'static JobSheet> {
    jobs.iter().map(|job| &job.sheet).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn once<'a>(names: impl Iterator<Item = &'a str>) -> bool {
        let mut seen = BTreeSet::new();
        names.into_iter().all(|name| !name.is_empty() && seen.insert(name))
    }

    #[test]
    fn no_two_jobs_have_a_name_a_group_or_a_role_in_common() {
        assert!(once(ALL.iter().map(|job| job.sheet.name)));
        assert!(once(ALL.iter().map(|job| job.sheet.group)));
        assert!(once(ALL.iter().flat_map(|job| job.sheet.roles).map(|role| role.name)));
    }

    #[test]
    fn every_definition_is_of_its_jobs_group_and_every_job_says_what_it_does() {
        for job in ALL {
            let JobSheet { group, definitions, help, about, .. } = job.sheet;
            assert!(definitions().iter().all(|definition| definition["spec"]["group"] == group), "{group}");
            assert!(!help.is_empty() && !about.is_empty() && !job.sheet.roles.is_empty(), "{group}");
        }
    }
}
