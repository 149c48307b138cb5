//! A pod's security contexts and who the runner is → the user that a container's process is.
//!
//! A runner that is root gives each pod a uid of its own where the pod names none, so that pods cannot read each other's files or end
//! each other's processes. A runner that is not root has only itself to give.

use k8s_openapi::api::core::v1::{Container, Pod};

/// Who the runner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerUser {
    /// It may become anyone.
    Root,
    /// It is this user, and can be nobody else.
    Plain {
        /// Its uid.
        user: u32,
        /// Its gid.
        group: u32,
    },
}

impl RunnerUser {
    /// What users must know who expect pods to be apart from each other.
    pub fn notice(self) -> Option<String> {
        match self {
            Self::Root => None,
            Self::Plain { user, .. } => Some(format!(
                "the runner is not root: all pods run as user {user}, can read each other's files and end each other's processes, and cannot have runAsUser, runAsGroup or fsGroup; start portolan as root for a user of each pod's own"
            )),
        }
    }
}

/// The user that a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessUser {
    /// Its uid.
    pub user: u32,
    /// Its gid.
    pub group: u32,
    /// Its further groups.
    pub groups: Vec<u32>,
}

/// Why a container cannot be the user that it is to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// It must not be root, and is.
    #[error("container has runAsNonRoot and would run as root: name another user in runAsUser")]
    Root,
    /// The runner is not root.
    #[error(
        "the pod wants to run as user {wanted}, and the runner is user {own} and cannot become another: start it as root, or leave runAsUser away"
    )]
    NotAllowed {
        /// Whom it wants to be.
        wanted: u32,
        /// Who the runner is.
        own: u32,
    },
}

/// The first uid that pods are given that name none, and how many there are.
pub const POD_USERS: std::ops::Range<u32> = 1_770_000_000..1_770_065_536;

/// A uid that no pod has, the next after the one that was given last; none where all are in use.
pub fn free_user(taken: &std::collections::BTreeSet<u32>, last: Option<u32>) -> Option<u32> {
    let start = last.map_or(POD_USERS.start, |last| last.saturating_add(1));
    let after = (start..POD_USERS.end).chain(POD_USERS.start..start.min(POD_USERS.end));
    after.into_iter().find(|user| !taken.contains(user))
}

/// The user that a container of the pod is; `own` is the uid that the runner set aside for the pod.
pub fn process_user(
    pod: &Pod,
    container: &Container,
    runner: RunnerUser,
    own: u32,
) -> Result<ProcessUser, IdentityError> {
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let of_container = container.security_context.as_ref();
    let user = of_container.and_then(|one| one.run_as_user).or(of_pod.and_then(|one| one.run_as_user)).map(id);
    let group = of_container.and_then(|one| one.run_as_group).or(of_pod.and_then(|one| one.run_as_group)).map(id);
    let is_bound = of_container.and_then(|one| one.run_as_non_root).or(of_pod.and_then(|one| one.run_as_non_root));
    let process = match runner {
        RunnerUser::Root => {
            let user = user.unwrap_or(own);
            ProcessUser { user, group: group.unwrap_or(user), groups: further_groups(pod) }
        }
        RunnerUser::Plain { user: itself, .. } if user.is_some_and(|wanted| wanted != itself) => {
            return Err(IdentityError::NotAllowed { wanted: user.unwrap_or(itself), own: itself });
        }
        RunnerUser::Plain { user, group } => ProcessUser { user, group, groups: Vec::new() },
    };
    if process.user == 0 && is_bound == Some(true) {
        return Err(IdentityError::Root);
    }
    Ok(process)
}

/// The group that may read and write the pod's volumes.
pub fn fs_group(pod: &Pod) -> Option<u32> {
    pod.spec.as_ref()?.security_context.as_ref()?.fs_group.map(id)
}

/// `fsGroup` and `supplementalGroups`.
fn further_groups(pod: &Pod) -> Vec<u32> {
    let Some(context) = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()) else { return Vec::new() };
    let mut groups: Vec<u32> =
        context.fs_group.iter().chain(context.supplemental_groups.iter().flatten()).copied().map(id).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// The API server lets no negative ids and none beyond 31 bits in.
fn id(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::{Value, json};

    fn user(of_pod: Value, of_container: Value, runner: RunnerUser) -> Result<ProcessUser, IdentityError> {
        let pod =
            pod(json!({"securityContext": of_pod, "containers": [{"name": "c", "securityContext": of_container}]}));
        process_user(&pod, &pod.spec.as_ref().unwrap().containers[0], runner, 700)
    }

    #[test]
    fn a_pod_that_names_no_user_is_one_of_its_own() {
        let expected = ProcessUser { user: 700, group: 700, groups: vec![] };

        assert_eq!(user(json!({}), json!({}), RunnerUser::Root), Ok(expected));
    }

    #[test]
    fn the_container_says_more_than_the_pod() {
        let of_pod = json!({"runAsUser": 1, "runAsGroup": 2, "fsGroup": 9, "supplementalGroups": [8, 9]});

        let found = user(of_pod, json!({"runAsUser": 3}), RunnerUser::Root);

        assert_eq!(found, Ok(ProcessUser { user: 3, group: 2, groups: vec![8, 9] }));
    }

    #[test]
    fn a_runner_that_is_not_root_runs_all_as_itself_and_refuses_others() {
        let runner = RunnerUser::Plain { user: 1000, group: 100 };
        let expected = ProcessUser { user: 1000, group: 100, groups: vec![] };

        assert_eq!(user(json!({"fsGroup": 9}), json!({}), runner), Ok(expected.clone()));
        assert_eq!(user(json!({}), json!({"runAsUser": 1000}), runner), Ok(expected));
        assert_eq!(
            user(json!({"runAsUser": 0}), json!({}), runner),
            Err(IdentityError::NotAllowed { wanted: 0, own: 1000 })
        );
    }

    #[test]
    fn a_runner_that_cannot_keep_pods_apart_says_so() {
        assert_eq!(RunnerUser::Root.notice(), None);
        let told = RunnerUser::Plain { user: 1000, group: 100 }.notice().unwrap_or_default();
        assert!(told.contains("all pods run as user 1000") && told.contains("as root"), "{told}");
    }

    #[test]
    fn root_is_refused_where_the_pod_forbids_it() {
        assert_eq!(
            user(json!({"runAsNonRoot": true, "runAsUser": 0}), json!({}), RunnerUser::Root),
            Err(IdentityError::Root)
        );
        assert!(user(json!({"runAsNonRoot": true}), json!({}), RunnerUser::Root).is_ok());
    }

    #[test]
    fn users_are_given_one_after_the_other_and_again_when_they_are_free() {
        let first = POD_USERS.start;
        assert_eq!(free_user(&[].into(), None), Some(first));
        assert_eq!(free_user(&[first, first + 2].into(), Some(first + 1)), Some(first + 3));
        assert_eq!(free_user(&[].into(), Some(POD_USERS.end - 1)), Some(first));
        assert_eq!(free_user(&POD_USERS.collect(), None), None);
    }
}
