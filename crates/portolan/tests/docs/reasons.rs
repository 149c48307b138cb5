//! The reasons that Portolan can give, against the page that explains them and the sources that write them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use portolan_core::reasons::Reason;

use super::page::{Fault, Page};

/// The page with an entry for each.
pub const PAGE: &str = "docs/troubleshooting.md";

/// Lists of reasons that are no single job's.
const SHARED: [&[Reason]; 2] = [portolan_core::reasons::ALL, portolan_exposure::reasons::ALL];

/// Jobs that stand beside the list of jobs and that nobody can start yet, and where their reasons are: the page is for those who
/// meet a reason. A job that is in the list has no place here.
const NOT_STARTED: [(&str, &str); 1] = [("bind9", "crates/jobs/bind9/model/src/reasons.rs")];

/// Every list of reasons in the sources.
fn lists() -> impl Iterator<Item = &'static [Reason]> {
    SHARED.into_iter().chain(portolan_jobs::ALL.iter().flat_map(|job| job.sheet.reasons).copied())
}

/// What says a reason, with the reason as its first words.
const SAYING: [&str; 4] = ["NewCondition::", "Notice::", "Problem::", "Verdict::"];

/// Words that are also something else: types of events, and of a condition.
const AMBIGUOUS: [&str; 3] = ["Normal", "Warning", "InUse"];

/// Reasons by their word, with when they appear.
pub fn all() -> BTreeMap<&'static str, &'static str> {
    lists().flatten().map(|reason| (reason.word, reason.when)).collect()
}

/// Reasons without an entry, entries without a reason, and entries that do not say what to do.
pub fn unexplained(page: &Page) -> Vec<Fault> {
    let known = all();
    let entries: Vec<(usize, &str)> =
        page.headings().into_iter().filter(|(_, level, _)| *level == 3).map(|(line, _, text)| (line, text)).collect();
    let mut faults = Vec::new();
    for (word, when) in &known {
        let count = entries.iter().filter(|(_, text)| text == word).count();
        if count != 1 {
            faults.push(page.fault(1, format!("{word} has {count} entries instead of one; it appears:{when}")));
        }
    }
    for (line, text) in &entries {
        if !known.contains_key(text) {
            faults.push(page.fault(*line, format!("{text} is no reason that anything gives")));
        }
        let body: Vec<&str> = page.text.lines().skip(*line).take_while(|line| !line.starts_with('#')).collect();
        for part in ["**Shown by**", "**Do**"] {
            if !body.iter().any(|line| line.contains(part)) {
                faults.push(page.fault(*line, format!("the entry {text} lacks {part}")));
            }
        }
    }
    faults
}

/// Reasons that are written as text where a constant should stand.
pub fn literals(root: &Path) -> Vec<Fault> {
    let known = all();
    let mut faults = Vec::new();
    for (path, text) in sources(root) {
        // Tests may spell out what they expect.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if path.ends_with("reasons.rs") {
            continue;
        }
        for (line, word) in words(code) {
            let is_distinct = word.chars().filter(char::is_ascii_uppercase).count() > 1;
            if is_distinct && known.contains_key(word) && !AMBIGUOUS.contains(&word) {
                faults.push(fault(root, &path, line, word));
            }
        }
        let said = said(code).filter(|(_, word)| !AMBIGUOUS.contains(word));
        faults.extend(said.map(|(line, word)| fault(root, &path, line, word)));
    }
    faults
}

/// Names of constants that no code uses: reasons that nobody gives.
pub fn unused(root: &Path) -> Vec<String> {
    let sources = sources(root);
    let (lists, others): (Vec<_>, Vec<_>) = sources.iter().partition(|(path, _)| path.ends_with("src/reasons.rs"));
    let code = others.iter().map(|(_, text)| text.split("#[cfg(test)]").next().unwrap_or_default());
    let used: BTreeSet<&str> = code.flat_map(|text| text.split(|one: char| !is_of_name(one))).collect();
    let lines = lists.iter().flat_map(|(_, text)| text.lines());
    let names = lines.filter_map(|line| Some(line.strip_prefix("    ")?.split_once(" = ")?.0));
    let names = names.filter(|name| name.chars().all(is_of_name));
    names.filter(|name| !used.contains(name)).map(str::to_owned).collect()
}

/// Whether a character may be part of a constant's name.
fn is_of_name(one: char) -> bool {
    one.is_ascii_uppercase() || one == '_'
}

/// The number of lists that the sources declare, but for those of jobs that cannot be started.
pub fn declared(root: &Path) -> usize {
    let is_listed = |name: &str| portolan_jobs::ALL.iter().any(|job| job.sheet.name == name);
    let left_out = |path: &Path| NOT_STARTED.iter().any(|(job, file)| !is_listed(job) && path.ends_with(file));
    let lists = sources(root).into_iter().filter(|(path, _)| !left_out(path));
    lists.map(|(_, text)| text.matches("reasons! {\n    ///").count()).sum()
}

/// The number of lists that are looked at here.
pub fn listed() -> usize {
    lists().count()
}

fn fault(root: &Path, path: &Path, line: usize, word: &str) -> Fault {
    let path = path.strip_prefix(root).unwrap_or(path).to_owned();
    Fault { path, line, what: format!("the reason {word} is written as text: use its constant") }
}

/// Texts of one word each that begin with a capital, with their lines.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = code.lines().enumerate().filter(|(_, text)| !text.trim_start().starts_with("//"));
    lines.flat_map(|(index, text)| {
        text.split('"').skip(1).step_by(2).filter(|word| is_word(word)).map(move |word| (index + 1, word))
    })
}

/// Words that stand where a reason is expected: the first text after a constructor, before anything else is said.
fn said(code: &str) -> impl Iterator<Item = (usize, &str)> {
    SAYING.iter().flat_map(move |saying| code.match_indices(saying)).filter_map(move |(start, _)| {
        let call = &code[start..];
        let end = call.find(';').unwrap_or(call.len());
        let word = call[..end].split('"').nth(1)?;
        is_word(word).then(|| (code[..start].lines().count(), word))
    })
}

fn is_word(text: &str) -> bool {
    text.starts_with(|one: char| one.is_ascii_uppercase())
        && text.len() > 2
        && text.chars().all(|one| one.is_ascii_alphanumeric())
}

/// The sources of everything that writes conditions, events and verdicts.
fn sources(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in
        ["core", "engine", "cloudflare/api", "cloudflare/exposure", "cloudflare/publication", "jobs", "portolan/src"]
    {
        collect(&root.join("crates").join(folder), &mut found);
    }
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("it has entries")) {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "tests" {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && entry.file_name() != "tests.rs" {
            found.push((path.clone(), std::fs::read_to_string(&path).expect("a file can be read")));
        }
    }
}

mod tests {
    #[test]
    fn a_reason_written_as_text_is_found() {
        let code = "fn a() {\n    NewCondition::of(\n        READY,\n        \"NotHere\",\n        \"a message\",\n    );\n    Problem::invalid(x, \"no word\");\n    // \"ZoneNotFound\"\n}";

        assert_eq!(super::said(code).collect::<Vec<_>>(), [(2, "NotHere")]);
        assert_eq!(super::words(code).collect::<Vec<_>>(), [(4, "NotHere")]);
    }
}
