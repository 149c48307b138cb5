//! The journal in one SQLite file: WAL, `synchronous=FULL`, one transaction a commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, params};

use super::journal::{Commit, Journal, JournalError, JournalRow, Recovered};
use super::{ObjectText, StoreKey};
use crate::encode::labels_of_tail;

/// `PRAGMA application_id` of our files: "PTLN".
const APPLICATION_ID: i64 = 0x5054_4C4E;

/// Each entry takes the file from its index to the next format; `PRAGMA user_version` is how many were run.
const UPGRADES: &[&str] = &[
    "CREATE TABLE revisions (
        version INTEGER PRIMARY KEY,
        collection TEXT NOT NULL,
        path TEXT NOT NULL,
        body BLOB
     );",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
     INSERT INTO settings VALUES ('compacted', 0);",
];

/// A journal in a SQLite file.
#[derive(Debug)]
pub struct SqliteJournal {
    path: PathBuf,
    connection: Connection,
    compacted: u64,
}

impl SqliteJournal {
    /// Opens a file, making it where it does not exist and upgrading it where it is older.
    ///
    /// # Errors
    /// A file of another program, of a newer Portolan, a damaged one, or one in use is refused and left as it is.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let existing = std::fs::metadata(path).is_ok_and(|m| m.len() > 0);
        if existing {
            refuse_foreign(path)?;
        }
        let connection = Connection::open(path).map_err(|e| classify(path, "opening the data file", e))?;
        let mut journal = Self { path: path.to_owned(), connection, compacted: 0 };
        if !existing {
            journal.mark()?;
        }
        journal.configure()?;
        if existing {
            journal.check()?;
        }
        journal.upgrade()?;
        Ok(journal)
    }

    /// The value of `PRAGMA synchronous` on the live connection (2 is FULL).
    pub fn synchronous(&self) -> Result<i64, JournalError> {
        self.pragma("synchronous")
    }

    /// Writes our id into a new file's header, while that is still written in place.
    fn mark(&self) -> Result<(), JournalError> {
        let sql =
            format!("PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; PRAGMA application_id={APPLICATION_ID};");
        self.connection.execute_batch(&sql).map_err(|e| classify(&self.path, "setting up the data file", e))
    }

    fn configure(&self) -> Result<(), JournalError> {
        // Exclusive: a second process is told so at once, and no shared-memory file is needed.
        self.connection
            .execute_batch(
                "PRAGMA locking_mode=EXCLUSIVE;
                 PRAGMA journal_mode=WAL;
                 PRAGMA synchronous=FULL;
                 PRAGMA cache_size=-2048;
                 PRAGMA temp_store=MEMORY;
                 PRAGMA wal_autocheckpoint=2000;
                 BEGIN IMMEDIATE; COMMIT;",
            )
            .map_err(|e| classify(&self.path, "setting up the data file", e))
    }

    fn check(&self) -> Result<(), JournalError> {
        let verdict: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|e| classify(&self.path, "checking the data file", e))?;
        if verdict == "ok" { Ok(()) } else { Err(JournalError::Damaged { path: self.path.clone(), detail: verdict }) }
    }

    fn upgrade(&mut self) -> Result<(), JournalError> {
        let found = self.pragma("user_version")?;
        let known = i64::try_from(UPGRADES.len()).expect("few upgrades");
        if found > known {
            return Err(JournalError::TooNew { path: self.path.clone(), found, known });
        }
        let classify = |e| classify(&self.path, "upgrading the data file", e);
        let transaction = self.connection.transaction().map_err(classify)?;
        for (step, sql) in UPGRADES.iter().enumerate().skip(usize::try_from(found).unwrap_or(0)) {
            transaction.execute_batch(sql).map_err(classify)?;
            transaction
                .pragma_update(None, "user_version", i64::try_from(step + 1).unwrap_or(known))
                .map_err(classify)?;
        }
        transaction.commit().map_err(classify)
    }

    fn pragma(&self, name: &str) -> Result<i64, JournalError> {
        self.connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(|e| classify(&self.path, "reading the data file's settings", e))
    }

    fn rows(&self) -> rusqlite::Result<Vec<JournalRow>> {
        let mut select =
            self.connection.prepare("SELECT version, collection, path, body FROM revisions ORDER BY version")?;
        let mut collections: std::collections::HashSet<Arc<str>> = std::collections::HashSet::new();
        let rows = select.query_map([], |row| {
            let name = row.get_ref(1)?.as_str()?;
            let collection = collections.get(name).cloned().unwrap_or_else(|| {
                let shared: Arc<str> = Arc::from(name);
                collections.insert(shared.clone());
                shared
            });
            let body: Option<Vec<u8>> = row.get(3)?;
            Ok(JournalRow {
                version: row.get::<_, i64>(0)?.unsigned_abs(),
                key: StoreKey { collection, path: Arc::from(row.get_ref(2)?.as_str()?) },
                body: body.map(|tail| ObjectText { labels: None, tail: Bytes::from(tail) }),
            })
        })?;
        rows.collect()
    }

    /// Reads the labels of every object, which also tells whether their texts are whole.
    fn read_labels(&self, rows: &mut [JournalRow]) -> Result<(), JournalError> {
        for row in rows {
            let Some(body) = &mut row.body else { continue };
            body.labels = labels_of_tail(&body.tail).map_err(|_| JournalError::Damaged {
                path: self.path.clone(),
                detail: format!("revision {} of {}/{} is no object", row.version, row.key.collection, row.key.path),
            })?;
        }
        Ok(())
    }

    fn compacted(&self) -> rusqlite::Result<u64> {
        let value: i64 =
            self.connection.query_row("SELECT value FROM settings WHERE name='compacted'", [], |row| row.get(0))?;
        Ok(value.unsigned_abs())
    }

    fn write(&mut self, commit: &Commit<'_>) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO revisions VALUES (?1, ?2, ?3, ?4)")?;
            for row in commit.rows {
                let body = row.body.as_ref().map(|b| b.tail.as_ref());
                insert.execute(params![signed(row.version), &*row.key.collection, &*row.key.path, body])?;
            }
            let mut delete = transaction.prepare_cached("DELETE FROM revisions WHERE version=?1")?;
            for version in commit.superseded {
                delete.execute([signed(*version)])?;
            }
            if commit.compacted != self.compacted {
                let mut set = transaction.prepare_cached("UPDATE settings SET value=?1 WHERE name='compacted'")?;
                set.execute([signed(commit.compacted)])?;
            }
        }
        transaction.commit()
    }
}

