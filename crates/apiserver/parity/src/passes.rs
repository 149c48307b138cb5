//! What both servers were compared with already: a digest of all that the embedded one is built from, and of the
//! cases → the pass that was recorded for it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// What the answers of either server depend on, below the root of the repository.
const SOURCES: [&str; 4] = ["crates/apiserver", "Cargo.lock", "Cargo.toml", "tools/controlplane/go.mod"];

/// The folder with what was passed.
#[derive(Clone, Debug)]
pub(crate) struct Passes {
    folder: PathBuf,
    digest: String,
}

impl Passes {
    /// Those of the sources as they are now, in the cache of the tools.
    pub(crate) fn of_tree() -> std::io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let cache = std::env::var_os("PORTOLAN_CACHE").map(PathBuf::from);
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/portolan");
        Self::new(&root, &cache.unwrap_or_else(home).join("parity"))
    }

    fn new(root: &Path, folder: &Path) -> std::io::Result<Self> {
        Ok(Self { folder: folder.to_owned(), digest: digest(root)? })
    }

    /// What was said of a full pass of the same sources.
    pub(crate) fn recorded(&self) -> Option<String> {
        std::fs::read_to_string(self.file()).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Remembers a full pass of these sources; a later one is told instead of an earlier one.
    pub(crate) fn record(&self, text: &str) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let unfinished = self.folder.join(format!("{}.{}", self.digest, std::process::id()));
        std::fs::write(&unfinished, format!("{text}\n"))?;
        std::fs::rename(unfinished, self.file())
    }

    fn file(&self) -> PathBuf {
        self.folder.join(&self.digest)
    }
}

fn digest(root: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        gather(&root.join(source), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let content = std::fs::read(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        hash.update(format!("{name}\n{}\n", content.len()));
        hash.update(content);
    }
    let mut digits = String::new();
    for byte in hash.finalize().iter().take(16) {
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

fn gather(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        gather(&entry?.path(), files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["crates/apiserver/a/src", "crates/other", "tools/controlplane"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let files = ["crates/apiserver/a/src/lib.rs", "crates/other/x", "Cargo.lock", "Cargo.toml", SOURCES[3]];
        for file in files {
            std::fs::write(root.path().join(file), file).unwrap();
        }
        root
    }

    #[test]
    fn a_pass_is_of_the_sources_that_passed() {
        let (root, folder) = (tree(), tempfile::tempdir().unwrap());
        let passes = || Passes::new(root.path(), folder.path()).unwrap();
        let change = |file: &str, text: &str| std::fs::write(root.path().join(file), text).unwrap();

        assert_eq!(passes().recorded(), None);
        passes().record("at noon").unwrap();
        assert_eq!(passes().recorded().as_deref(), Some("at noon"));
        change("crates/other/x", "something else");
        assert_eq!(passes().recorded().as_deref(), Some("at noon"), "what no server is built from does not count");
        for file in ["crates/apiserver/a/src/lib.rs", "Cargo.lock", SOURCES[3]] {
            let before = std::fs::read_to_string(root.path().join(file)).unwrap();
            change(file, "something else");
            assert_eq!(passes().recorded(), None, "{file}");
            change(file, &before);
        }
        std::fs::write(root.path().join("crates/apiserver/a/new.case"), "").unwrap();
        assert_eq!(passes().recorded(), None);
    }
}
