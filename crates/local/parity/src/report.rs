//! What a run found, as text for people and for CI.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::compare::Difference;
use crate::known_differences::{KNOWN, Known};
use crate::options::Options;

/// What was run and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Per group: cases run on the real and on the embedded server.
    pub ran: BTreeMap<String, (usize, usize)>,
    pub passed: usize,
    /// The titles of cases and histories with an unexplained difference.
    pub failed: Vec<String>,
    pub differences: Vec<Difference>,
    /// Indices into [`KNOWN`] that explained a difference.
    pub used: Vec<usize>,
    pub histories: usize,
    /// Things that were left out and why.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Takes in the differences of one case.
    pub(crate) fn add(&mut self, title: &str, differences: Vec<Difference>) {
        let (explained, unexplained): (Vec<_>, Vec<_>) = differences
            .into_iter()
            .map(|difference| (explanation(&difference), difference))
            .partition(|(known, _)| known.is_some());
        self.used.extend(explained.iter().filter_map(|(known, _)| *known));
        if unexplained.is_empty() {
            self.passed += 1;
        } else {
            self.failed.push(title.to_owned());
        }
        self.differences
            .extend(unexplained.into_iter().map(|(_, difference)| difference));
    }

    /// The entries that explained nothing.
    pub(crate) fn unused(&self) -> Vec<&'static Known> {
        KNOWN
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.used.contains(index))
            .map(|(_, known)| known)
            .collect()
    }

    /// The summary that is printed at the end.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        for (group, (real, embedded)) in &self.ran {
            let _ = writeln!(
                text,
                "parity {group:<12} {real:>4} on the real server {embedded:>4} on the embedded one"
            );
        }
        let mut used = self.used.clone();
        used.sort_unstable();
        used.dedup();
        let _ = writeln!(text, "parity: {} histories", self.histories);
        let _ = writeln!(text, "parity: {} known differences used of {}", used.len(), KNOWN.len());
        for known in used.iter().map(|index| &KNOWN[*index]) {
            let _ = writeln!(text, "parity: known: {} {}: {}", known.case, known.at, known.reason);
        }
        for note in &self.notes {
            let _ = writeln!(text, "parity: note: {note}");
        }
        let _ = writeln!(text, "parity: {} passed, {} failed", self.passed, self.failed.len());
        text
    }

    /// Prints and writes what was found, and tells whether there was no unexplained difference.
    pub(crate) fn finish(&self, options: &Options, what: &str) -> bool {
        if let Some(path) = &options.report {
            let path = path.with_extension(format!("{what}.md"));
            write(
                &path,
                &format!("# Differences of {what}\n\n{}{}", self.summary(), self.details()),
            );
        }
        print!("{}", self.details());
        for title in &self.failed {
            println!("parity: FAILED {title}");
        }
        print!("{}", self.summary());
        self.failed.is_empty()
    }

    /// All unexplained differences, the most frequent kind first.
    pub(crate) fn details(&self) -> String {
        let mut kinds: BTreeMap<String, Vec<&Difference>> = BTreeMap::new();
        for difference in self.first_per_case() {
            kinds.entry(kind(difference)).or_default().push(difference);
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
        let mut text = String::new();
        for (kind, found) in kinds {
            let _ = writeln!(text, "\n## {} × {kind}", found.len());
            for difference in found.iter().take(12) {
                show(&mut text, difference);
            }
        }
        text
    }

    /// The differences of each case's first differing step: later ones mostly follow from it.
    fn first_per_case(&self) -> impl Iterator<Item = &Difference> {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for difference in &self.differences {
            let step = first.entry(&difference.case).or_insert(difference.step);
            *step = (*step).min(difference.step);
        }
        self.differences
            .iter()
            .filter(move |difference| first.get(difference.case.as_str()) == Some(&difference.step))
    }
}

/// Writes a file that was asked for; the run goes on without it.
pub(crate) fn write(path: &Path, text: &str) {
    if let Err(error) = std::fs::write(path, text) {
        println!("parity: {} could not be written: {error}", path.display());
    }
}

/// The number of the entry that explains a difference.
pub(crate) fn explanation(difference: &Difference) -> Option<usize> {
    KNOWN.iter().position(|known| known.explains(difference))
}

/// The place without numbers, so that like differences meet.
fn kind(difference: &Difference) -> String {
    let parts = difference.at.split('.').filter(|part| part.parse::<usize>().is_err());
    parts.take(5).collect::<Vec<_>>().join(".")
}

fn show(text: &mut String, difference: &Difference) {
    let Difference {
        case,
        step,
        line,
        at,
        real,
        embedded,
    } = difference;
    let _ = writeln!(
        text,
        "- [{case}] step {step} `{line}` at `{at}`\n    real:     {real}\n    embedded: {embedded}"
    );
}

#[cfg(test)]
mod tests {
    use super::Outcome;
    use crate::compare::Difference;

    fn difference(case: &str, step: usize, at: &str) -> Difference {
        let text = |text: &str| text.to_owned();
        Difference {
            case: text(case),
            step,
            line: text("GET x"),
            at: text(at),
            real: text("1"),
            embedded: text("2"),
        }
    }

    #[test]
    fn the_most_frequent_kind_comes_first_and_followers_are_left_out() {
        let mut outcome = Outcome::default();
        outcome.add("a", vec![difference("a", 1, "status"), difference("a", 2, "body.x")]);
        outcome.add("b", vec![difference("b", 1, "body.items.0.y")]);
        outcome.add("c", vec![difference("c", 1, "body.items.3.y")]);

        let details = outcome.details();

        assert!(
            details.find("2 × body.items.y") < details.find("1 × status"),
            "{details}"
        );
        assert!(!details.contains("body.x"), "{details}");
        assert!(outcome.summary().ends_with("parity: 0 passed, 3 failed\n"));
    }
}
