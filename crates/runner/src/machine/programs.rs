//! The name of a program → its file on this machine, and which programs of the table are here.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::processes::find_executable;
use crate::pod::programs::{LocalProgram, PROGRAMS, ProgramSource};

/// Names the folder with the programs of `named` that `tools/named/build.sh` prints.
pub const NAMED_VARIABLE: &str = "PORTOLAN_NAMED";
/// Names the folder of things that are made once, where not `~/.cache/portolan`.
const CACHE_VARIABLE: &str = "PORTOLAN_CACHE";
/// Where such things are whose users could not get into root's home.
const OPEN_CACHE: &str = "/var/cache/portolan";

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
    find_executable(name).or_else(|| unpacked(name, env::var_os(NAMED_VARIABLE).map(PathBuf::from), &caches()))
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

/// As `tools/named/build.sh` looks for them.
fn caches() -> Vec<PathBuf> {
    if let Some(named) = env::var_os(CACHE_VARIABLE).filter(|value| !value.is_empty()) {
        return vec![named.into()];
    }
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/portolan"));
    home.into_iter().chain([PathBuf::from(OPEN_CACHE)]).collect()
}

/// Only `named` is unpacked: the folder given has it, or the last version of a cache, in `CACHE/named/VERSION-SYSTEM/bin`.
fn unpacked(name: &str, given: Option<PathBuf>, caches: &[PathBuf]) -> Option<PathBuf> {
    if name != "named" {
        return None;
    }
    let versions = |cache: &PathBuf| {
        let entries = fs::read_dir(cache.join("named")).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path().join("bin")).collect();
        folders.sort();
        folders.into_iter().rev().collect::<Vec<_>>()
    };
    let folders = given.into_iter().chain(caches.iter().flat_map(versions));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_named(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("named"), "").unwrap();
        folder.join("named")
    }

    #[test]
    fn what_was_unpacked_is_found_in_the_folder_given_before_the_cache_and_the_latest_of_that() {
        let home = tempfile::tempdir().unwrap();
        let caches = [home.path().join("none"), home.path().join("cache")];
        assert_eq!(unpacked("named", None, &caches), None);
        with_named(&home.path().join("cache/named/9.18.49-debian12-x86_64-r1/bin"));
        let latest = with_named(&home.path().join("cache/named/9.20.1-debian13-x86_64-r1/bin"));
        let given = with_named(&home.path().join("given/bin"));

        assert_eq!(unpacked("named", None, &caches), Some(latest));
        assert_eq!(unpacked("named", Some(home.path().join("given/bin")), &caches), Some(given));
        assert_eq!(unpacked("cloudflared", None, &caches), None);
    }

    #[test]
    fn the_runners_own_programs_are_always_here() {
        let here = programs_here(Path::new("/own"));

        let file = |name: &str| here.iter().find(|one| one.program.name == name).and_then(|one| one.file.clone());
        assert_eq!(file("portolan"), Some("/own".into()));
        assert!(file("tools").is_some_and(|file| file.is_absolute()));
    }
}
