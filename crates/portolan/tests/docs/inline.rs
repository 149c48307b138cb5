//! Sentences → commands of Portolan in them that it does not have: a wrong verb, a flag that is no more.

use std::collections::BTreeMap;

use super::page::{Fault, Page};
use crate::support::portolan;

/// Mentions of `portolan VERB --flag` whose verb or flag the binary does not know.
pub fn unknown(pages: &[Page]) -> Vec<Fault> {
    let mut helps = BTreeMap::new();
    let mut faults = Vec::new();
    for page in pages {
        for (line, text) in page.prose() {
            for span in text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("portolan ")) {
                faults.extend(wrong(span, &mut helps).map(|why| page.fault(line, format!("`{span}`: {why}"))));
            }
        }
    }
    faults
}

fn wrong(span: &str, helps: &mut BTreeMap<String, Option<String>>) -> Option<String> {
    let is_verb = |word: &&str| word.chars().all(|one| one.is_ascii_lowercase());
    let words: Vec<&str> = span.split_whitespace().skip(1).collect();
    let verbs: Vec<&str> = words.iter().copied().take(2).take_while(is_verb).collect();
    let verb = verbs.first()?;
    let help = helps.entry(verbs.join(" ")).or_insert_with(|| help(&verbs)).as_ref();
    let Some(help) = help else { return Some(format!("there is no command {verb}")) };
    let flags = words.iter().filter_map(|word| word.trim_start_matches('[').strip_prefix("--"));
    let mut flags = flags.map(|flag| flag.split(['=', '|', ',', ']']).next().unwrap_or_default());
    let strange = flags.find(|flag| !flag.is_empty() && !help.contains(&format!("--{flag}")))?;
    Some(format!("it has no flag --{strange}"))
}

/// What the binary says about a verb, or about the verb below it where it has one.
fn help(verbs: &[&str]) -> Option<String> {
    let asked = portolan().args(verbs).arg("--help").output().expect("the binary runs");
    asked.status.success().then(|| String::from_utf8_lossy(&asked.stdout).into_owned())
}
