//! A task's result → Secret, state, annotations; then the task goes. The most precious thing comes first.

use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use portolan_core::{Problem, text};
use portolan_engine::{FIELD_MANAGER, Notice, in_time};
use portolan_zerotrust_model::state::StatePhase;
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{CloudflareTask, HttpRoute, State, names, reasons};

use super::stored::describe;
use super::{Executor, is_conflict, is_missing, refused};
use crate::token::{self, FoundSecret, TokenCredentials};

/// Changes that an event names; the log names all.
const CHANGES_SHOWN: usize = 5;

impl Executor<'_> {
    /// Records a task's result, and the task goes.
    pub(super) async fn collect(&mut self) -> Result<(), Problem> {
        portolan_core::waypoint!();
        let Some(task) = self.task.clone() else { return Ok(()) };
        let status = task.status.clone().unwrap_or_default();
        let result = status.result.clone().unwrap_or_default();
        let mut state = self.state();
        let route = self.living_route().filter(|route| is_for(&task, route));
        if let (Some(route), Some(handed)) = (route, &result.service_token_secret_name) {
            self.copy_credentials(route, handed, &state).await?;
        }
        describe(&mut state, &task);
        state.stands(result.footprint(), &self.now());
        let token = state.footprint.service_token_id.is_some();
        if token {
            state.token_secret_name.get_or_insert_with(|| names::token_secret(&self.subject.key));
        }
        state.templates = task.templates();
        state.hash = status.annotation_hash.clone().unwrap_or_default();
        state.phase = StatePhase::Active;
        state.last_sync_time = Some(self.now());
        state.last_error = None;
        self.store(&state).await?;
        if !token {
            self.drop_secret_of_token().await?;
        }
        if route.is_some() {
            self.write_outputs_of(&self.state()).await?;
        }
        if let Some(handed) = &result.service_token_secret_name {
            self.drop_handed_over(handed, &task).await?;
        }
        self.drop_task(TaskAction::Reconcile).await?;
        self.tell_collected(&status.changes, &result.notices);
        Ok(())
    }

    fn tell_collected(&mut self, changes: &[String], notices: &[portolan_zerotrust_model::task::TaskNotice]) {
        let hostname = self.state().footprint.hostname.unwrap_or_default();
        let what = if changes.is_empty() { "as it was".to_owned() } else { text::join_some(changes, CHANGES_SHOWN) };
        self.notices.push(Notice::normal(reasons::RECONCILED, format!("{hostname} stands as asked: {what}")));
        self.notices.extend(notices.iter().map(|notice| {
            let reason = crate::reasons::named(&notice.reason);
            match notice.r#type.as_str() {
                "Warning" => Notice::warning(reason, notice.message.clone()),
                _ => Notice::normal(reason, notice.message.clone()),
            }
        }));
    }

    /// Copies new credentials from where the worker put them to the route's namespace.
    async fn copy_credentials(&self, route: &HttpRoute, handed: &str, state: &State) -> Result<(), Problem> {
        let found = in_time(self.shared.secret_api(None).get_opt(handed)).await;
        let found = found.map_err(|error| refused(&format!("reading Secret {handed}"), &error))?;
        // Copied by an earlier pass that did not get to the end; if not, the route's Secret will be missed.
        let Some(credentials) = found.as_ref().and_then(TokenCredentials::read) else { return Ok(()) };
        let recorded = state.token_secret_name.clone();
        let name = recorded.clone().unwrap_or_else(|| names::token_secret(&self.subject.key));
        let api = self.shared.secret_api(self.subject.key.namespace.as_deref());
        let there = in_time(api.get_opt(&name)).await;
        let there = there.map_err(|error| refused(&format!("reading Secret {name}"), &error))?;
        if token::judge(there.as_ref(), recorded.is_some(), None) == FoundSecret::Foreign {
            return Err(token::conflict(&name));
        }
        let secret = token::secret(route, &name, &credentials);
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let written = in_time(api.patch(&name, &parameters, &Patch::Apply(&token::manifest(&secret)))).await;
        written.map(drop).map_err(|error| refused(&format!("writing Secret {name}"), &error))
    }

    async fn drop_handed_over(&self, handed: &str, task: &CloudflareTask) -> Result<(), Problem> {
        let api = self.shared.secret_api(None);
        let found = in_time(api.get_metadata_opt(handed)).await;
        let found = found.map_err(|error| refused(&format!("reading Secret {handed}"), &error))?;
        let ours = |owners: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference]| {
            owners.iter().any(|owner| Some(&owner.uid) == task.metadata.uid.as_ref())
        };
        match found {
            Some(secret) if ours(secret.owner_references()) => self.delete_secret(None, handed, secret.uid()).await,
            _ => Ok(()),
        }
    }

    pub(super) async fn delete_secret(
        &self,
        namespace: Option<&str>,
        name: &str,
        uid: Option<String>,
    ) -> Result<(), Problem> {
        let preconditions = Preconditions { uid, resource_version: None };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match in_time(self.shared.secret_api(namespace).delete(name, &parameters)).await {
            Ok(_) => Ok(()),
            Err(error) if is_missing(&error) || is_conflict(&error) => Ok(()),
            Err(error) => Err(refused(&format!("deleting Secret {name}"), &error)),
        }
    }

    /// The Secret with a token's credentials goes, if it is ours; so does its name in the state.
    pub(super) async fn drop_secret_of_token(&mut self) -> Result<(), Problem> {
        let mut state = self.state();
        let Some(name) = state.token_secret_name.take() else { return Ok(()) };
        let namespace = self.subject.key.namespace.as_deref();
        let found = in_time(self.shared.secret_api(namespace).get_opt(&name)).await;
        let found = found.map_err(|error| refused(&format!("reading Secret {name}"), &error))?;
        if let Some(secret) = found {
            // It stands in the state: it is ours.
            self.delete_secret(namespace, &name, secret.uid()).await?;
        }
        self.store(&state).await
    }
}

/// Whether a task was made for this very route, not for an earlier one of its name.
fn is_for(task: &CloudflareTask, route: &HttpRoute) -> bool {
    let asked = task.spec.httproute_ref.as_ref().and_then(|route| route.uid.as_ref());
    asked.is_none_or(|uid| Some(uid) == route.metadata.uid.as_ref())
}
