//! The files of a volume → a folder in which all of them change at once (`pkg/volume/util/atomic_writer.go`).
//!
//! ```text
//! app.conf  → ..data/app.conf
//! ..data    → ..files-7
//! ..files-7/app.conf
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use crate::pod::volumes::{VolumeFile, VolumeFiles, entry_names};

const DATA: &str = "..data";
const NEXT: &str = "..data-next";
const PREFIX: &str = "..files-";

/// Whose files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOwner {
    /// The uid.
    pub user: u32,
    /// The gid.
    pub group: u32,
}

/// What became of a volume's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesChange {
    /// They are other ones now.
    Replaced,
    /// They were as they should be.
    Unchanged,
}

/// Puts the files into the folder, which is made where it is not there. Who reads sees all of the old ones or all of the new ones. The files are
/// the owner's, so that it can read them whatever their mode; the folders are the runner's, so that no link in them is anybody else's.
pub fn put_files(folder: &Path, files: &VolumeFiles, owner: Option<FileOwner>) -> io::Result<FilesChange> {
    make_folder(folder, None)?;
    // A link that was put there by somebody who has the runner's user counts for nothing.
    let current = fs::read_link(folder.join(DATA)).ok().filter(|current| version(current).is_some());
    if let Some(current) = &current
        && is_as_wanted(&folder.join(current), files)?
        && has_entries(folder, files)
    {
        return Ok(FilesChange::Unchanged);
    }
    let next = next_name(current.as_deref());
    write_all(&folder.join(&next), files, owner)?;
    switch(folder, &next)?;
    put_entries(folder, files)?;
    if let Some(current) = current {
        fs::remove_dir_all(folder.join(current))?;
    }
    Ok(FilesChange::Replaced)
}

/// Makes a folder for a pod's user, who alone may write in it.
pub fn make_folder(folder: &Path, owner: Option<FileOwner>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    give(folder, owner)
}

/// Makes a folder in which all users of a pod may write, as those of `emptyDir` and of claims; what is made in it is its group's, where it
/// has one (`pkg/volume/emptydir/empty_dir.go`, `pkg/volume/volume_linux.go`).
pub fn open_folder(folder: &Path, owner: Option<FileOwner>, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    give(folder, owner)?;
    // After the owner: a change of that takes the bit away.
    fs::set_permissions(folder, fs::Permissions::from_mode(if group.is_some() { 0o2777 } else { 0o777 }))
}

/// Keeps a file under another name too, whatever becomes of the first; there may be an earlier one.
pub fn keep_file(file: &Path, kept: &Path) -> io::Result<()> {
    if let Some(folder) = kept.parent() {
        fs::create_dir_all(folder)?;
    }
    if kept.exists() {
        fs::remove_file(kept)?;
    }
    fs::hard_link(file, kept)
}

/// An empty file of the owner's, for one line or two, which anybody who gets to it may write. Who still has the one before it open writes
/// into that.
pub fn message_file(path: &Path, owner: Option<FileOwner>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if path.exists() {
        fs::remove_file(path)?;
    }
    File::create_new(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    give(path, owner)
}

/// Makes a claim's folder for the user whose it is: nobody else can look into it, wherever it is.
pub fn make_claim_folder(folder: &Path, owner: Option<FileOwner>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    if let Some(above) = folder.parent() {
        fs::set_permissions(above, fs::Permissions::from_mode(0o711))?;
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o770))?;
    give(folder, owner)
}

/// Makes a folder that only the runner looks into.
pub fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// Makes the folder below which a pod's volumes are: only its group passes through, or everybody where its containers are
/// several users.
pub fn make_passage(folder: &Path, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    chown(folder, None, group)?;
    let mode = if group.is_some() { 0o710 } else { 0o711 };
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))
}

fn give(path: &Path, owner: Option<FileOwner>) -> io::Result<()> {
    owner.map_or(Ok(()), |owner| chown(path, Some(owner.user), Some(owner.group)))
}

/// The folder after this one: names are counted up, so that no two versions have one name.
fn next_name(current: Option<&Path>) -> PathBuf {
    PathBuf::from(format!("{PREFIX}{}", current.and_then(version).map_or(0, |number| number.wrapping_add(1))))
}

