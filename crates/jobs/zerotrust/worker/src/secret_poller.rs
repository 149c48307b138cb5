//! Tasks that failed for their credential: the Secret is looked at every few seconds, and a new content lets them run.
//!
//! A worker may read a Secret by its name and may not list or watch any: whoever has its token cannot find out which
//! Secrets there are. So nothing tells it that one changed. While no task waits for a Secret, none is looked at.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portolan_core::ObjectKey;
use portolan_engine::{FoundSecret, Handle, SecretVersion, Secrets};
use tokio::sync::Notify;

use crate::projection::TaskProjection;

/// How soon a new content is seen. One look is one small request for all tasks that wait for the Secret.
const LOOK: Duration = Duration::from_secs(3);

/// Which contents of Secrets tasks were tried with.
#[derive(Default)]
pub(crate) struct SecretPoller {
    tried: Mutex<BTreeMap<ObjectKey, SecretVersion>>,
    failed: Notify,
}

impl SecretPoller {
    /// A task is tried with what was found.
    pub(crate) fn tries(&self, task: &ObjectKey, found: &FoundSecret) {
        portolan_core::waypoint!();
        self.tried().insert(task.clone(), found.version.clone());
    }

    /// A task is gone.
    pub(crate) fn forget(&self, task: &ObjectKey) {
        self.tried().remove(task);
    }

    /// A task failed for its credential.
    pub(crate) fn has_failed(&self) {
        self.failed.notify_one();
    }

    /// Looks at the Secrets that tasks wait for, for good; tells which tasks have another content to try.
    pub(crate) async fn keep(
        &self,
        tasks: Handle<TaskProjection>,
        secrets: Secrets,
        news: impl Fn(Vec<ObjectKey>) + Send + Sync,
    ) {
        loop {
            if tasks.read(|store| awaited(store.projections()).is_empty()) {
                self.failed.notified().await;
            }
            tokio::time::sleep(LOOK).await;
            for (secret, waiting) in tasks.read(|store| awaited(store.projections())) {
                match secrets.look(&secret).await {
                    Ok(version) => news(self.untried(waiting, &version)),
                    Err(error) => tracing::debug!(%error, "A Secret that tasks wait for could not be looked at"),
                }
            }
        }
    }

    /// Those that were not tried with this content. What an earlier life of the worker, or another one, tried is not
    /// known: then it is tried once more.
    fn untried(&self, waiting: Vec<ObjectKey>, version: &SecretVersion) -> Vec<ObjectKey> {
        let tried = self.tried();
        waiting.into_iter().filter(|task| tried.get(task) != Some(version)).collect()
    }

    fn tried(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, SecretVersion>> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Secrets that tasks wait for, each with its tasks.
fn awaited<'a>(
    tasks: impl Iterator<Item = (&'a ObjectKey, &'a TaskProjection)>,
) -> BTreeMap<ObjectKey, Vec<ObjectKey>> {
    let mut awaited: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
    for (task, projection) in tasks.filter(|(_, projection)| projection.lacks_credential) {
        if let Some(secret) = &projection.secret {
            awaited.entry(secret.clone()).or_default().push(task.clone());
        }
    }
    awaited
}

#[cfg(test)]
mod tests {
    use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskSpec, CloudflareTaskStatus, Phase, SecretRef};

    use super::*;

    fn failed(message: &str) -> TaskProjection {
        let credential = SecretRef { name: "token".into(), namespace: "default".into(), key: None };
        let spec = CloudflareTaskSpec { credential_secret_ref: Some(credential), ..CloudflareTaskSpec::default() };
        let mut task = CloudflareTask::new("cfzt-shop-web", spec);
        task.status = Some(CloudflareTaskStatus {
            phase: Some(Phase::Failed),
            message: Some(message.to_owned()),
            ..CloudflareTaskStatus::default()
        });
        TaskProjection::of(&task)
    }

    #[test]
    fn only_tasks_that_failed_for_their_credential_wait_for_its_secret() {
        let keys = ["a", "b", "c"].map(|name| ObjectKey::namespaced("operator", name));
        let tasks =
            ["CredentialInvalid: 403", "GroupNotFound: no group Staff", "CredentialNotFound: no Secret"].map(failed);

        let awaited = awaited(keys.iter().zip(&tasks));

        let secret = ObjectKey::namespaced("default", "token");
        assert_eq!(awaited, BTreeMap::from([(secret, vec![keys[0].clone(), keys[2].clone()])]));
    }
}
