//! The roles and bindings that every cluster has: made at the start, and put right where they were changed.

use std::sync::Arc;

use futures::future::join_all;
use portolan_rbac::bootstrap::{BootstrapStep, objects, reconcile};
use serde_json::{Value, json};

use crate::api::Api;
use crate::call::{Call, DeleteOptions};
use crate::controllers;
use crate::object;
use crate::status::ApiError;
use crate::strategy::ObjectPart;

const MANAGER: &str = "kube-apiserver";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Makes everything as expected; a settled store is only read.
pub(crate) async fn run(api: &Arc<Api>) {
    // All at once, so that one commit carries them.
    let results = join_all(objects().iter().map(|expected| ensure(api, expected))).await;
    for (expected, result) in objects().iter().zip(results) {
        if let Err(error) = result {
            let (kind, name) = (&expected["kind"], object::name(expected));
            tracing::warn!(%kind, name, error = error.message, "Could not make a role or binding of the system");
        }
    }
}

async fn ensure(api: &Arc<Api>, expected: &Value) -> Result<(), ApiError> {
    let kind = expected["kind"].as_str().unwrap_or_default();
    let Some(resource) = api.registry().by_kind(API_VERSION, kind).cloned() else {
        return Ok(());
    };
    let (namespace, name) = (object::namespace(expected), object::name(expected));
    let existing = api.store.get(&resource.key(namespace, name)).map(|stored| api.object(&resource, &stored));
    let call = controllers::call(api, &resource, namespace, name);
    match reconcile(existing.as_ref(), expected) {
        BootstrapStep::Nothing => Ok(()),
        BootstrapStep::Create => create(&call, expected).await,
        BootstrapStep::Update(new) => {
            let edit = |live: &mut Value| {
                live.clone_from(&new);
                true
            };
            call.system_change(ObjectPart::Main, MANAGER, edit).await.map(|_| ())
        }
        BootstrapStep::Recreate => {
            call.delete_object(name, &DeleteOptions::default()).await?;
            create(&call, expected).await
        }
    }
}

async fn create(call: &Call, expected: &Value) -> Result<(), ApiError> {
    let mut value = expected.clone();
    value["apiVersion"] = json!(API_VERSION);
    call.system_create(MANAGER, value).await.map(|_| ())
}
