//! The differences that are meant, each with its reason. An entry that no longer differs is an error.

use crate::compare::Difference;

/// A place where the embedded server answers differently and why that is right, or accepted for now.
#[derive(Debug)]
pub(crate) struct Known {
    /// The start of the case's title, `group: name`; empty for all.
    pub case: &'static str,
    /// A part of the place in the answer; empty for all.
    pub at: &'static str,
    pub reason: &'static str,
}

/// Every accepted difference.
pub(crate) const KNOWN: &[Known] = &[];

impl Known {
    /// Whether this entry explains the difference.
    pub(crate) fn explains(&self, difference: &Difference) -> bool {
        difference.case.starts_with(self.case) && difference.at.contains(self.at)
    }
}
