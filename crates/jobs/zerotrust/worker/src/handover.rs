//! New credentials of a service token on their way to the route's namespace: a Secret in the operator's own, owned by
//! the task, so that it goes with it. Nothing else ever holds them.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use portolan_core::Problem;
use portolan_engine::{Context, FIELD_MANAGER, in_time, kubernetes_problem};
use portolan_exposure::NewCredential;
use portolan_zerotrust_model::{CloudflareTask, annotations, names};
use secrecy::ExposeSecret as _;
use serde_json::json;

use crate::task_status::Handed;

/// A secret is shown once: losing it costs a rotation, so the write is tried for a while.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// The Secrets of all tasks.
pub(crate) struct Handover {
    secrets: Api<Secret>,
}

impl Handover {
    pub(crate) fn new(context: &Context) -> Self {
        Self { secrets: Api::namespaced(context.client.clone(), &context.operator_namespace) }
    }

    /// What lies ready for a task. A Secret that an earlier task of the same name left behind is not meant.
    pub(crate) async fn find(&self, task: &CloudflareTask) -> Result<Option<Handed>, Problem> {
        let name = name(task);
        let found = in_time(self.secrets.get_opt(&name)).await;
        let found = found.map_err(|error| kubernetes_problem(format_args!("reading Secret {name}"), &error))?;
        Ok(found.and_then(|secret| handed(task, &secret)))
    }

    /// Stores new credentials.
    pub(crate) async fn put(
        &self,
        task: &CloudflareTask,
        new: &NewCredential,
        rotation: Option<&str>,
    ) -> Result<Handed, Problem> {
        portolan_core::waypoint!();
        let handed = Handed {
            name: name(task),
            token_id: new.token_id.clone(),
            client_id: new.client_id.clone(),
            rotation: rotation.map(str::to_owned),
        };
        let secret = secret(task, &handed, new);
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let mut pauses = PAUSES.into_iter();
        loop {
            let written = in_time(self.secrets.patch(&handed.name, &parameters, &Patch::Apply(&secret))).await;
            match (written, pauses.next()) {
                (Ok(_), _) => return Ok(handed),
                (Err(error), None) => {
                    return Err(kubernetes_problem(format_args!("writing Secret {}", handed.name), &error));
                }
                (Err(_), Some(pause)) => tokio::time::sleep(pause).await,
            }
        }
    }
}

fn name(task: &CloudflareTask) -> String {
    names::handover_secret(&task.name_any())
}

fn secret(task: &CloudflareTask, handed: &Handed, new: &NewCredential) -> serde_json::Value {
    let mut notes = json!({ annotations::name("service-token-id"): handed.token_id });
    if let Some(rotation) = &handed.rotation {
        notes[annotations::name("service-token-rotation")] = json!(rotation);
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": handed.name,
            "annotations": notes,
            "labels": { "app.kubernetes.io/component": "token-handover" },
            "ownerReferences": [{
                "apiVersion": CloudflareTask::api_version(&()), "kind": CloudflareTask::kind(&()),
                "name": task.name_any(), "uid": task.uid().unwrap_or_default(),
            }],
        },
        "data": {
            "client_id": encoded(&new.client_id),
            "client_secret": encoded(new.client_secret.expose_secret()),
        },
    })
}

/// A value as the `data` of a Secret holds it.
fn encoded(text: &str) -> serde_json::Value {
    json!(ByteString(text.as_bytes().to_vec()))
}

fn handed(task: &CloudflareTask, secret: &Secret) -> Option<Handed> {
    let uid = task.uid();
    let ours = secret.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref());
    let text = |key: &str| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
    let note = |suffix: &str| secret.annotations().get(&annotations::name(suffix)).cloned();
    text("client_secret").filter(|_| ours)?;
    Some(Handed {
        name: secret.name_any(),
        token_id: note("service-token-id")?,
        client_id: text("client_id")?,
        rotation: note("service-token-rotation"),
    })
}
