//! What went wrong, and what to do next: an error for people.

use std::fmt;

/// A failed command: one sentence on what happened, and where we know it, one on what to do.
#[derive(Debug)]
pub struct Failure {
    what: String,
    next: Option<String>,
}

/// The result of every command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure that says what happened.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), next: None }
    }

    /// Adds what to do next.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// What happened, without what to do next.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What happened and what to do next, without a line break.
    pub fn in_a_line(&self) -> String {
        match &self.next {
            Some(next) => format!("{}; {next}", self.what),
            None => self.what.clone(),
        }
    }

    /// Puts the step or the object that failed in front.
    pub fn while_doing(mut self, step: impl fmt::Display) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_step_the_cause_and_the_next_move() {
        let failure = Failure::new("connection refused").next("start it").while_doing("listing pods");

        assert_eq!(failure.to_string(), "error: listing pods: connection refused\n  next: start it");
    }
}
