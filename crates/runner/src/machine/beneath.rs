//! A folder that a pod may write in, and a path below it → that path, made where it is not there, and never outside of the folder.
//!
//! The runner may be root and the pod may put links wherever it writes, at any moment: nothing is looked at first and done later. The kernel
//! itself is told not to leave the folder (openat2(2), `RESOLVE_BENEATH`; what a kubelet does about CVE-2017-1002101 and CVE-2021-25741,
//! `pkg/volume/util/subpath/subpath_linux.go`).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, mkdirat, open, openat, openat2};
use rustix::io::Errno;

use super::files::FileOwner;

const LOOKED_UP: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Where a path below a folder leads; what is not there is made, as folders of the owner.
pub fn beneath(folder: &Path, path: &Path, owner: Option<FileOwner>) -> io::Result<PathBuf> {
    let root = open(folder, LOOKED_UP.union(OFlags::DIRECTORY), Mode::empty())?;
    let mut done = PathBuf::from(".");
    for part in path.components() {
        let Component::Normal(part) = part else { continue };
        let parent = lookup(&root, &done)?;
        done.push(part);
        match lookup(&root, &done) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&parent, Path::new(part), owner)?,
            Err(error) => return Err(error),
        }
    }
    let found = lookup(&root, &done)?;
    fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

fn lookup(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    openat2(root, path, LOOKED_UP, Mode::empty(), ResolveFlags::BENEATH).map_err(|error| match error {
        Errno::XDEV | Errno::LOOP => io::Error::other("it leads out of the volume"),
        Errno::NOSYS => io::Error::other("this system cannot keep a path in its volume: Linux 5.6 or later is needed"),
        other => other.into(),
    })
}

/// A new folder. A link of its name that leads nowhere stands in the way.
fn make(parent: &OwnedFd, name: &Path, owner: Option<FileOwner>) -> io::Result<()> {
    mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
    let Some(owner) = owner else { return Ok(()) };
    let made = openat(parent, name, LOOKED_UP | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
    Ok(chownat(&made, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?)
}

/// An absolute path as one below a root of its own: `..` does not lead above that, as in a container.
pub fn below_root(path: &str) -> PathBuf {
    let mut below = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => below.push(part),
            // At the root it stays there.
            Component::ParentDir => drop(below.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let volume = home.path().canonicalize().unwrap().join("volume");
        fs::create_dir(&volume).unwrap();
        (home, volume)
    }

    fn made(volume: &Path, path: &str) -> io::Result<PathBuf> {
        beneath(volume, Path::new(path), None)
    }

    #[test]
    fn what_is_not_there_is_made_and_what_is_there_is_found() {
        let (_home, volume) = home();
        fs::write(volume.join("f"), "x").unwrap();
        symlink("f", volume.join("link")).unwrap();

        assert_eq!(made(&volume, "a/b").unwrap(), volume.join("a/b"));
        assert!(volume.join("a/b").is_dir());
        assert_eq!(made(&volume, "f").unwrap(), volume.join("f"));
        assert_eq!(made(&volume, "link").unwrap(), volume.join("f"));
        assert_eq!(made(&volume, ".").unwrap(), volume);
    }

    #[test]
    fn no_link_leads_out_and_nothing_is_made_beyond_one() {
        let (home, volume) = home();
        let outside = home.path().join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, volume.join("absolute")).unwrap();
        symlink("../outside", volume.join("relative")).unwrap();
        symlink("nowhere", volume.join("dangling")).unwrap();

        for path in ["absolute", "absolute/new", "relative", "relative/new/deep"] {
            let told = made(&volume, path).unwrap_err().to_string();
            assert_eq!(told, "it leads out of the volume", "{path}");
        }
        assert!(made(&volume, "dangling").is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_the_way_is_an_error() {
        let (_home, volume) = home();
        fs::write(volume.join("f"), "x").unwrap();

        assert!(made(&volume, "f/new").is_err());
    }

    #[test]
    fn a_path_stays_below_its_root() {
        let texts = ["/a/b", "a/../../etc", "/../../x", "/", "/./a/"].map(below_root);

        assert_eq!(texts, ["a/b", "etc", "x", "", "a"].map(PathBuf::from));
    }
}
