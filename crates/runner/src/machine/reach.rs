//! Where pods' files can be, and which executable they can start → places that the users of pods reach.
//!
//! Pods of a runner that is root are users of their own. What lies below a folder that only its owner passes through, as below
//! `/root`, is out of their reach: their folders then lie in the system's place for such data, and a link leads there.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// The runner's folder in a data directory.
const FOLDER: &str = "runner";
/// Where folders of pods lie whose data directory is out of their reach.
const ELSEWHERE: &str = "/var/lib/portolan";
/// The file that says whose folder it is.
const OWNER: &str = "data-directory";
/// Passing through, for everybody else.
const PASS: u32 = 0o001;
/// Reading and starting, for everybody else.
const START: u32 = 0o005;

/// The runner's folder for a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerPlace {
    /// The folder.
    pub folder: PathBuf,
    /// The folder that pods may not pass through, where that is why theirs lie elsewhere.
    pub closed: Option<PathBuf>,
}

/// The first folder on the way to a path, from the root, that other users may not pass through.
pub fn closed_folder(path: &Path) -> io::Result<Option<PathBuf>> {
    let path = path.canonicalize()?;
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    for folder in above {
        if fs::metadata(folder)?.permissions().mode() & PASS == 0 {
            return Ok(Some(folder.to_owned()));
        }
    }
    Ok(None)
}

/// The place for a data directory. One that pods' users are to reach is opened for passing through, and for nothing else.
pub fn runner_place(data: &Path) -> io::Result<RunnerPlace> {
    let own = data.join(FOLDER);
    if !rustix::process::geteuid().is_root() {
        return Ok(RunnerPlace { folder: own, closed: None });
    }
    fs::set_permissions(data, fs::Permissions::from_mode(0o711))?;
    match closed_folder(data)? {
        // Where it once was moved it stays: claims lie there.
        None => Ok(RunnerPlace { folder: fs::read_link(&own).unwrap_or(own), closed: None }),
        Some(closed) => Ok(RunnerPlace { folder: moved(data, &own, Path::new(ELSEWHERE))?, closed: Some(closed) }),
    }
}

/// The folder elsewhere that a data directory has; it is made where there is none, and what was there before moves along.
fn moved(data: &Path, own: &Path, elsewhere: &Path) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o711).create(elsewhere)?;
    forget_orphans(elsewhere);
    let data = data.canonicalize()?;
    if let Ok(known) = fs::read_link(own)
        && owner_of(&known).is_none_or(|owner| owner == data || !owner.exists())
    {
        make(&known, &data)?;
        return Ok(known);
    }
    let new = elsewhere.join(uuid::Uuid::new_v4().simple().to_string());
    match fs::symlink_metadata(own) {
        // A copy of another data directory, which goes on with its own.
        Ok(found) if found.is_symlink() => fs::remove_file(own)?,
        Ok(_) => fs::rename(own, &new)?,
        Err(_) => {}
    }
    make(&new, &data)?;
    symlink(&new, own)?;
    Ok(new)
}

fn make(folder: &Path, data: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o711).create(folder)?;
    fs::write(folder.join(OWNER), data.as_os_str().as_encoded_bytes())?;
    fs::set_permissions(folder.join(OWNER), fs::Permissions::from_mode(0o600))
}

fn owner_of(folder: &Path) -> Option<PathBuf> {
    fs::read_to_string(folder.join(OWNER)).ok().map(PathBuf::from)
}

