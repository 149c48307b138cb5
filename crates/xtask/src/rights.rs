//! The table of rights → its place in the security page.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use portolan_install::rbac::{Reach, RoleRule, Tier, rules};

const BEGIN: &str = "<!-- rights: written by `make reference` -->\n";
const END: &str = "<!-- /rights -->";

/// The page with the rights as they are now.
pub(crate) fn page(there: &str) -> Result<String> {
    let (before, rest) = there.split_once(BEGIN).context("the security page has no place for the rights")?;
    let (_, after) = rest.split_once(END).context("the place for the rights has no end")?;
    Ok(format!("{before}{BEGIN}{}\n{END}{after}", tables()))
}

fn tables() -> String {
    let mut text = String::new();
    for tier in Tier::APART {
        write!(text, "\n### {}\n\n| where | what | may | for |\n|---|---|---|---|\n", tier.as_str())
            .expect("writing to a string cannot fail");
        for rule in rules(tier) {
            text.push_str(&row(&rule));
        }
    }
    text
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

    #[test]
    fn only_the_place_of_the_rights_changes() {
        let page = page(&format!("above\n{BEGIN}outdated\n{END}\nbelow\n")).expect("it has a place");

        assert!(
            page.starts_with("above\n") && page.ends_with(&format!("{END}\nbelow\n")) && !page.contains("outdated")
        );
        for tier in Tier::APART {
            assert!(page.contains(&format!("### {}\n", tier.as_str())), "{page}");
        }
    }

    #[test]
    fn a_page_without_a_place_is_told() {
        assert!(page("nothing here").is_err());
    }
}
