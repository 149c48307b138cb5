//! Runs of containers → notes on disk, one file each, so that a later runner finds what this one started.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The variable by which processes of a run are known, whoever started them.
pub const RUN_VARIABLE: &str = "PORTOLAN_RUN_ID";

/// The variable by which processes of a pod are known.
pub const POD_VARIABLE: &str = "PORTOLAN_POD_UID";

/// A process that was started for a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunNote {
    /// The id of the run.
    pub id: String,
    /// The pod's uid.
    pub pod: String,
    /// The container's name.
    pub container: String,
    /// The process, which leads a group of its own.
    pub process: i32,
    /// When it was born, as the kernel counts.
    pub born: u64,
    /// Which start of the machine that was.
    pub boot: String,
    /// The uid, where it is one that pods alone are given.
    #[serde(default)]
    pub user: Option<u32>,
}

/// The notes of a runner.
#[derive(Clone, Debug)]
pub struct RunNotes {
    folder: PathBuf,
}

impl RunNotes {
    /// Those in a folder, which is made where it is not there.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Keeps a note. It is whole or not there.
    pub fn keep(&self, note: &RunNote) -> io::Result<()> {
        let path = self.path(&note.id);
        let half = path.with_extension("half");
        fs::write(&half, serde_json::to_vec(note)?)?;
        fs::rename(half, path)
    }

    /// Forgets a run.
    pub fn forget(&self, id: &str) -> io::Result<()> {
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// All that are kept. What does not read as a note is taken away: no program was started before its note was whole.
    pub fn all(&self) -> io::Result<Vec<RunNote>> {
        let mut notes = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            match serde_json::from_slice(&fs::read(&path)?) {
                Ok(note) => notes.push(note),
                Err(_) => fs::remove_file(&path)?,
            }
        }
        Ok(notes)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(id: &str) -> RunNote {
        RunNote {
            id: id.into(),
            pod: "u".into(),
            container: "c".into(),
            process: 1,
            born: 2,
            boot: "b".into(),
            user: None,
        }
    }

    #[test]
    fn notes_are_kept_until_they_are_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let notes = RunNotes::in_folder(&home.path().join("runs")).unwrap();
        notes.keep(&note("a")).unwrap();
        notes.keep(&note("b")).unwrap();

        notes.forget("a").unwrap();
        notes.forget("a").unwrap();

        assert_eq!(notes.all().unwrap(), [note("b")]);
    }

    #[test]
    fn a_note_that_is_half_written_is_none() {
        let home = tempfile::tempdir().unwrap();
        let notes = RunNotes::in_folder(home.path()).unwrap();
        fs::write(home.path().join("x.half"), "{\"id\":").unwrap();

        assert_eq!(notes.all().unwrap(), []);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
