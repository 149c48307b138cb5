//! Facts → findings. Pure: what was seen decides, and nothing is asked.

mod account;
mod cluster;
mod name;
mod runner;
#[cfg(test)]
mod tests;

use super::facts::Facts;
use super::finding::DoctorReport;

/// Judges everything that was seen.
pub(crate) fn judge(facts: &Facts) -> DoctorReport {
    let cluster = facts.cluster.iter().flat_map(cluster::judge);
    let runner = facts.runner.iter().flat_map(runner::judge);
    let accounts = facts.accounts.iter().flat_map(account::judge);
    let names = facts.accounts.iter().flat_map(name::judge);
    DoctorReport(cluster.chain(runner).chain(accounts).chain(names).collect())
}

/// `a, b, c and 4 more`.
fn some_of<T: AsRef<str>>(all: &[T], most: usize) -> String {
    let shown: Vec<&str> = all.iter().take(most).map(AsRef::as_ref).collect();
    let more = all.len().saturating_sub(most);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// `n things`, `1 thing`.
fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