impl Journal for SqliteJournal {
    fn recover(&mut self) -> Result<Recovered, JournalError> {
        let read = |e| classify(&self.path, "reading the data file", e);
        let mut recovered = Recovered { rows: self.rows().map_err(read)?, compacted: self.compacted().map_err(read)? };
        self.read_labels(&mut recovered.rows)?;
        self.compacted = recovered.compacted;
        Ok(recovered)
    }

    fn commit(&mut self, commit: &Commit<'_>) -> Result<(), JournalError> {
        let written = self.write(commit);
        written.map_err(|e| classify(&self.path, "writing the data file", e))?;
        self.compacted = commit.compacted;
        Ok(())
    }

    fn blocks(&self) -> bool {
        true
    }
}

/// Versions fit: SQLite's integers are 63 bits and we count from one.
fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// Looks at a file without changing it.
fn refuse_foreign(path: &Path) -> Result<(), JournalError> {
    let foreign = || JournalError::Foreign { path: path.to_owned() };
    let mut header = [0_u8; 72];
    {
        use std::io::Read as _;
        let mut file =
            std::fs::File::open(path).map_err(|source| JournalError::Io { step: "opening the data file", source })?;
        file.read_exact(&mut header).map_err(|_| foreign())?;
    }
    if &header[..16] != b"SQLite format 3\0" {
        return Err(foreign());
    }
    // Our id is in the header from the first write on, before anything goes to the write-ahead log.
    let id = u32::from_be_bytes([header[68], header[69], header[70], header[71]]);
    if i64::from(id) != APPLICATION_ID {
        return Err(foreign());
    }
    refuse_cut_off(path, &header)
}

/// A file without a write-ahead log must hold every page that its header counts.
fn refuse_cut_off(path: &Path, header: &[u8; 72]) -> Result<(), JournalError> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if length(Path::new(&log)) > 0 {
        return Ok(());
    }
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes.max(512)),
    };
    let pages = u64::from(u32::from_be_bytes([header[28], header[29], header[30], header[31]]));
    let found = length(path);
    if found % page == 0 && found >= pages * page {
        return Ok(());
    }
    Err(JournalError::Damaged { path: path.to_owned(), detail: "it was cut off".to_owned() })
}

fn classify(path: &Path, step: &'static str, error: rusqlite::Error) -> JournalError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => JournalError::Busy { path: path.to_owned() },
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            JournalError::Damaged { path: path.to_owned(), detail: error.to_string() }
        }
        _ => JournalError::Sqlite { step, source: error },
    }
}
