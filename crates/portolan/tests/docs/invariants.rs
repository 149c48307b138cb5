//! The page of invariants, held to what it says: every test that it names exists, and every rule names some.

use std::path::Path;

use crate::page::{Fault, Page};

/// Where the rules and the tests that would catch their breaking stand.
pub const PAGE: &str = "docs/invariants.md";
/// The rules that always hold.
const RULES: usize = 10;
/// What stands before the name of a rule.
const HEADING: &str = "## ";

/// Tests that the page names and the tree lacks, and rules that no test is named for.
pub fn faults(root: &Path, page: &Page) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut rules: Vec<(usize, usize)> = Vec::new();
    for (number, line) in page.text.lines().enumerate().map(|(number, line)| (number + 1, line)) {
        if line.starts_with(HEADING) {
            rules.push((number, 0));
        }
        for (file, test) in named(line) {
            if let Some((_, tests)) = rules.last_mut() {
                *tests += 1;
            }
            if !is_there(root, file, test) {
                faults.push(page.fault(number, format!("there is no test {test} in {file}")));
            }
        }
    }
    faults.extend(
        rules
            .iter()
            .filter(|(_, tests)| *tests == 0)
            .map(|(number, _)| page.fault(*number, "no test is named for this rule".to_owned())),
    );
    if rules.len() != RULES {
        faults.push(page.fault(1, format!("{} rules instead of {RULES}", rules.len())));
    }
    faults
}

/// How many tests a page names.
pub fn count(page: &Page) -> usize {
    page.text.lines().map(|line| named(line).count()).sum()
}

/// `crates/a/tests/b.rs::name` in backticks.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|word| word.rsplit_once("::"))
        .filter(|(file, _)| Path::new(file).extension().is_some_and(|extension| extension == "rs"))
}

fn is_there(root: &Path, file: &str, test: &str) -> bool {
    let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
    text.contains(&format!("fn {test}("))
}

#[test]
fn a_test_that_is_not_there_and_a_rule_without_one_are_found() {
    let text = "## 1. One\n\n| it breaks | `crates/portolan/tests/docs/invariants.rs::is_nowhere` |\n\n## 2. Two\n";
    let page = Page::parse(Path::new(PAGE), text);

    let found: Vec<String> = faults(&crate::root(), &page).iter().map(ToString::to_string).collect();

    assert_eq!(found.len(), 3, "{found:#?}");
}
