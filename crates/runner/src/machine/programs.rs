//! The name of a program → its file on this machine, and which programs of the table are here.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::processes::find_executable;
use crate::pod::programs::{LocalProgram, PROGRAMS, ProgramSource};

/// Names the folder that `named` was unpacked into.
pub const NAMED_VARIABLE: &str = "PORTOLAN_NAMED";
/// Names the folder of things that are made once, where not `~/.cache/portolan`.
const CACHE_VARIABLE: &str = "PORTOLAN_CACHE";

/// A program of the table, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramHere {
    /// The program.
    pub program: &'static LocalProgram,
    /// Its file; none where it is not on this machine.
    pub file: Option<PathBuf>,
}

/// The file of a program: one of the system's, else one that was unpacked into the cache.
pub fn program_file(name: &str) -> Option<PathBuf> {
    find_executable(name).or_else(|| unpacked(name, env::var_os(NAMED_VARIABLE).map(PathBuf::from), cache()))
}

/// All programs of the table; `own` is the runner's executable.
pub fn programs_here(own: &Path) -> Vec<ProgramHere> {
    let file = |program: &LocalProgram| match program.source {
        ProgramSource::Own(_) => Some(own.to_owned()),
        ProgramSource::Installed { file, .. } => program_file(file),
        ProgramSource::Applets { usual, names } => program_file(usual.first().or(names.first())?),
    };
    PROGRAMS.iter().map(|program| ProgramHere { program, file: file(program) }).collect()
}

fn cache() -> Option<PathBuf> {
    let named = env::var_os(CACHE_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache/portolan")))
}

/// Only `named` is unpacked: `FOLDER/bin/named`, the folder given, or the last of the cache that is called after it.
fn unpacked(name: &str, given: Option<PathBuf>, cache: Option<PathBuf>) -> Option<PathBuf> {
    if name != "named" {
        return None;
    }
    let entries = cache.into_iter().flat_map(|cache| fs::read_dir(cache).into_iter().flatten().flatten());
    let mut cached: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("named")).map(|e| e.path()).collect();
    cached.sort();
    let folders = given.into_iter().chain(cached.into_iter().rev());
    folders.map(|folder| folder.join("bin").join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_named(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join("bin/named"), "").unwrap();
        folder.join("bin/named")
    }

    #[test]
    fn what_was_unpacked_is_found_in_the_folder_given_before_the_cache_and_the_latest_of_that() {
        let home = tempfile::tempdir().unwrap();
        let cache = || Some(home.path().join("cache"));
        assert_eq!(unpacked("named", None, cache()), None);
        with_named(&home.path().join("cache/named-9.18"));
        let latest = with_named(&home.path().join("cache/named-9.20"));
        let given = with_named(&home.path().join("given"));

        assert_eq!(unpacked("named", None, cache()), Some(latest));
        assert_eq!(unpacked("named", Some(home.path().join("given")), cache()), Some(given));
        assert_eq!(unpacked("cloudflared", None, cache()), None);
    }

    #[test]
    fn the_runners_own_programs_are_always_here() {
        let here = programs_here(Path::new("/own"));

        let file = |name: &str| here.iter().find(|one| one.program.name == name).and_then(|one| one.file.clone());
        assert_eq!(file("portolan"), Some("/own".into()));
        assert!(file("tools").is_some_and(|file| file.is_absolute()));
    }
}
