//! The uids that pods have: one each, kept with the pod's folder, so that a later runner gives it the same one.
//!
//! A pod with claims is the user whose they are: another pod of the same claim could not read them otherwise.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use k8s_openapi::api::core::v1::Pod;

use super::folders::RunnerFolders;
use crate::pod::containers::{namespace, uid};
use crate::pod::identity::{POD_USERS, free_user};
use crate::pod::references::references;

/// Who has which uid.
pub(super) struct PodUsers {
    folders: RunnerFolders,
    known: Mutex<KnownUsers>,
}

#[derive(Default)]
struct KnownUsers {
    by_pod: HashMap<String, u32>,
    last: Option<u32>,
}

impl PodUsers {
    /// With those that an earlier runner gave.
    pub(super) fn remembered(folders: RunnerFolders) -> io::Result<Self> {
        let mut by_pod = HashMap::new();
        for pod in folders.with_users()? {
            let user = fs::read_to_string(folders.user(&pod)).ok().and_then(|text| text.trim().parse().ok());
            by_pod.extend(user.map(|user| (pod, user)));
        }
        let last = Some(first_user(&folders));
        Ok(Self { folders, known: Mutex::new(KnownUsers { by_pod, last }) })
    }

    fn known(&self) -> MutexGuard<'_, KnownUsers> {
        self.known.lock().expect("nobody panics with it")
    }

    /// The uid of a pod; none where all are in use.
    pub(super) fn take(&self, pod: &Pod) -> Option<u32> {
        let mut known = self.known();
        if let Some(user) = known.by_pod.get(uid(pod)) {
            return Some(*user);
        }
        let user = if let Some(user) = self.of_claims(pod) {
            user
        } else {
            let taken: BTreeSet<u32> = known.by_pod.values().copied().chain(self.of_all_claims()).collect();
            let user = free_user(&taken, known.last)?;
            known.last = Some(user);
            user
        };
        known.by_pod.insert(uid(pod).to_owned(), user);
        if let Err(error) = self.keep(uid(pod), user) {
            tracing::debug!(pod = uid(pod), %error, "Could not keep a pod's uid");
        }
        Some(user)
    }

    fn keep(&self, pod: &str, user: u32) -> io::Result<()> {
        fs::write(self.folders.user(pod), user.to_string())
    }

    /// The pod is gone: its uid may be given to another.
    pub(super) fn give_back(&self, pod: &str) {
        self.known().by_pod.remove(pod);
        // It may never have been kept.
        let _ = fs::remove_file(self.folders.user(pod));
    }

    fn of_claims(&self, pod: &Pod) -> Option<u32> {
        let claims = references(pod).claims;
        claims.iter().find_map(|claim| owner(&self.folders.claim(namespace(pod), claim)))
    }

    fn of_all_claims(&self) -> Vec<u32> {
        // What cannot be read belongs to nobody that this runner knows.
        let below = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let claims = below(&self.folders.claims()).into_iter().flat_map(|namespace| below(&namespace));
        claims.filter_map(|claim| owner(&claim)).collect()
    }
}

/// Runners of several data directories on one machine begin in several places, so that their pods have other users.
fn first_user(folders: &RunnerFolders) -> u32 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    folders.claims().hash(&mut hasher);
    let offset = u32::try_from(hasher.finish() % u64::from(POD_USERS.end - POD_USERS.start)).unwrap_or(0);
    POD_USERS.start + offset
}

/// Whose a folder is, where that is a pod's own uid.
fn owner(folder: &Path) -> Option<u32> {
    fs::metadata(folder).ok().map(|folder| folder.uid()).filter(|user| POD_USERS.contains(user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::json;

    fn users(home: &Path) -> PodUsers {
        PodUsers::remembered(RunnerFolders::below(home).unwrap()).unwrap()
    }

    fn a_pod(uid: &str) -> Pod {
        let mut pod = pod(json!({"containers": []}));
        pod.metadata.uid = Some(uid.to_owned());
        pod
    }

    #[test]
    fn a_pod_has_its_uid_from_runner_to_runner_and_no_two_have_the_same() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = {
            let users = users(home.path());
            (users.take(&a_pod("one")).unwrap(), users.take(&a_pod("two")).unwrap())
        };
        let next = users(home.path());

        assert_ne!(one, two);
        assert_eq!([next.take(&a_pod("two")), next.take(&a_pod("one"))], [Some(two), Some(one)]);
        let third = next.take(&a_pod("three")).unwrap();
        assert!(third != one && third != two);
    }

    #[test]
    fn who_has_a_claim_is_the_user_whose_it_is_and_nobody_else_gets_that_uid() {
        let home = tempfile::tempdir().unwrap();
        let users = users(home.path());
        let folder = home.path().join("claims/default/data");
        fs::create_dir_all(&folder).unwrap();
        if std::os::unix::fs::chown(&folder, Some(POD_USERS.start), None).is_err() {
            // Who is not root gives all pods its own user.
            return;
        }
        let mut claiming = a_pod("claiming");
        claiming.metadata.namespace = Some("default".to_owned());
        claiming.spec = serde_json::from_value(json!({
            "containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        }))
        .unwrap();

        assert_ne!(users.take(&a_pod("other")), Some(POD_USERS.start));
        assert_eq!(users.take(&claiming), Some(POD_USERS.start));
    }
}
