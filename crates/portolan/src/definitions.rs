//! The definitions (CRDs) of Portolan's own kinds.

use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use portolan_zerotrust::Role;
use serde_json::Value;

use crate::applying::{Applier, ApplyOptions, As, Conflicts, Storing};
use crate::failure::{Failure, Outcome};
use crate::jobs::JobName;
use crate::kinds::{Kinds, segment};
use crate::manifest::{self, Manifest};
use crate::server::{Server, ServerRequest};

/// The Gateway API's group.
pub(crate) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
const HTTP_ROUTES: &str = include_str!("../data/httproutes.yaml");
const REFERENCE_GRANTS: &str = include_str!("../data/referencegrants.yaml");

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

/// Puts each definition in the place of the one that there is, whole. Applied over the definitions of an older operator,
/// ours would keep the defaults that those write into objects.
pub(crate) async fn replace(server: &Server, definitions: &[Value]) -> Outcome {
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        replace_one(server, name, definition)
            .await
            .map_err(|failure| failure.while_doing(format!("replacing {name}")))?;
    }
    Ok(())
}

async fn replace_one(server: &Server, name: &str, definition: &Value) -> Outcome {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", segment(name));
    let Some(mut found) = server.find(&path).await? else { return Ok(()) };
    if found["spec"]["versions"] == definition["spec"]["versions"] {
        return Ok(());
    }
    found["spec"] = definition["spec"].clone();
    let body = found.to_string().into_bytes();
    server.call(ServerRequest { method: Method::PUT, body, ..ServerRequest::get(&path) }).await?;
    Ok(())
}

/// Installs outlines of the Gateway API's kinds that are read, where the server does not know them.
pub(crate) async fn install_routes(server: &Server) -> Outcome {
    let kinds = Kinds::discover(server).await?;
    for (name, outline) in [("HTTPRoute", HTTP_ROUTES), ("ReferenceGrant", REFERENCE_GRANTS)] {
        if !kinds.in_group(GATEWAY_GROUP).iter().any(|kind| kind.kind == name) {
            install_all(server, &manifest::parse(&format!("the outline of {name}"), outline)?).await?;
        }
    }
    Ok(())
}

/// The same for any definitions.
pub(crate) async fn install_all(server: &Server, manifests: &[Manifest]) -> Outcome {
    let options = ApplyOptions {
        namespace: None,
        applier: As::portolan(),
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
    let names: Vec<String> = job.definitions().into_iter().map(|definition| definition.spec.names.kind).collect();
    check_kinds(job, &names, kinds, address)?;
    if job == JobName::Zerotrust { check_routes(kinds, address) } else { Ok(()) }
}

/// Fails where a kind is not served that a role of the zerotrust job works with.
pub(crate) fn check_role(role: Role, kinds: &Kinds, address: &str) -> Outcome {
    let names: Vec<String> = role.kinds().iter().map(|kind| (*kind).to_owned()).collect();
    check_kinds(JobName::Zerotrust, &names, kinds, address)?;
    if role.sees_routes() { check_routes(kinds, address) } else { Ok(()) }
}

fn check_kinds(job: JobName, names: &[String], kinds: &Kinds, address: &str) -> Outcome {
    let served = kinds.in_group(job.group());
    let is_missing = |name: &&String| !served.iter().any(|kind| kind.kind == **name);
    let missing: Vec<&str> = names.iter().filter(is_missing).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("the cluster at {address} does not know {}", missing.join(", ")))
        .next("install the definitions: portolan crds | kubectl apply --server-side -f -"))
}

fn check_routes(kinds: &Kinds, address: &str) -> Outcome {
    if kinds.in_group(GATEWAY_GROUP).iter().any(|kind| kind.kind == "HTTPRoute") {
        return Ok(());
    }
    Err(Failure::new(format!("the cluster at {address} does not know HTTPRoute of the Gateway API"))
        .next("install the Gateway API's standard definitions, version 1.0 or later"))
}
