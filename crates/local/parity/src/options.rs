//! What to run, by the environment.

use std::path::PathBuf;

/// What to run and where to write more than the summary.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only cases whose `group: name` contains this.
    pub filter: Option<String>,
    /// How many random histories.
    pub histories: u64,
    /// The seed of the first history.
    pub seed: u64,
    /// A file for all differences.
    pub report: Option<PathBuf>,
    /// A file for the real server's answers, to see what the cases do.
    pub transcripts: Option<PathBuf>,
}

impl Options {
    /// From `PORTOLAN_PARITY_FILTER`, `PORTOLAN_HISTORIES`, `PORTOLAN_SEED`, `PORTOLAN_PARITY_REPORT` and
    /// `PORTOLAN_PARITY_TRANSCRIPTS`.
    pub fn from_environment() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let number = |name: &str, default: u64| text(name).and_then(|value| value.parse().ok()).unwrap_or(default);
        Self {
            filter: text("PORTOLAN_PARITY_FILTER"),
            histories: number("PORTOLAN_HISTORIES", 1000),
            seed: number("PORTOLAN_SEED", 1),
            report: text("PORTOLAN_PARITY_REPORT").map(PathBuf::from),
            transcripts: text("PORTOLAN_PARITY_TRANSCRIPTS").map(PathBuf::from),
        }
    }

    /// Whether the filter lets a title through.
    pub(crate) fn selects(&self, title: &str) -> bool {
        self.filter.as_deref().is_none_or(|filter| title.contains(filter))
    }
}
