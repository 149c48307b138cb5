//! The definitions (CRDs) of Portolan's own kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::applying::{Applier, Conflicts, Options, Storing};
use crate::failure::{Failure, Outcome};
use crate::jobs::JobName;
use crate::kinds::Kinds;
use crate::manifest::{self, Manifest};
use crate::server::Server;

/// The Gateway API's group.
pub(crate) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
const HTTP_ROUTES: &str = include_str!("../data/httproutes.yaml");

/// All definitions, job by job.
pub(crate) fn all() -> Vec<CustomResourceDefinition> {
    JobName::ALL.into_iter().flat_map(JobName::definitions).collect()
}

/// All definitions as plain objects, without what only a server writes.
pub(crate) fn objects() -> Vec<Value> {
    let plain = |definition: CustomResourceDefinition| {
        let mut object = serde_json::to_value(definition).expect("definitions are plain JSON");
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        object
    };
    all().into_iter().map(plain).collect()
}

/// Installs or updates them, and waits until they are served.
pub(crate) async fn install(server: &Server) -> Outcome {
    let manifests: Vec<Manifest> =
        objects().into_iter().map(|object| Manifest::made("Portolan's kinds", object)).collect();
    install_all(server, &manifests).await
}

/// Installs an outline of the Gateway API's `HTTPRoute` where the server does not know that kind.
pub(crate) async fn install_routes(server: &Server) -> Outcome {
    let kinds = Kinds::discover(server).await?;
    if kinds.in_group(GATEWAY_GROUP).iter().any(|kind| kind.kind == "HTTPRoute") {
        return Ok(());
    }
    install_all(server, &manifest::parse("the outline of HTTPRoute", HTTP_ROUTES)?).await
}

/// The same for any definitions.
pub(crate) async fn install_all(server: &Server, manifests: &[Manifest]) -> Outcome {
    let options = Options {
        namespace: None,
        field_manager: "portolan".to_owned(),
        conflicts: Conflicts::TakeOver,
        storing: Storing::Stored,
    };
    let mut failed = None;
    let mut applier = Applier::new(server, options).await?;
    applier
        .apply_all(manifests, |manifest, outcome| {
            if let Err(failure) = outcome {
                failed.get_or_insert(failure.while_doing(format!("installing {}", manifest.name())));
            }
        })
        .await?;
    failed.map_or(Ok(()), Err)
}

/// Fails where a kind that a job needs is not served.
pub(crate) fn check(job: JobName, kinds: &Kinds, address: &str) -> Outcome {
    let served: Vec<&str> = kinds.in_group(job.group()).iter().map(|kind| kind.kind.as_str()).collect();
    let names = job.definitions().into_iter().map(|definition| definition.spec.names.kind);
    let missing: Vec<String> = names.filter(|kind| !served.contains(&kind.as_str())).collect();
    if !missing.is_empty() {
        return Err(Failure::new(format!("the cluster at {address} does not know {}", missing.join(", ")))
            .next("install the definitions: portolan crds | kubectl apply --server-side -f -"));
    }
    if job != JobName::Zerotrust || kinds.in_group(GATEWAY_GROUP).iter().any(|kind| kind.kind == "HTTPRoute") {
        return Ok(());
    }
    Err(Failure::new(format!("the cluster at {address} does not know HTTPRoute of the Gateway API"))
        .next("install the Gateway API's standard definitions, version 1.0 or later"))
}
