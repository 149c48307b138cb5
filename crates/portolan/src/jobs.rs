//! The jobs of this binary: by name on the command line, by what they are told, by what a cluster has of them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use portolan_core::job::{JobSheet, LogScope};
use portolan_engine::{JobDefinition, Provisions};

use crate::kinds::Kinds;

/// All of them.
pub(crate) use portolan_jobs::ALL;

#[cfg(test)]
mod tests;

/// What is known of all of them.
pub(crate) fn sheets() -> Vec<&'static JobSheet> {
    portolan_jobs::sheets(ALL)
}

/// Reads a job by its name.
pub(crate) fn parser() -> impl TypedValueParser<Value = &'static JobDefinition> {
    let names = ALL.iter().map(|job| PossibleValue::new(job.sheet.name).help(job.sheet.help));
    PossibleValuesParser::new(names).try_map(|name| named(&name).ok_or("there is no such job"))
}

/// The job of a name.
pub(crate) fn named(name: &str) -> Option<&'static JobDefinition> {
    ALL.iter().copied().find(|job| job.sheet.name == name)
}

/// The job that this process is told to do a part of, with that part.
pub(crate) fn part(provisions: &Provisions) -> Option<(&'static JobDefinition, &'static str)> {
    ALL.iter().find_map(|job| Some((*job, (job.part)(provisions)?)))
}

/// What log lines call the object whose work they tell of: the first job that has a word for it says so for the process.
pub(crate) fn log_scope() -> Option<LogScope> {
    ALL.iter().find_map(|job| job.sheet.log_scope)
}

/// Whether a server knows any of a job's kinds.
pub(crate) fn is_installed(job: &JobDefinition, kinds: &Kinds) -> bool {
    !kinds.in_group(job.sheet.group).is_empty()
}
