//! The definitions (CRDs) of Portolan's own kinds.

use http::Method;
use portolan_engine::{JobDefinition, Provisions};
use serde_json::Value;

use crate::applying::{Applier, ApplyOptions, As, Conflicts, Storing};
use crate::failure::{Failure, Outcome};
use crate::jobs;
use crate::kinds::{Kinds, segment};
use crate::manifest::{self, Manifest};
use crate::server::{Server, ServerRequest};

/// The Gateway API's group.
pub(crate) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
const HTTP_ROUTES: &str = include_str!("../data/httproutes.yaml");
const REFERENCE_GRANTS: &str = include_str!("../data/referencegrants.yaml");

/// All definitions, job by job, as plain objects.
pub(crate) fn objects() -> Vec<Value> {
    jobs::ALL.iter().flat_map(|job| (job.sheet.definitions)()).collect()
}

/// The kinds that they define.
pub(crate) fn kinds() -> Vec<String> {
    jobs::ALL.iter().flat_map(|job| job.sheet.kinds()).collect()
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
pub(crate) fn check(job: &JobDefinition, kinds: &Kinds, address: &str) -> Outcome {
    check_own(job, &job.sheet.kinds(), kinds, address)?;
    check_others(job, &Provisions::default(), kinds, address)
}

/// Fails where a kind is not served that a job works with in this process.
pub(crate) fn check_part(job: &JobDefinition, provisions: &Provisions, kinds: &Kinds, address: &str) -> Outcome {
    let own = (job.kinds)(provisions).map(|own| own.iter().map(|kind| (*kind).to_owned()).collect());
    check_own(job, &own.unwrap_or_else(|| job.sheet.kinds()), kinds, address)?;
    check_others(job, provisions, kinds, address)
}

fn check_own(job: &JobDefinition, names: &[String], kinds: &Kinds, address: &str) -> Outcome {
    let served = kinds.in_group(job.sheet.group);
    let is_missing = |name: &&String| !served.iter().any(|kind| kind.kind == **name);
    let missing: Vec<&str> = names.iter().filter(is_missing).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("the cluster at {address} does not know {}", missing.join(", ")))
        .next("install the definitions: portolan crds | kubectl apply --server-side -f -"))
}

fn check_others(job: &JobDefinition, provisions: &Provisions, kinds: &Kinds, address: &str) -> Outcome {
    for needed in (job.needs)(provisions) {
        if !kinds.in_group(needed.group).iter().any(|kind| kind.kind == needed.kind) {
            return Err(
                Failure::new(format!("the cluster at {address} does not know {}", needed.called)).next(needed.remedy)
            );
        }
    }
    Ok(())
}
