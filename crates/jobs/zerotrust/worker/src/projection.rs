//! What the cache keeps of a task: whom it belongs to, what it needs, what it recorded.

use portolan_core::ObjectKey;
use portolan_exposure::Footprint;
use portolan_zerotrust_model::{CloudflareTask, Phase, SecretRef, TaskResult};

use crate::reason;

/// What the cache keeps of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskProjection {
    /// Where it stands.
    pub(crate) phase: Phase,
    /// The Secret with its API token.
    pub(crate) secret: Option<ObjectKey>,
    /// Whether it failed for that Secret's sake.
    pub(crate) lacks_credential: bool,
    /// Service tokens that it has recorded.
    pub(crate) token_ids: Vec<String>,
    /// Access applications that it has recorded.
    pub(crate) app_ids: Vec<String>,
}

impl TaskProjection {
    pub(crate) fn of(task: &CloudflareTask) -> Self {
        let status = task.status.as_ref();
        let result = status.and_then(|status| status.result.as_ref()).map(TaskResult::footprint);
        let footprints = [Some(task.spec.existing()), Some(task.spec.to_delete()), result];
        let footprints: Vec<_> = footprints.into_iter().flatten().collect();
        let phase = task.phase();
        Self {
            phase,
            secret: task.spec.credential_secret_ref.as_ref().map(SecretRef::object),
            lacks_credential: phase == Phase::Failed && status.is_some_and(reason::is_of_credential),
            token_ids: footprints.iter().filter_map(|footprint| footprint.service_token_id.clone()).collect(),
            app_ids: footprints.iter().flat_map(Footprint::app_ids).cloned().collect(),
        }
    }
}
