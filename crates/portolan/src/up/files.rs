//! The files that are kept applied: read when they change.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::failure::{Failure, Outcome};
use crate::manifest::{self, Manifest};

/// Files and folders, and how they were when last read.
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    recursive: bool,
    read: Option<Marks>,
}

/// What shows that a file changed.
type Marks = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

impl Files {
    /// Files that were not read yet.
    pub(crate) fn new(paths: Vec<PathBuf>, recursive: bool) -> Outcome<Self> {
        if paths.iter().any(|path| path.as_os_str() == "-") {
            return Err(Failure::new("standard input cannot be kept applied").next("give a file or a folder"));
        }
        Ok(Self { paths, recursive, read: None })
    }

    /// All objects if anything changed since the last call.
    pub(crate) fn changed(&mut self) -> Option<Outcome<Vec<Manifest>>> {
        if self.paths.is_empty() {
            return None;
        }
        let marks = self.marks();
        if self.read.as_ref() == Some(&marks) {
            return None;
        }
        self.read = Some(marks);
        Some(manifest::read(&self.paths, self.recursive))
    }

    fn marks(&self) -> Marks {
        // A folder that cannot be read shows as itself; reading the manifests then says why.
        let files = |path: &PathBuf| manifest::files_of(path, self.recursive).unwrap_or_else(|_| vec![path.clone()]);
        let mark = |file: PathBuf| {
            let found = std::fs::metadata(&file).ok();
            let mark = found.and_then(|found| Some((found.modified().ok()?, found.len())));
            (file, mark)
        };
        self.paths.iter().flat_map(files).map(mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    #[test]
    fn files_are_read_again_only_when_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, OBJECT).unwrap();
        let mut files = Files::new(vec![folder.path().to_owned()], false).unwrap();

        assert_eq!(files.changed().unwrap().unwrap().len(), 1);
        assert!(files.changed().is_none());
        std::fs::write(folder.path().join("b.yaml"), OBJECT).unwrap();
        assert_eq!(files.changed().unwrap().unwrap().len(), 2);
        std::fs::write(&file, "not: [valid").unwrap();
        assert!(files.changed().unwrap().is_err());
    }

    #[test]
    fn standard_input_is_refused() {
        assert!(Files::new(vec!["-".into()], false).is_err());
    }
}
