//! What a run found, as text for people and for CI.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use crate::compare::Difference;
use crate::known_differences::{KNOWN, KnownDifference};
use crate::options::Options;
use crate::sound::SOUND;

/// Slow steps that are told.
const SLOWEST: usize = 10;

/// What was run and what came of it.
#[derive(Debug, Default)]
pub(crate) struct RunResult {
    /// Per group: cases run on the real and on the embedded server.
    pub ran: BTreeMap<String, (usize, usize)>,
    pub passed: usize,
    /// The titles of cases and histories with an unexplained difference.
    pub failed: Vec<String>,
    pub differences: Vec<Difference>,
    /// Those that are known, for the report.
    explained: Vec<Difference>,
    /// Indices into [`KNOWN`] that explained a difference.
    pub used: Vec<usize>,
    pub histories: usize,
    /// Things that were left out and why.
    pub notes: Vec<String>,
    /// The slowest steps, the slowest first.
    slowest: Vec<(Duration, String)>,
}

impl RunResult {
    /// Takes in the differences of one case.
    pub(crate) fn add(&mut self, title: &str, differences: Vec<Difference>) {
        let (explained, unexplained): (Vec<_>, Vec<_>) = telling(differences)
            .into_iter()
            .map(|difference| (explanation(&difference), difference))
            .partition(|(known, _)| known.is_some());
        self.used.extend(explained.iter().filter_map(|(known, _)| *known));
        self.explained.extend(explained.into_iter().map(|(_, difference)| difference));
        if unexplained.is_empty() {
            self.passed += 1;
        } else {
            self.failed.push(title.to_owned());
        }
        self.differences.extend(unexplained.into_iter().map(|(_, difference)| difference));
    }

    /// Keeps a step if it is one of the slowest.
    pub(crate) fn took(&mut self, time: Duration, title: &str, line: &str) {
        if self.slowest.len() == SLOWEST && self.slowest.last().is_some_and(|(last, _)| *last >= time) {
            return;
        }
        let place = self.slowest.partition_point(|(other, _)| *other >= time);
        self.slowest.insert(place, (time, format!("[{title}] {line}")));
        self.slowest.truncate(SLOWEST);
    }

    /// The entries that explained nothing.
    pub(crate) fn unused(&self) -> Vec<&'static KnownDifference> {
        KNOWN.iter().enumerate().filter(|(index, _)| !self.used.contains(index)).map(|(_, known)| known).collect()
    }

    /// The summary that is printed at the end.
    pub(crate) fn summary(&self, what: &str) -> String {
        let mut text = String::new();
        for (group, (real, embedded)) in &self.ran {
            let _ = writeln!(text, "parity {group:<12} {real:>4} on the real server {embedded:>4} on the embedded one");
        }
        let mut used = self.used.clone();
        used.sort_unstable();
        used.dedup();
        if self.histories > 0 {
            let _ = writeln!(text, "parity {what}: {} histories", self.histories);
        }
        if !used.is_empty() {
            let _ = writeln!(text, "parity {what}: {} known differences used of {}", used.len(), KNOWN.len());
        }
        let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for known in used.iter().map(|index| &KNOWN[*index]) {
            *places.entry((known.case, known.reason)).or_default() += 1;
        }
        for ((case, reason), count) in places {
            let _ = writeln!(text, "parity {what}: known: {case} ({count}): {reason}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "parity {what}: note: {note}");
        }
        for (time, step) in &self.slowest {
            let _ = writeln!(text, "slow: {:>6.1} s {step}", time.as_secs_f64());
        }
        let _ = writeln!(text, "parity {what}: {} passed, {} failed", self.passed, self.failed.len());
        text
    }

    /// Prints and writes what was found, and tells whether there was no unexplained difference.
    pub(crate) fn finish(&self, options: &Options, what: &str) -> bool {
        if let Some(path) = &options.report {
            let path = if what == "cases" { path.clone() } else { path.with_extension(format!("{what}.md")) };
            let text = format!("# Differences of {what}\n\n{}{}{}", self.summary(what), self.details(), self.known());
            write(&path, &text);
        }
        print!("{}", self.details());
        for title in &self.failed {
            println!("parity {what}: FAILED {title}");
        }
        print!("{}", self.summary(what));
        self.failed.is_empty()
    }

    /// All known differences.
    fn known(&self) -> String {
        let mut text = "\n# Known differences\n".to_owned();
        for Difference { case, step, line, at, real, embedded } in &self.explained {
            let _ = writeln!(text, "\n[{case}] step {step} `{line}`\n  {at}\n    {real}\n    {embedded}");
        }
        text
    }

    /// All unexplained differences, each kind once, the most frequent first.
    pub(crate) fn details(&self) -> String {
        let mut kinds: BTreeMap<DifferenceKind, Vec<&Difference>> = BTreeMap::new();
        for difference in &self.differences {
            kinds.entry(DifferenceKind::of(difference)).or_default().push(difference);
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
        let mut text = String::new();
        for (kind, found) in kinds {
            show(&mut text, &kind, &found);
        }
        text
    }
}

/// The differences without those that follow from another: where the status differs the object does, too.
pub(crate) fn telling(differences: Vec<Difference>) -> Vec<Difference> {
    let other_status: BTreeSet<usize> =
        differences.iter().filter(|found| found.at == "status").map(|found| found.step).collect();
    let telling = |found: &Difference| {
        matches!(found.at.as_str(), "status" | "body.message" | "body.reason" | SOUND)
            || !other_status.contains(&found.step)
    };
    differences.into_iter().filter(telling).collect()
}

/// What like differences have in common: the place without positions, and the values without the cases' names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DifferenceKind {
    at: String,
    real: String,
    embedded: String,
}

