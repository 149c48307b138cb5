//! Journals that keep nothing, for tests and for servers that need not last.

use std::sync::Arc;

use super::journal::{Commit, Journal, JournalError, JournalRow, Recovered};

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

/// Begins with what another store held, and forgets everything else.
#[derive(Debug)]
pub struct PreparedJournal {
    rows: Arc<[JournalRow]>,
    version: u64,
}

impl PreparedJournal {
    /// Begins with these objects, by ascending version, as they stood at a version.
    pub fn new(rows: Arc<[JournalRow]>, version: u64) -> Self {
        Self { rows, version }
    }
}

impl Journal for PreparedJournal {
    /// How the objects came to be is not told: whoever asks for an older version is answered as after a compaction.
    fn recover(&mut self) -> Result<Recovered, JournalError> {
        Ok(Recovered { rows: self.rows.to_vec(), compacted: self.version })
    }

    fn commit(&mut self, _: &Commit<'_>) -> Result<(), JournalError> {
        Ok(())
    }

    fn blocks(&self) -> bool {
        false
    }
}
