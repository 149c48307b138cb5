//! Whether a process lives and is ready: named checks → what a probe is answered.
//!
//! It lives while its runtime gives tasks their turn and no job has ended by itself: only a new process helps otherwise. It
//! is ready when every job runs with its first lists complete, or stands by. An API server that goes away later makes
//! neither fail: nothing would be better in a new process, and metrics of pods that are not ready are not scraped.

use std::fmt::Write as _;
use std::sync::Arc;

/// One thing that a probe looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is looked at.
    pub name: String,
    /// Why it is not well.
    pub failure: Option<String>,
}

impl Check {
    /// Something that is well.
    pub fn passed(name: impl Into<String>) -> Self {
        Self { name: name.into(), failure: None }
    }

    /// Something that is not well, and why.
    pub fn failed(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), failure: Some(why.into()) }
    }

    /// Well if nothing is wrong.
    pub fn of(name: impl Into<String>, failure: Option<String>) -> Self {
        Self { name: name.into(), failure }
    }
}

/// What checks say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    probe: &'static str,
    checks: Vec<Check>,
}

impl Health {
    /// Whether all is well.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| check.failure.is_none())
    }

    /// One line a check, in the form of Kubernetes' own components.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for Check { name, failure } in &self.checks {
            match failure {
                None => writeln!(text, "[+]{name} ok"),
                Some(why) => writeln!(text, "[-]{name} failed: {why}"),
            }
            .expect("a String takes everything");
        }
        let outcome = if self.is_well() { "passed" } else { "failed" };
        writeln!(text, "{} check {outcome}", self.probe).expect("a String takes everything");
        text
    }
}

type Probe = Arc<dyn Fn() -> Vec<Check> + Send + Sync>;

/// Answers whether the process lives and is ready.
#[derive(Clone)]
pub struct Probes {
    live: Probe,
    ready: Probe,
}

impl Probes {
    /// Probes that ask these.
    pub fn new(
        live: impl Fn() -> Vec<Check> + Send + Sync + 'static,
        ready: impl Fn() -> Vec<Check> + Send + Sync + 'static,
    ) -> Self {
        Self { live: Arc::new(live), ready: Arc::new(ready) }
    }

    /// Whether the process should go on.
    pub fn live(&self) -> Health {
        Health { probe: "livez", checks: (self.live)() }
    }

    /// Whether the process does its work.
    pub fn ready(&self) -> Health {
        Health { probe: "readyz", checks: (self.ready)() }
    }

    /// Whether the process is ready.
    pub fn is_ready(&self) -> bool {
        self.ready().is_well()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_checks_are_listed_and_one_that_fails_says_why() {
        let probes = Probes::new(
            || vec![Check::passed("runtime")],
            || vec![Check::passed("harbour/tasks"), Check::failed("pilots", "it has not begun")],
        );

        assert_eq!(probes.live().lines(), "[+]runtime ok\nlivez check passed\n");
        let ready = probes.ready();
        assert!(!ready.is_well());
        assert_eq!(ready.lines(), "[+]harbour/tasks ok\n[-]pilots failed: it has not begun\nreadyz check failed\n");
    }
}