impl DifferenceKind {
    fn of(difference: &Difference) -> Self {
        static ID: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?:[a-z]+-|h)\d+-[b-z]{4}(?:-\d+)?").expect("a constant"));
        let without = |text: &str| ID.replace_all(text, "<id>").into_owned();
        let parts = difference.at.split('.').map(|part| if part.parse::<usize>().is_ok() { "*" } else { part });
        let at = without(&parts.collect::<Vec<_>>().join("."));
        Self { at, real: without(&difference.real), embedded: without(&difference.embedded) }
    }
}

fn show(text: &mut String, kind: &DifferenceKind, found: &[&Difference]) {
    let _ = writeln!(text, "\n{} × `{}`", found.len(), kind.at);
    let _ = writeln!(text, "    real:     {}\n    embedded: {}", kind.real, kind.embedded);
    for Difference { case, step, line, .. } in found.iter().take(4) {
        let _ = writeln!(text, "    in [{case}] step {step} `{line}`");
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

#[cfg(test)]
mod tests {
    use super::RunResult;
    use crate::compare::Difference;

    fn difference(case: &str, step: usize, at: &str) -> Difference {
        let text = |text: &str| text.to_owned();
        Difference { case: text(case), step, line: text("GET x"), at: text(at), real: text("1"), embedded: text("2") }
    }

    #[test]
    fn the_most_frequent_kind_comes_first() {
        let mut outcome = RunResult::default();
        outcome.add("a", vec![difference("a", 1, "warnings")]);
        outcome.add("b", vec![difference("b", 1, "body.items.0.y")]);
        outcome.add("c", vec![difference("c", 1, "body.items.3.y")]);

        let details = outcome.details();

        assert!(details.find("2 × `body.items.*.y`") < details.find("1 × `warnings`"), "{details}");
        assert!(outcome.summary("cases").ends_with("parity cases: 0 passed, 3 failed\n"));
    }

    #[test]
    fn the_slowest_steps_are_kept_in_order() {
        let mut outcome = RunResult::default();
        for seconds in [3, 9, 1, 7, 12, 2, 4, 11, 5, 6, 8, 10] {
            outcome.took(std::time::Duration::from_secs(seconds), "case", &format!("step {seconds}"));
        }

        let summary = outcome.summary("cases");
        let told: Vec<&str> = summary.lines().filter(|line| line.starts_with("slow:")).collect();
        assert_eq!(told.len(), 10);
        assert!(told[0].ends_with("12.0 s [case] step 12") && told[9].ends_with("3.0 s [case] step 3"), "{told:?}");
    }

    #[test]
    fn what_follows_from_another_status_is_left_out() {
        let mut outcome = RunResult::default();
        outcome.add("a", vec![difference("a", 1, "status"), difference("a", 1, "body.metadata.name")]);

        let details = outcome.details();

        assert!(details.contains("`status`") && !details.contains("body.metadata.name"), "{details}");
    }
}
