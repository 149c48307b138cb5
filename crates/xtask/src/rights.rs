//! The table of rights → its place in the security page.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use portolan_core::job::{JobRole, JobSheet};
use portolan_core::rights::{Reach, RoleRule};

const BEGIN: &str = "<!-- rights: written by `make reference` -->\n";
const END: &str = "<!-- /rights -->";

/// The page with the rights as they are now.
pub(crate) fn page(there: &str, jobs: &[&JobSheet]) -> Result<String> {
    let (before, rest) = there.split_once(BEGIN).context("the security page has no place for the rights")?;
    let (_, after) = rest.split_once(END).context("the place for the rights has no end")?;
    Ok(format!("{before}{BEGIN}{}\n{END}{after}", tables(jobs)))
}

fn tables(jobs: &[&JobSheet]) -> String {
    let mut text = String::new();
    for role in jobs.iter().flat_map(|job| roles(job)) {
        write!(text, "\n### {}\n\n| where | what | may | for |\n|---|---|---|---|\n", role.name)
            .expect("writing to a string cannot fail");
        for rule in (role.rules)() {
            text.push_str(&row(&rule));
        }
    }
    text
}

/// The roles of a job whose rights say what they are for; of one that is divided, the parts.
fn roles(job: &JobSheet) -> impl Iterator<Item = &'static JobRole> {
    let parts = if job.roles.len() > 1 { &job.roles[1..] } else { job.roles };
    parts.iter().filter(|role| (role.rules)().iter().all(|rule| !rule.why.is_empty()))
}

fn row(rule: &RoleRule) -> String {
    let reach = match rule.reach {
        Reach::Cluster => "cluster",
        Reach::OperatorNamespace => "own namespace",
    };
    let group = if rule.group.is_empty() { String::new() } else { format!(" ({})", rule.group) };
    let names = if rule.names.is_empty() { String::new() } else { format!(", only `{}`", rule.names.join("`, `")) };
    let resources = rule.resources.join("`, `");
    format!("| {reach} | `{resources}`{group}{names} | {} | {} |\n", rule.verbs.join(", "), rule.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all;

    #[test]
    fn only_the_place_of_the_rights_changes() {
        let page = page(&format!("above\n{BEGIN}outdated\n{END}\nbelow\n"), &all()).expect("it has a place");

        assert!(
            page.starts_with("above\n") && page.ends_with(&format!("{END}\nbelow\n")) && !page.contains("outdated")
        );
        for role in ["manager", "kube_worker", "cloudflare_worker"] {
            assert!(page.contains(&format!("### {role}\n")), "{page}");
        }
    }

    #[test]
    fn a_page_without_a_place_is_told() {
        assert!(page("nothing here", &all()).is_err());
    }
}
