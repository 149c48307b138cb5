//! What to run, by the environment.

use std::ops::Range;
use std::path::PathBuf;

/// Histories and role sets: of sources that were not compared yet, of those that were, and in a soak, whose first
/// seed is given.
const NEW: (u64, u64) = (300, 25);
const UNCHANGED: (u64, u64) = (50, 5);
const SOAK: (u64, u64) = (1000, 50);

/// What to run and where to write more than the summary.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Only cases whose `group: name` contains this.
    pub filter: Option<String>,
    /// The seeds of the random histories.
    pub histories: Vec<u64>,
    /// The seeds of the random role sets.
    pub role_sets: Vec<u64>,
    /// Whether a pass counts for the sources as they are: nothing was left out.
    pub full: bool,
    /// How the random part was chosen.
    pub told: String,
    /// A file for all differences.
    pub report: Option<PathBuf>,
    /// A file for the real server's answers, to see what the cases do.
    pub transcripts: Option<PathBuf>,
}

impl Options {
    /// From `PORTOLAN_PARITY_FILTER`, `PORTOLAN_HISTORIES`, `PORTOLAN_ROLE_SETS`, `PORTOLAN_SEED`, `PORTOLAN_FRESH`,
    /// `PORTOLAN_PARITY_REPORT` and `PORTOLAN_PARITY_TRANSCRIPTS`; `pass` is what was said of a pass of the same
    /// sources.
    pub(crate) fn from_environment(pass: Option<&str>) -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let number = |name: &str| text(name).and_then(|value| value.parse().ok());
        let asked = RandomOptions {
            histories: number("PORTOLAN_HISTORIES"),
            role_sets: number("PORTOLAN_ROLE_SETS"),
            seed: number("PORTOLAN_SEED"),
            fresh: number("PORTOLAN_FRESH").unwrap_or_else(of_commit),
        };
        let filter = text("PORTOLAN_PARITY_FILTER");
        let random = asked.random(pass);
        Self {
            full: filter.is_none() && random.full,
            filter,
            histories: random.histories.seeds(),
            role_sets: random.role_sets.seeds(),
            told: random.told,
            report: text("PORTOLAN_PARITY_REPORT").map(PathBuf::from),
            transcripts: text("PORTOLAN_PARITY_TRANSCRIPTS").map(PathBuf::from),
        }
    }

    /// Whether the filter lets a title through.
    pub(crate) fn selects(&self, title: &str) -> bool {
        self.filter.as_deref().is_none_or(|filter| title.contains(filter))
    }
}

/// What the environment says of the random part.
struct RandomOptions {
    histories: Option<u64>,
    role_sets: Option<u64>,
    seed: Option<u64>,
    fresh: u64,
}

/// The random part of a run.
struct Random {
    histories: Seeds,
    role_sets: Seeds,
    full: bool,
    told: String,
}

/// Seeds that are the same each time, and others.
#[derive(Debug, PartialEq, Eq)]
struct Seeds {
    fixed: Range<u64>,
    fresh: Range<u64>,
}

impl Seeds {
    fn of(count: u64, fixed: u64, fresh: u64) -> Self {
        Self { fixed: 1..fixed + 1, fresh: fresh..fresh + (count - fixed) }
    }

    fn seeds(&self) -> Vec<u64> {
        self.fixed.clone().chain(self.fresh.clone()).collect()
    }

    fn told(&self) -> String {
        let ranges = [&self.fixed, &self.fresh].into_iter().filter(|range| !range.is_empty());
        let told: Vec<String> = ranges.map(|range| format!("{}…{}", range.start, range.end - 1)).collect();
        told.join(" and ")
    }
}

impl RandomOptions {
    fn random(&self, pass: Option<&str>) -> Random {
        let ((histories, role_sets), why) = match (self.seed, pass) {
            (Some(_), _) => (SOAK, "seeds as asked".to_owned()),
            (None, Some(pass)) => (UNCHANGED, format!("shortened: nothing changed since {pass}")),
            (None, None) => (NEW, "no pass of these sources is recorded".to_owned()),
        };
        let (histories, role_sets) = (self.histories.unwrap_or(histories), self.role_sets.unwrap_or(role_sets));
        let split = |count: u64, fixed: u64| match (self.seed, pass) {
            (Some(seed), _) => Seeds::of(count, 0, seed),
            (None, Some(_)) => Seeds::of(count, 0, self.fresh),
            (None, None) => Seeds::of(count, fixed, self.fresh),
        };
        // What is always the same finds what comes back; what the commit gives finds what is new.
        let (histories, role_sets) = (split(histories, histories / 3), split(role_sets, role_sets / 2));
        let (many, sets) = (histories.seeds().len() as u64, role_sets.seeds().len() as u64);
        let full = many >= NEW.0 && sets >= NEW.1;
        let told = format!(
            "{why}: {many} histories (seeds {}), {sets} role sets (seeds {})",
            histories.told(),
            role_sets.told()
        );
        Random { histories, role_sets, full, told }
    }
}

/// A number that the commit gives, far from the seeds that are always taken.
fn of_commit() -> u64 {
    u64::from_str_radix(commit().get(..8).unwrap_or_default(), 16).unwrap_or(1_000_000) + 1_000_000
}

/// The commit that the tree is at, or nothing.
pub(crate) fn commit() -> String {
    let said = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> RandomOptions {
        RandomOptions { histories: None, role_sets: None, seed: None, fresh: 9000 }
    }

    #[test]
    fn new_sources_are_compared_by_fixed_seeds_and_by_those_of_the_commit() {
        let random = asked().random(None);

        assert_eq!(random.histories, Seeds { fixed: 1..101, fresh: 9000..9200 });
        assert_eq!(random.role_sets, Seeds { fixed: 1..13, fresh: 9000..9013 });
        assert!(random.full);
        assert!(random.told.contains("300 histories (seeds 1…100 and 9000…9199)"), "{}", random.told);
    }

    #[test]
    fn sources_that_passed_are_compared_by_few_new_seeds_and_the_pass_is_told() {
        let random = asked().random(Some("the pass of noon"));

        assert_eq!(random.histories, Seeds { fixed: 1..1, fresh: 9000..9050 });
        assert_eq!(random.role_sets, Seeds { fixed: 1..1, fresh: 9000..9005 });
        assert!(!random.full, "a short run is no pass to shorten others by");
        assert!(random.told.contains("nothing changed since the pass of noon"), "{}", random.told);
    }

    #[test]
    fn a_soak_and_a_replay_take_the_seeds_that_they_are_given() {
        let soak = RandomOptions { seed: Some(7), ..asked() }.random(Some("the pass of noon"));
        let replay = RandomOptions { seed: Some(7), histories: Some(1), role_sets: Some(1), ..asked() }.random(None);

        assert_eq!((soak.histories.seeds().len(), soak.role_sets.seeds().len(), soak.full), (1000, 50, true));
        assert_eq!((replay.histories.seeds(), replay.role_sets.seeds(), replay.full), (vec![7], vec![7], false));
    }
}