/// Takes away what data directories left that are gone, unless claims lie there.
fn forget_orphans(elsewhere: &Path) {
    for folder in fs::read_dir(elsewhere).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_orphan = owner_of(&folder).is_some_and(|data| !data.exists() && data.parent().is_some_and(Path::exists));
        let has_claims = fs::read_dir(folder.join("claims")).is_ok_and(|mut claims| claims.next().is_some());
        if is_orphan && !has_claims {
            // What cannot be removed is tried again next time.
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

/// An executable that pods' users can start: this one, or where it is out of their reach the same below a folder.
pub fn reachable_executable(own: &Path, folder: &Path) -> io::Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return Ok(own.to_owned());
    }
    let is_open = fs::metadata(own).is_ok_and(|file| file.mode() & START == START);
    if is_open && closed_folder(own)?.is_none() {
        return Ok(own.to_owned());
    }
    fs::DirBuilder::new().recursive(true).mode(0o711).create(folder)?;
    let name = own.file_name().unwrap_or(own.as_os_str());
    let (reachable, half) = (folder.join(name), folder.join("half"));
    let _ = fs::remove_file(&half);
    // The same file costs nothing; on another disk it is copied. A file that was replaced since is read by its process.
    if !is_open || fs::hard_link(own, &half).is_err() {
        fs::copy(if own.exists() { own } else { Path::new("/proc/self/exe") }, &half)?;
        fs::set_permissions(&half, fs::Permissions::from_mode(0o755))?;
    }
    fs::rename(&half, &reachable)?;
    // Renaming one link of a file to another of the same file leaves both.
    let _ = fs::remove_file(&half);
    Ok(reachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(path: &Path) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn the_first_folder_that_nobody_else_passes_through_is_named() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("a/b")).unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o711)).unwrap();

        assert_eq!(closed_folder(&home.path().join("a/b")).unwrap(), None);
        closed(&home.path().join("a"));
        let expected = home.path().canonicalize().unwrap().join("a");
        assert_eq!(closed_folder(&home.path().join("a/b")).unwrap(), Some(expected));
    }

    #[test]
    fn what_pods_cannot_reach_moves_and_is_found_again() {
        let home = tempfile::tempdir().unwrap();
        let (data, elsewhere) = (home.path().join("data"), home.path().join("elsewhere"));
        let own = data.join(FOLDER);
        fs::create_dir_all(own.join("claims/default/kept")).unwrap();

        let first = moved(&data, &own, &elsewhere).unwrap();

        assert!(first.join("claims/default/kept").is_dir() && own.join("claims/default/kept").is_dir());
        assert_eq!(moved(&data, &own, &elsewhere).unwrap(), first);
    }

    #[test]
    fn a_copied_data_directory_has_pods_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let (data, copy, elsewhere) = (home.path().join("data"), home.path().join("copy"), home.path().join("else"));
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&copy).unwrap();
        let first = moved(&data, &data.join(FOLDER), &elsewhere).unwrap();
        symlink(&first, copy.join(FOLDER)).unwrap();

        let second = moved(&copy, &copy.join(FOLDER), &elsewhere).unwrap();

        assert_ne!(first, second);
        assert_eq!(fs::read_link(data.join(FOLDER)).unwrap(), first);
    }

    #[test]
    fn what_a_data_directory_left_goes_unless_claims_lie_there() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = home.path().join("elsewhere");
        let mut left = Vec::new();
        for name in ["one", "two"] {
            let data = home.path().join(name);
            fs::create_dir_all(&data).unwrap();
            left.push(moved(&data, &data.join(FOLDER), &elsewhere).unwrap());
            fs::remove_dir_all(data).unwrap();
        }
        fs::create_dir_all(left[1].join("claims/default/kept")).unwrap();

        forget_orphans(&elsewhere);

        assert_eq!([left[0].exists(), left[1].exists()], [false, true]);
    }

    #[test]
    fn an_executable_out_of_reach_is_put_where_pods_can_start_it() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o711)).unwrap();
        fs::create_dir(home.path().join("mine")).unwrap();
        closed(&home.path().join("mine"));
        let own = home.path().join("mine/program");
        fs::write(&own, "x").unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();

        for _ in 0..2 {
            let found = reachable_executable(&own, &home.path().join("programs")).unwrap();

            // Whoever is not root runs its pods as itself, and reaches all of its own.
            assert_eq!(found.starts_with(home.path().join("programs")), is_root());
            assert_eq!(closed_folder(&found).unwrap().is_none(), is_root());
            assert_eq!(fs::read_to_string(&found).unwrap(), "x");
        }
    }
}
