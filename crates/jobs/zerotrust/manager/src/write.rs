//! The manager's writes: Deployments as plain JSON, so that nothing that this program does not know is lost.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use portolan_core::Problem;
use portolan_engine::{FIELD_MANAGER, in_time, kubernetes_problem};
use portolan_zerotrust_model::reasons;
use serde_json::Value;

use crate::deployment_change::DeploymentChange;
use crate::managed_fields::{self, MANAGER};
use crate::shared::ManagerContext;
use crate::worker::WorkerStep;

/// Why a write did not happen.
#[derive(Debug)]
pub(crate) enum WriteRefusal {
    /// Somebody else wrote since it was read: worth another look at once.
    Stale,
    /// Something that has to be told.
    Problem(Problem),
}

impl WriteRefusal {
    fn of(doing: &str, error: &kube::Error) -> Self {
        let (code, said) = match error {
            kube::Error::Api(status) => (status.code, status.message.clone()),
            other => (0, other.to_string()),
        };
        let message = format!("{doing} failed: {said}");
        match code {
            409 => Self::Stale,
            400 | 422 => Self::Problem(Problem::invalid(reasons::APPLY_FAILED, message)),
            401 | 403 => Self::Problem(Problem::denied(reasons::APPLY_FAILED, message)),
            _ => Self::Problem(Problem::transient(reasons::APPLY_FAILED, message)),
        }
    }
}

impl ManagerContext {
    fn api(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<Deployment>(&());
        Api::namespaced_with(self.context.client.clone(), &self.context.operator_namespace, &resource)
    }

    /// A Deployment with everything that it has, its owners included.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Value>, Problem> {
        let found = in_time(self.api().get_opt(name)).await;
        found
            .map(|found| found.map(plain))
            .map_err(|error| kubernetes_problem(format_args!("reading Deployment {name}"), &error))
    }

    /// Takes the own Deployment to its shape; gives it back as it stands then.
    pub(crate) async fn reshape(&self, live: &Value, change: &DeploymentChange) -> Result<Value, WriteRefusal> {
        let mut stands = live.clone();
        if let Some(body) = &change.replace {
            stands = self.replace(body, MANAGER).await?;
        }
        if let Some(body) = &change.apply {
            stands = self.apply(body).await?;
        }
        if let Some(body) = change.disown.and_then(|keep| managed_fields::disowned(&stands, keep)) {
            stands = self.replace(&body, MANAGER).await?;
        }
        Ok(stands)
    }

    /// Carries out what is to be done about a worker.
    pub(crate) async fn carry_out(&self, step: &WorkerStep) -> Result<(), WriteRefusal> {
        match step {
            WorkerStep::Keep => Ok(()),
            WorkerStep::Create(body) => self.create(body).await.map(drop),
            WorkerStep::Replace { after, .. } => self.replace(after, FIELD_MANAGER).await.map(drop),
            WorkerStep::Blocked(problem) => Err(WriteRefusal::Problem(problem.clone())),
        }
    }

    async fn create(&self, body: &Value) -> Result<Value, WriteRefusal> {
        let made = in_time(self.api().create(&written_by(FIELD_MANAGER), &object(body))).await;
        let name = name_of(body);
        Ok(self.wrote(made.map_err(|error| WriteRefusal::of(&format!("making Deployment {name}"), &error))?))
    }

    /// Writes over the version that was read; one that is newer is left alone and looked at again.
    async fn replace(&self, body: &Value, manager: &str) -> Result<Value, WriteRefusal> {
        let name = name_of(body);
        let written = in_time(self.api().replace(&name, &written_by(manager), &object(body))).await;
        Ok(self.wrote(written.map_err(|error| WriteRefusal::of(&format!("writing Deployment {name}"), &error))?))
    }

    async fn apply(&self, body: &Value) -> Result<Value, WriteRefusal> {
        let (name, params) = (name_of(body), PatchParams::apply(MANAGER).force());
        let applied = in_time(self.api().patch(&name, &params, &Patch::Apply(body))).await;
        Ok(self.wrote(applied.map_err(|error| WriteRefusal::of(&format!("applying to Deployment {name}"), &error))?))
    }

    /// Takes in what a write left.
    fn wrote(&self, written: DynamicObject) -> Value {
        let value = plain(written);
        if let Ok(typed) = serde_json::from_value::<Deployment>(value.clone()) {
            self.deployments.wrote(typed);
        }
        value
    }
}

fn written_by(manager: &str) -> PostParams {
    PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() }
}

fn object(body: &Value) -> DynamicObject {
    serde_json::from_value(body.clone()).expect("a Deployment is an object")
}

fn plain(object: DynamicObject) -> Value {
    serde_json::to_value(object).expect("objects are plain JSON")
}

fn name_of(body: &Value) -> String {
    body["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
