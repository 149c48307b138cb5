//! What makes writes last.

use std::path::PathBuf;

use super::{ObjectText, StoreKey};

/// One write as it is kept.
#[derive(Clone, Debug)]
pub struct JournalRow {
    /// Its version.
    pub version: u64,
    /// The object's place.
    pub key: StoreKey,
    /// Its text; `None` where the object went.
    pub body: Option<ObjectText>,
}

/// What a journal held when it was opened.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Rows by ascending version.
    pub rows: Vec<JournalRow>,
    /// The version up to which history was dropped.
    pub compacted: u64,
}

/// Rows that go in and rows that may go, as one commit.
#[derive(Debug)]
pub struct Commit<'a> {
    /// New rows.
    pub rows: &'a [JournalRow],
    /// Versions of rows that nothing needs any longer.
    pub superseded: &'a [u64],
    /// The version up to which history was dropped.
    pub compacted: u64,
}

/// Keeps writes across restarts. A commit that returned is durable.
pub trait Journal: Send {
    /// Everything kept so far; called once, first.
    fn recover(&mut self) -> Result<Recovered, JournalError>;
    /// Makes rows durable, all or none.
    fn commit(&mut self, commit: &Commit<'_>) -> Result<(), JournalError>;
    /// Whether `commit` waits for a disk, and so wants a thread of its own.
    fn blocks(&self) -> bool;
}

/// What can go wrong with a data file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another program's file.
    #[error(
        "{path} is not a Portolan data file; it was left untouched. Choose another --data-dir, or move that file away"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer Portolan wrote it.
    #[error(
        "{path} was written by a newer Portolan (its format is {found}, this one reads up to {known}); upgrade Portolan, or choose another --data-dir"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The format found.
        found: i64,
        /// The newest format that this program reads.
        known: i64,
    },
    /// Its pages do not fit together.
    #[error(
        "{path} is damaged ({detail}); it was left untouched. Restore it from a backup, or move it away to start empty"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Another process has it.
    #[error("{path} is in use by another process; stop that one first, or choose another --data-dir")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("{step}")]
    Sqlite {
        /// What was being done.
        step: &'static str,
        /// Why it failed.
        #[source]
        source: rusqlite::Error,
    },
    /// The operating system refused something.
    #[error("{step}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}
