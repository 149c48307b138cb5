//! Where a runner keeps what belongs to pods.
//!
//! ```text
//! notes/                              processes that were started
//! programs/                           the runner's own executable, where pods could not start it otherwise
//! users/UID                           the pod's own uid
//! pods/UID/volumes/NAME               files and empty folders
//! pods/UID/files/NAME/                single files of volumes that a container has mounted, and why it ended
//! pods/UID/containers/NAME/RUN/       output, and why it did not start
//! pods/UID/etc/resolv.conf            how the pod finds names
//! pods/UID/work/NAME                  where a container begins that names no other place
//! claims/NAMESPACE/NAME               folders that stay
//! ```

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The folders.
#[derive(Clone, Debug)]
pub(super) struct RunnerFolders {
    root: PathBuf,
}

impl RunnerFolders {
    /// Below a folder, which pods can pass through and not look around in.
    pub(super) fn below(root: &Path) -> io::Result<Self> {
        let root = std::path::absolute(root)?;
        let folders = Self { root };
        for name in ["pods", "claims"] {
            fs::create_dir_all(folders.root.join(name))?;
            fs::set_permissions(folders.root.join(name), fs::Permissions::from_mode(0o711))?;
        }
        fs::set_permissions(&folders.root, fs::Permissions::from_mode(0o711))?;
        for folder in [folders.notes(), folders.root.join("users")] {
            fs::create_dir_all(&folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
        Ok(folders)
    }

    /// A number that hardly any other runner of this machine has.
    pub(super) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.root.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn notes(&self) -> PathBuf {
        self.root.join("notes")
    }

    pub(super) fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    /// The uids of the pods that have a folder.
    pub(super) fn pods(&self) -> io::Result<Vec<String>> {
        names_in(&self.root.join("pods"))
    }

    /// The uids of the pods that have a uid of this machine.
    pub(super) fn with_users(&self) -> io::Result<Vec<String>> {
        names_in(&self.root.join("users"))
    }

    pub(super) fn user(&self, uid: &str) -> PathBuf {
        self.root.join("users").join(uid)
    }

    pub(super) fn pod(&self, uid: &str) -> PathBuf {
        self.root.join("pods").join(uid)
    }

    pub(super) fn volume(&self, uid: &str, name: &str) -> PathBuf {
        self.pod(uid).join("volumes").join(name)
    }

    pub(super) fn claims(&self) -> PathBuf {
        self.root.join("claims")
    }

    pub(super) fn claim(&self, namespace: &str, name: &str) -> PathBuf {
        self.claims().join(namespace).join(name)
    }

    pub(super) fn work(&self, uid: &str, container: &str) -> PathBuf {
        self.pod(uid).join("work").join(container)
    }

    /// A single file that a container has mounted.
    pub(super) fn sub_path(&self, uid: &str, container: &str, mount: usize) -> PathBuf {
        self.pod(uid).join("files").join(container).join(mount.to_string())
    }

    /// Where a container leaves why it ended.
    pub(super) fn message(&self, uid: &str, container: &str) -> PathBuf {
        self.pod(uid).join("files").join(container).join("message")
    }

    pub(super) fn resolv_conf(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("etc/resolv.conf")
    }

    /// All runs of a container.
    pub(super) fn runs(&self, uid: &str, container: &str) -> PathBuf {
        self.pod(uid).join("containers").join(container)
    }

    pub(super) fn run(&self, uid: &str, container: &str, restarts: i32) -> PathBuf {
        self.runs(uid, container).join(restarts.to_string())
    }

    /// Takes everything of a pod away but its claims.
    pub(super) fn remove_pod(&self, uid: &str) -> io::Result<()> {
        remove(&self.pod(uid))
    }

    /// Takes a pod's volumes and its containers' folders away: what is there for as long as it runs.
    pub(super) fn remove_contents(&self, uid: &str) -> io::Result<()> {
        ["volumes", "files", "work", "beside", "etc"].iter().try_for_each(|name| remove(&self.pod(uid).join(name)))
    }
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// No link is followed: of a claim only the link to it goes.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
