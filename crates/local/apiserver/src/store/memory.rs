//! A journal that keeps nothing, for tests and for servers that need not last.

use super::journal::{Commit, Journal, JournalError, Recovered};

/// Forgets everything.
#[derive(Debug, Default)]
pub struct MemoryJournal;

impl Journal for MemoryJournal {
    fn recover(&mut self) -> Result<Recovered, JournalError> {
        Ok(Recovered::default())
    }

    fn commit(&mut self, _: &Commit<'_>) -> Result<(), JournalError> {
        Ok(())
    }

    fn blocks(&self) -> bool {
        false
    }
}
