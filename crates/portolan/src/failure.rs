//! What went wrong, and what to do next: the only error a user of the command line sees.

pub(crate) use portolan_apply::failure::{Failure, Outcome};

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
