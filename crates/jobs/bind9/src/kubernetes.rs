//! Objects as plain JSON: read by name, applied where they differ, deleted.
//!
//! They are applied under the older operator's name, so that what it applied and what is not asked for any more goes away.

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Client, core::GroupVersionKind};
use portolan_bind9_model::names::FIELD_MANAGER;
use portolan_bind9_model::reasons;
use portolan_core::{ObjectKey, Problem};
use portolan_engine::in_time;
use serde_json::Value;

/// The kinds that the job writes: group and version, kind, plural.
const KINDS: [(&str, &str, &str); 9] = [
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "Secret", "secrets"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Service", "services"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("bindy.firestoned.io/v1beta1", "Bind9Cluster", "bind9clusters"),
    ("bindy.firestoned.io/v1beta1", "Bind9Instance", "bind9instances"),
];

/// Reads and writes objects.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
}

impl Objects {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    fn api(&self, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let row = KINDS.iter().find(|row| row.1 == kind).expect("the job writes only kinds of the table");
        let (group, version) = row.0.rsplit_once('/').unwrap_or(("", row.0));
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), row.2);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// An object, where there is one.
    pub(crate) async fn read(&self, kind: &str, key: &ObjectKey) -> Result<Option<Value>, Problem> {
        let found = in_time(self.api(kind, key.namespace.as_deref()).get_opt(&key.name)).await;
        let found = found.map_err(|error| problem(&format!("reading {kind} {key}"), &error))?;
        Ok(found.map(plain))
    }

    /// Applies an object; gives it back as it stands then.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Value, Problem> {
        let (kind, key) = name_of(object);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let applied =
            in_time(self.api(&kind, key.namespace.as_deref()).patch(&key.name, &params, &Patch::Apply(object))).await;
        applied.map(plain).map_err(|error| problem(&format!("applying {kind} {key}"), &error))
    }

    /// Deletes an object, unless another has its name by now. One that is gone is deleted.
    pub(crate) async fn delete(&self, object: &Value) -> Result<(), Problem> {
        let (kind, key) = name_of(object);
        let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::background()
        };
        match in_time(self.api(&kind, key.namespace.as_deref()).delete(&key.name, &params)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            Err(error) => Err(problem(&format!("deleting {kind} {key}"), &error)),
        }
    }
}

/// Kind and key of an object.
pub(crate) fn name_of(object: &Value) -> (String, ObjectKey) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let metadata = &object["metadata"];
    let key = ObjectKey { namespace: text(&metadata["namespace"]), name: text(&metadata["name"]).unwrap_or_default() };
    (text(&object["kind"]).unwrap_or_default(), key)
}

fn plain(object: DynamicObject) -> Value {
    serde_json::to_value(object).expect("objects are plain JSON")
}

fn problem(doing: &str, error: &kube::Error) -> Problem {
    let (code, said) = match error {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => (0, other.to_string()),
    };
    let message = format!("Failed to create resources: {doing} failed: {said}");
    match code {
        400 | 422 => Problem::invalid(reasons::NOT_READY, message),
        401 | 403 => Problem::denied(reasons::NOT_READY, message),
        _ => Problem::transient(reasons::NOT_READY, message),
    }
}
