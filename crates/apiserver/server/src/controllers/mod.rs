//! What the server does by itself: serving CRDs, collecting garbage, emptying namespaces, running workloads.
//!
//! Each controller is one task that follows every event of the store. What it does again is harmless: a step that
//! finds nothing to do writes nothing.

pub(crate) mod definitions;
mod events;
mod garbage;
mod namespaces;
mod workloads;

use std::sync::Arc;

use portolan_workloads::{RootCertificate, UnscheduledPods};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::api::Api;
use crate::call::{Call, UpdateResult};
use crate::registry::Resource;
use crate::request::RequestTarget;
use crate::status::ApiError;
use crate::strategy::ObjectPart;

/// Whether the server makes pods of Deployments and the like, as kube-controller-manager does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workloads {
    /// It does.
    On,
    /// Objects stay what clients make them.
    #[default]
    Off,
}

/// Starts all of them; they end when they are aborted.
pub(crate) fn start(api: &Arc<Api>, workloads: Workloads) -> Vec<JoinHandle<()>> {
    let mut controllers = vec![
        tokio::spawn(definitions::run(api.clone(), api.store.observe())),
        tokio::spawn(events::run(api.clone(), api.store.observe())),
        tokio::spawn(garbage::run(api.clone(), api.store.observe())),
        tokio::spawn(namespaces::run(api.clone(), api.store.observe())),
    ];
    if workloads == Workloads::On {
        controllers.push(tokio::spawn(workloads::run(
            api.clone(),
            api.store.observe(),
            portolan_workloads::controllers(),
        )));
    }
    controllers
}

/// Gives every namespace the certificate by which clients trust a server that listens.
pub(crate) fn publish_certificate(api: &Arc<Api>, certificate: &str) -> JoinHandle<()> {
    let publisher = RootCertificate { certificate: certificate.to_owned() };
    tokio::spawn(workloads::run(api.clone(), api.store.observe(), vec![Box::new(publisher)]))
}

/// Says of pods that nothing binds why they are pending.
pub(crate) fn tell_why_pods_wait(api: &Arc<Api>) -> JoinHandle<()> {
    tokio::spawn(workloads::run(api.clone(), api.store.observe(), vec![Box::new(UnscheduledPods)]))
}

/// A call of a controller about one object.
pub(crate) fn call(api: &Arc<Api>, resource: &Arc<Resource>, namespace: &str, name: &str) -> Call {
    let target = RequestTarget {
        group: resource.group.clone(),
        version: resource.version.clone(),
        plural: resource.plural.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..RequestTarget::default()
    };
    Call::internal(api.clone(), resource.clone(), target)
}

/// Changes an object as a controller; `edit` answers false where nothing is to be done.
async fn edit(
    call: &Call,
    part: ObjectPart,
    manager: &str,
    edit: impl Fn(&mut Value) -> bool,
) -> Result<Option<UpdateResult>, ApiError> {
    match call.system_change(part, manager, edit).await {
        Ok(outcome) => Ok(Some(outcome)),
        Err(error) if error.reason == "NotFound" => Ok(None),
        Err(error) => Err(error),
    }
}
