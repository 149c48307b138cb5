//! What went wrong, and what to do next: the only error a user of the command line sees.

use std::fmt;

/// A failed command: one sentence on what happened, and where we know it, one on what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    next: Option<String>,
}

/// The result of every command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure that says what happened.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), next: None }
    }

    /// Adds what to do next.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// What happened, without what to do next.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// What happened and what to do next, without a line break.
    pub(crate) fn in_a_line(&self) -> String {
        match &self.next {
            Some(next) => format!("{}; {next}", self.what),
            None => self.what.clone(),
        }
    }

    /// Puts the step or the object that failed in front.
    pub(crate) fn while_doing(mut self, step: impl fmt::Display) -> Self {
        self.what = format!("{step}: {}", self.what);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "error: {}", self.what)?;
        match &self.next {
            Some(next) => write!(out, "\n  next: {next}"),
            None => Ok(()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(format!("{error:#}"))
    }
}

/// The failures of a command over many objects: each is told at once, the sum at the end.
pub(crate) struct Tally {
    total: usize,
    failed: usize,
    only: Option<Failure>,
}

impl Tally {
    /// Nothing has failed yet of `total` objects.
    pub(crate) fn of(total: usize) -> Self {
        Self { total, failed: 0, only: None }
    }

    /// Records a failure. That of the only object is kept for the end, so that it is told once.
    pub(crate) fn record(&mut self, failure: Failure) {
        self.failed += 1;
        if self.total == 1 {
            self.only = Some(failure);
        } else {
            eprintln!("{failure}");
        }
    }

    /// Success only if nothing failed; else how many could not be `verb`.
    pub(crate) fn finish(self, verb: &str, next: &str) -> Outcome {
        match (self.failed, self.only) {
            (0, _) => Ok(()),
            (_, Some(failure)) => Err(failure),
            (failed, None) => {
                Err(Failure::new(format!("{failed} of {} objects could not be {verb}", self.total)).next(next))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_step_the_cause_and_the_next_move() {
        let failure = Failure::new("connection refused").next("start it").while_doing("listing pods");

        assert_eq!(failure.to_string(), "error: listing pods: connection refused\n  next: start it");
    }

    #[test]
    fn the_failure_of_the_only_object_is_the_failure() {
        let mut tally = Tally::of(1);
        tally.record(Failure::new("no"));

        assert_eq!(tally.finish("applied", "x").unwrap_err().to_string(), "error: no");
    }

    #[test]
    fn failures_among_many_are_counted() {
        let mut tally = Tally::of(3);
        tally.record(Failure::new("no"));

        assert!(tally.finish("applied", "x").unwrap_err().to_string().contains("1 of 3 objects could not be applied"));
        assert!(Tally::of(3).finish("applied", "x").is_ok());
    }
}