/// The number of a folder of files, where it is one.
fn version(name: &Path) -> Option<u64> {
    name.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

fn write_all(folder: &Path, files: &VolumeFiles, owner: Option<FileOwner>) -> io::Result<()> {
    // Left by a runner that was killed while it wrote.
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    make_folder(folder, None)?;
    for (path, file) in files {
        let mut parent = folder.to_owned();
        let mut parts: Vec<&str> = path.split('/').collect();
        let name = parts.pop().unwrap_or(path);
        for part in parts {
            parent.push(part);
            make_folder(&parent, None)?;
        }
        write_one(&parent.join(name), file, owner)?;
    }
    Ok(())
}

fn write_one(path: &Path, file: &VolumeFile, owner: Option<FileOwner>) -> io::Result<()> {
    let mut opened: File = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    opened.write_all(&file.content)?;
    give(path, owner)?;
    opened.set_permissions(fs::Permissions::from_mode(file.mode))
}

/// One rename: from here on the new files are seen.
fn switch(folder: &Path, next: &Path) -> io::Result<()> {
    let link = folder.join(NEXT);
    if link.is_symlink() {
        fs::remove_file(&link)?;
    }
    symlink(next, &link)?;
    fs::rename(&link, folder.join(DATA))
}

/// The links through `..data`; those of files that are gone go after the switch, so that nobody misses one before it.
fn put_entries(folder: &Path, files: &VolumeFiles) -> io::Result<()> {
    let wanted = entry_names(files);
    for name in &wanted {
        let link = folder.join(name);
        if !link.is_symlink() {
            symlink(Path::new(DATA).join(name), &link)?;
        }
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_symlink() && !name.starts_with("..") && !wanted.contains(name.as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn has_entries(folder: &Path, files: &VolumeFiles) -> bool {
    entry_names(files).iter().all(|name| folder.join(name).is_symlink())
}

/// Whether the folder has these files, with these modes, and no others.
fn is_as_wanted(folder: &Path, files: &VolumeFiles) -> io::Result<bool> {
    if count_files(folder)? != files.len() {
        return Ok(false);
    }
    for (path, file) in files {
        let path = folder.join(path);
        let same_mode = fs::metadata(&path).is_ok_and(|meta| meta.permissions().mode() & 0o777 == file.mode);
        if !same_mode || fs::read(&path)? != file.content {
            return Ok(false);
        }
    }
    Ok(true)
}

fn count_files(folder: &Path) -> io::Result<usize> {
    let mut count = 0;
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(usize::MAX),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(contents: &[(&str, &str, u32)]) -> VolumeFiles {
        let file = |content: &str, mode| VolumeFile { content: content.as_bytes().to_vec(), mode };
        contents.iter().map(|(path, content, mode)| ((*path).to_owned(), file(content, *mode))).collect()
    }

    fn put(folder: &Path, contents: &[(&str, &str, u32)]) -> FilesChange {
        put_files(folder, &files(contents), None).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_lie_behind_one_link() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("v");

        assert_eq!(put(&folder, &[("a", "one", 0o644), ("d/b", "two", 0o400)]), FilesChange::Replaced);

        assert_eq!(names(&folder), ["..data", "..files-0", "a", "d"]);
        assert_eq!(fs::read_link(folder.join("a")).unwrap(), Path::new("..data/a"));
        assert_eq!(fs::read_to_string(folder.join("d/b")).unwrap(), "two");
        assert_eq!(fs::metadata(folder.join("d/b")).unwrap().permissions().mode() & 0o777, 0o400);
    }

    #[test]
    fn new_files_take_the_place_of_all_old_ones_and_the_old_folder_goes() {
        let home = tempfile::tempdir().unwrap();
        put(home.path(), &[("a", "one", 0o644), ("gone", "x", 0o644)]);

        assert_eq!(put(home.path(), &[("a", "two", 0o644), ("new", "y", 0o644)]), FilesChange::Replaced);

        assert_eq!(names(home.path()), ["..data", "..files-1", "a", "new"]);
        assert_eq!(fs::read_to_string(home.path().join("a")).unwrap(), "two");
    }

    #[test]
    fn files_that_are_as_wanted_are_left_alone() {
        let home = tempfile::tempdir().unwrap();
        put(home.path(), &[("a", "one", 0o644)]);

        assert_eq!(put(home.path(), &[("a", "one", 0o644)]), FilesChange::Unchanged);
        assert_eq!(put(home.path(), &[("a", "one", 0o600)]), FilesChange::Replaced);
        assert_eq!(put(home.path(), &[]), FilesChange::Replaced);
        assert_eq!(put(home.path(), &[]), FilesChange::Unchanged);
    }

    #[test]
    fn a_link_that_somebody_else_put_there_leads_nobody_to_take_anything_away() {
        let home = tempfile::tempdir().unwrap();
        let (volume, precious) = (home.path().join("v"), home.path().join("precious"));
        fs::create_dir(&precious).unwrap();
        put(&volume, &[("a", "one", 0o644)]);
        fs::remove_file(volume.join(DATA)).unwrap();
        symlink("../precious", volume.join(DATA)).unwrap();

        assert_eq!(put(&volume, &[("a", "two", 0o644)]), FilesChange::Replaced);

        assert!(precious.is_dir());
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "two");
    }

    #[test]
    fn who_has_an_old_file_open_goes_on_reading_it() {
        use std::io::Read as _;
        let home = tempfile::tempdir().unwrap();
        put(home.path(), &[("a", "one", 0o644)]);
        let mut open = File::open(home.path().join("a")).unwrap();
        put(home.path(), &[("a", "two", 0o644)]);

        let mut text = String::new();
        open.read_to_string(&mut text).unwrap();

        assert_eq!(text, "one");
    }

    #[test]
    fn what_a_killed_runner_left_half_written_is_written_again() {
        let home = tempfile::tempdir().unwrap();
        put(home.path(), &[("a", "one", 0o644)]);
        fs::create_dir(home.path().join("..files-1")).unwrap();
        fs::write(home.path().join("..files-1/half"), "x").unwrap();
        symlink("..files-1", home.path().join(NEXT)).unwrap();

        put(home.path(), &[("a", "two", 0o644)]);

        assert_eq!(names(home.path()), ["..data", "..files-1", "a"]);
        assert_eq!(fs::read_to_string(home.path().join("a")).unwrap(), "two");
    }
}
