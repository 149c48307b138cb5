//! Tasks as they are made, changed and dropped.

use std::sync::Arc;

use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{Notice, in_time};
use portolan_exposure::Footprint;
use portolan_zerotrust_model::names::{self, RouteObjectNames, User};
use portolan_zerotrust_model::task::{ExistingIds, QUEUED, TEMPLATES, TaskAction};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskSpec, Phase, annotations, reasons};

use super::stored::identity;
use super::{Executor, is_conflict, is_missing, refused};
use crate::decide::TokenSecret;
use crate::route_context::LEFTOVER;

/// Says why a task was made though nothing was asked for anew.
const QUEUED_FOR: &str = "queued-for";

/// What is recorded, with the place that older operators did not record: it is the one that the name is wanted at.
fn placed(recorded: Footprint, spec: &CloudflareTaskSpec) -> Footprint {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Footprint {
        account_id: recorded.account_id.or_else(|| given(&spec.account_id)),
        hostname: recorded.hostname.or_else(|| given(&spec.hostname)),
        tunnel_id: recorded.tunnel_id.or_else(|| given(&spec.tunnel_id)),
        zone_id: recorded.zone_id.or_else(|| given(&spec.zone_id)),
        ..recorded
    }
}

impl Executor<'_> {
    /// Makes the task that makes the name stand.
    pub(super) async fn queue(&mut self) -> Result<(), Problem> {
        portolan_core::waypoint!();
        let Some(task) = self.wanted_task() else { return Ok(()) };
        self.hold_credential(&task.spec).await?;
        let made = self.make_task(task, TaskAction::Reconcile).await?;
        self.shared.set_drifted(&self.subject.key, false);
        self.tell_queued(&made);
        self.task = Some(made);
        self.mark_pending(TaskAction::Reconcile).await
    }

    /// The credential must not vanish while something stands that was made with it: it could never be taken down.
    async fn hold_credential(&self, spec: &CloudflareTaskSpec) -> Result<(), Problem> {
        let Some(secret) = &spec.credential_secret_ref else { return Ok(()) };
        if self.shared.guard.hold(&secret.object()).await? {
            return Ok(());
        }
        let message = format!(
            "Secret not found or being deleted: {}; create it with the API token under the key {}",
            secret.object(),
            secret.key()
        );
        Err(Problem::waiting(reasons::CREDENTIAL_NOT_FOUND, message))
    }

    fn tell_queued(&mut self, task: &CloudflareTask) {
        let name = task.metadata.name.as_deref().unwrap_or_default();
        self.notices.push(Notice::normal(reasons::QUEUED, format!("{QUEUED}: CloudflareTask {name}")));
        if let Some(hostname) = self.subject.exposes() {
            let message = format!(
                "{hostname} becomes PUBLIC: its Access application is deleted, since the route and its templates no longer \
                 ask for one. Set {}: \"true\" to keep it",
                annotations::name("access.enabled")
            );
            self.notices.push(Notice::warning(reasons::PROTECTION_REMOVED, message));
        }
        let wanted = self.subject.wanted.iter().flat_map(|wanted| &wanted.notices);
        self.notices.extend(wanted.cloned());
    }

    /// The task for what is wanted, with what is known to stand.
    fn wanted_task(&self) -> Option<CloudflareTask> {
        let wanted = self.subject.wanted.as_ref()?;
        let mut spec = wanted.spec.clone();
        let footprint = self.state().footprint;
        let stands = !footprint.is_empty() || footprint.hostname.is_some();
        spec.existing_ids = stands.then(|| ExistingIds::from(&placed(footprint, &spec)));
        if let Some(token) = spec.operations.as_mut().and_then(|all| all.service_token.as_mut()) {
            token.secret_present = token.enabled.filter(|on| *on).map(|_| self.subject.secret == TokenSecret::Whole);
        }
        let mut task = CloudflareTask::new("", spec);
        self.label(&mut task);
        let notes = task.metadata.annotations.get_or_insert_default();
        notes.insert(annotations::name("annotation-hash"), wanted.hash.clone());
        notes.insert(annotations::name(TEMPLATES), names::joined(&self.subject.templates));
        if self.shared.is_drifted(&self.subject.key) {
            notes.insert(annotations::name(QUEUED_FOR), "drift".to_owned());
        }
        Some(task)
    }

    pub(super) fn label(&self, task: &mut CloudflareTask) {
        let route = &self.subject.key;
        let mut labels = vec![
            ("httproute-name", route.name.clone()),
            ("httproute-namespace", route.namespace.clone().unwrap_or_default()),
        ];
        labels.extend(task.spec.tenant_ref.as_ref().map(|tenant| ("tenant", tenant.name.clone())));
        if task.spec.action() == TaskAction::Delete {
            labels.push(("action", "delete".to_owned()));
        }
        let labels = labels.into_iter().map(|(name, value)| (annotations::name(name), names::label(&value)));
        task.metadata.labels = Some(labels.collect());
        task.set_form();
    }

    fn task_name(&self, action: TaskAction) -> String {
        let names = match action {
            TaskAction::Reconcile => RouteObjectNames::of_route(&self.subject.key),
            TaskAction::Delete => RouteObjectNames::of_deletion(&self.subject.key),
        };
        // A task of this route and action is known and would be changed, not made.
        let user =
            |name: &str| match self.shared.state_index.tasks.get(&ObjectKey::namespaced(self.shared.namespace(), name))
            {
                None => User::Nobody,
                Some(_) => User::Other,
            };
        names.choose(user).to_owned()
    }

    pub(super) async fn make_task(
        &mut self,
        mut task: CloudflareTask,
        action: TaskAction,
    ) -> Result<Arc<CloudflareTask>, Problem> {
        let (api, name) = (self.shared.task_api(), self.task_name(action));
        task.metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(self.shared.namespace().to_owned()),
            ..task.metadata
        };
        let mut made = in_time(api.create(&PostParams::default(), &task)).await;
        if made.as_ref().is_err_and(is_missing) {
            self.make_namespace().await;
            made = in_time(api.create(&PostParams::default(), &task)).await;
        }
        let made = made.map_err(|error| refused(&format!("making the task {name}"), &error))?;
        self.shared.state_index.tasks.wrote(made.clone());
        Ok(Arc::new(made))
    }

    /// Gives a task that waits what is wanted now. What it noted about its earlier attempts stays.
    pub(super) async fn requeue(&mut self) -> Result<(), Problem> {
        let (Some(task), Some(wanted)) = (self.task.clone(), self.wanted_task()) else { return Ok(()) };
        self.hold_credential(&wanted.spec).await?;
        let changed = self.replace_task(&task, wanted).await?;
        self.shared.set_drifted(&self.subject.key, false);
        self.tell_queued(&changed);
        self.task = Some(changed);
        self.mark_pending(TaskAction::Reconcile).await
    }

    /// Puts another spec into a task, unless a worker took it meanwhile.
    pub(super) async fn replace_task(
        &self,
        task: &CloudflareTask,
        new: CloudflareTask,
    ) -> Result<Arc<CloudflareTask>, Problem> {
        let (mut changed, name) = (task.clone(), task.metadata.name.clone().unwrap_or_default());
        changed.spec = new.spec;
        changed.metadata.labels = new.metadata.labels;
        changed.metadata.annotations = new.metadata.annotations;
        let written = in_time(self.shared.task_api().replace(&name, &PostParams::default(), &changed)).await;
        let written = written.map_err(|error| refused(&format!("changing the task {name}"), &error))?;
        self.shared.state_index.tasks.wrote(written.clone());
        Ok(Arc::new(written))
    }

    /// Says that a task waits. A worker that was quicker is not disturbed.
    pub(super) async fn mark_pending(&mut self, action: TaskAction) -> Result<(), Problem> {
        let slot = if action == TaskAction::Reconcile { &self.task } else { &self.removal };
        let Some(task) = slot.clone() else { return Ok(()) };
        let (mut marked, name) = ((*task).clone(), task.metadata.name.clone().unwrap_or_default());
        let status = marked.status.get_or_insert_default();
        status.phase = Some(Phase::Pending);
        status.message = Some(QUEUED.to_owned());
        status.reason = None;
        status.worker_pod = Some(String::new());
        status.last_transition_time = Some(self.now());
        status.next_attempt_time = None;
        self.shared.set_drifted(&self.subject.key, false);
        match in_time(self.shared.task_api().replace_status(&name, &PostParams::default(), &marked)).await {
            Ok(written) => {
                self.shared.state_index.tasks.wrote(written);
                Ok(())
            }
            Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
            Err(error) => Err(refused(&format!("writing the status of task {name}"), &error)),
        }
    }

    /// A task is no longer wanted.
    pub(super) async fn drop_task(&mut self, action: TaskAction) -> Result<(), Problem> {
        let slot = if action == TaskAction::Reconcile { self.task.take() } else { self.removal.take() };
        match slot {
            Some(task) => self.delete_task(&task).await,
            None => Ok(()),
        }
    }

    /// Deletes a task as we know it: one that changed meanwhile stays.
    pub(super) async fn delete_task(&self, task: &CloudflareTask) -> Result<(), Problem> {
        let (place, uid) = identity(task);
        let preconditions =
            Preconditions { uid: Some(uid.clone()), resource_version: task.metadata.resource_version.clone() };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match in_time(self.shared.task_api().delete(&place.name, &parameters)).await {
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(refused(&format!("deleting the task {}", place.name), &error)),
        }
        self.shared.state_index.tasks.deleted(&place, &uid);
        Ok(())
    }

    /// A task that takes something down.
    pub(super) fn removal_task(&self, spec: CloudflareTaskSpec, leftover: bool) -> CloudflareTask {
        let mut task = CloudflareTask::new("", spec);
        self.label(&mut task);
        if leftover {
            task.metadata.annotations.get_or_insert_default().insert(annotations::name(LEFTOVER), "true".to_owned());
        }
        task
    }
}
