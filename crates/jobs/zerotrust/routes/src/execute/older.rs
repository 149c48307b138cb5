//! Tasks that an older operator left → the state, and tasks of ours. Nothing that they know is forgotten.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::PostParams;
use portolan_core::Problem;
use portolan_engine::in_time;
use portolan_zerotrust_model::task::{QUEUED, TaskAction};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus, Phase, names};

use super::stored::describe;
use super::{Executor, refused};

impl Executor<'_> {
    /// Records what a task knows, and notes what its worker may have made besides. Its old status goes: it may hold a
    /// secret that nobody can see any more.
    pub(super) async fn take_over(&mut self) -> Result<(), Problem> {
        let Some(task) = self.task.clone() else { return Ok(()) };
        tracing::info!(
            task = task.name_any(),
            phase = task.phase().as_str(),
            "Taking over the task of an older operator"
        );
        self.record(&task).await?;
        let earlier = task.status.clone().unwrap_or_default();
        let mut status = CloudflareTaskStatus {
            phase: Some(Phase::Pending),
            message: Some(QUEUED.to_owned()),
            worker_pod: Some(String::new()),
            last_transition_time: Some(self.now()),
            intended_at: earlier.intended_at.clone(),
            intent: earlier.intent.clone(),
            ..CloudflareTaskStatus::default()
        };
        if let Some(intent) = task.unreported() {
            status.set_intent(&intent);
        }
        self.task = Some(self.write_status(&task, status).await?);
        Ok(())
    }

    /// Records what a task was to take down; then the task goes, and what is recorded is dealt with as the route asks.
    pub(super) async fn take_over_removal(&mut self) -> Result<(), Problem> {
        let Some(task) = self.removal.clone() else { return Ok(()) };
        tracing::info!(task = task.name_any(), "Taking over the deletion of an older operator");
        self.record(&task).await?;
        self.drop_task(TaskAction::Delete).await
    }

    async fn record(&mut self, task: &CloudflareTask) -> Result<(), Problem> {
        let mut state = self.state();
        let footprint = task.taken_over(&state.footprint);
        if self.known.is_none() && footprint.is_empty() {
            return Ok(());
        }
        describe(&mut state, task);
        if footprint.service_token_id.is_some() {
            state.token_secret_name.get_or_insert_with(|| names::token_secret(&self.subject.key));
        }
        state.footprint = footprint;
        state.hash.clear();
        self.store(&state).await
    }

    async fn write_status(
        &self,
        task: &CloudflareTask,
        status: CloudflareTaskStatus,
    ) -> Result<Arc<CloudflareTask>, Problem> {
        let (changed, name) = (CloudflareTask { status: Some(status), ..task.clone() }, task.name_any());
        let written = in_time(self.shared.task_api().replace_status(&name, &PostParams::default(), &changed)).await;
        let written = written.map_err(|error| refused(&format!("writing the status of task {name}"), &error))?;
        self.shared.state_index.tasks.wrote(written.clone());
        Ok(Arc::new(written))
    }
}
