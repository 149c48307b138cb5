//! A cluster → what it says of itself and of the operator in it.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use jiff::Timestamp;
use portolan_core::job::{JobRole, LeaseName};
use portolan_zerotrust::JOB;
use serde_json::Value;

use crate::definitions::{self, GATEWAY_GROUP};
use crate::doctor::definition::{Definition, DefinitionState};
use crate::doctor::facts::{Cluster, Deployment, Inside, Lease, Observation, Rights, Whose};
use crate::doctor::rights::{self, Right, RightsSubject};
use crate::kinds::segment;
use crate::server::{CallError, Server, ServerRequest};
use crate::zerotrust::GROUP;

/// Reviews that wait for their answer at once.
const REVIEWS_AT_ONCE: usize = 16;
/// Images of operators for the same kinds that Portolan takes the place of.
const OLDER_IMAGES: [&str; 2] = ["cloudflare-zero-trust-operator", "cloudflare-zero-trust"];

/// Names of Deployments, older ones and ours; the first is the label of all of them, too.
const DEPLOYMENTS: [&str; 3] =
    ["cloudflare-zero-trust-operator", "cloudflare-zero-trust-kube-worker", "cloudflare-zero-trust-cloudflare-worker"];

/// What is asked of a cluster.
pub(crate) struct ClusterQuestion {
    pub(crate) operator_namespace: String,
    pub(crate) role: &'static JobRole,
    pub(crate) subject: RightsSubject,
}

/// A cluster that cannot even be asked.
pub(crate) fn unreachable(why: String) -> Cluster {
    Cluster { place: String::new(), now: Timestamp::now(), version: Err(why), inside: None }
}

/// Looks at a cluster; what its objects ask for is filled in by others.
pub(crate) async fn look(server: &Server, question: &ClusterQuestion) -> Cluster {
    let version = version(server).await;
    let inside = match &version {
        Ok(_) => Some(inside(server, question).await),
        Err(_) => None,
    };
    let place = format!("{} (kubeconfig {})", server.address(), server.origin());
    Cluster { place, now: Timestamp::now(), version, inside }
}

async fn version(server: &Server) -> Observation<(String, Duration)> {
    let started = Instant::now();
    let answer = server.call(ServerRequest::get("/version")).await.map_err(why)?;
    Ok((answer.body["gitVersion"].as_str().unwrap_or("of unknown version").to_owned(), started.elapsed()))
}

async fn inside(server: &Server, question: &ClusterQuestion) -> Inside {
    let namespace = &question.operator_namespace;
    Inside {
        definitions: definitions(server).await,
        routes_served: routes_served(server).await,
        rights: rights(server, question).await,
        operator_namespace: namespace.clone(),
        leases: leases(server, namespace).await,
        deployments: deployments(server, namespace).await,
        tenants: Ok(0),
        stray_routes: Vec::new(),
        enabled_routes: 0,
    }
}

/// Ours, and those of another job where the cluster has any of them.
async fn definitions(server: &Server) -> Vec<Definition> {
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for object in definitions::objects() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", segment(name));
        let there = server.find(&path).await.map_err(|failure| failure.what().to_owned());
        let kept = if object["spec"]["group"] == GROUP { &mut ours } else { &mut others };
        kept.push(Definition::compare(&object, there));
    }
    if others.iter().any(|definition| definition.state != DefinitionState::Missing) {
        ours.append(&mut others);
    }
    ours
}

async fn routes_served(server: &Server) -> Observation<bool> {
    let found = server.find(&format!("/apis/{GATEWAY_GROUP}/v1")).await.map_err(|failure| failure.what().to_owned())?;
    let resources = found.as_ref().and_then(|list| list["resources"].as_array());
    Ok(resources.is_some_and(|all| all.iter().any(|resource| resource["name"] == "httproutes")))
}

async fn rights(server: &Server, question: &ClusterQuestion) -> Rights {
    let all = rights::of(question.role, &question.operator_namespace);
    let answers = futures::stream::iter(&all).map(|right| review(server, &question.subject, right));
    let answers: Observation<Vec<Option<Right>>> = answers.buffered(REVIEWS_AT_ONCE).try_collect().await;
    Rights {
        role: question.role.name,
        whose: question.subject.to_string(),
        asked: all.len(),
        missing: answers.map(|answers| rights::told(&answers.into_iter().flatten().collect::<Vec<_>>())),
    }
}

/// The right, if it is missing.
async fn review(server: &Server, subject: &RightsSubject, right: &Right) -> Observation<Option<Right>> {
    let body = subject.review(right).to_string().into_bytes();
    let call = ServerRequest { method: Method::POST, body, ..ServerRequest::get(subject.path()) };
    match server.call(call).await {
        Ok(answer) if rights::is_allowed(&answer.body) => Ok(None),
        Ok(_) => Ok(Some(right.clone())),
        Err(CallError::Refused { code: 404 | 405, .. }) => Err("the server does not answer access reviews".to_owned()),
        Err(error) => Err(why(error)),
    }
}

/// Those by which one process leads.
async fn leases(server: &Server, namespace: &str) -> Observation<Vec<Lease>> {
    let mut found = Vec::new();
    for name in JOB.sheet.leases.iter().copied().filter_map(LeaseName::leader) {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{name}", segment(namespace));
        let lease = server.find(&path).await.map_err(|failure| failure.what().to_owned())?;
        found.extend(lease.map(|lease| read_lease(name, &lease["spec"])));
    }
    Ok(found)
}

fn read_lease(name: &str, spec: &Value) -> Lease {
    let time = |field: &str| spec[field].as_str().and_then(|text| text.parse().ok());
    Lease {
        name: name.to_owned(),
        holder: spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned),
        since: time("acquireTime"),
        renewed: time("renewTime"),
        duration: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(15)),
    }
}

/// Those of the whole cluster; where that is not allowed, those of the operator's namespace.
async fn deployments(server: &Server, namespace: &str) -> Observation<Vec<Deployment>> {
    let own = format!("/apis/apps/v1/namespaces/{}/deployments", segment(namespace));
    let answer = match server.call(ServerRequest::get("/apis/apps/v1/deployments")).await {
        Err(CallError::Refused { code: 403, .. }) => server.call(ServerRequest::get(&own)).await,
        answer => answer,
    };
    let list = answer.map_err(why)?.body;
    let all = list["items"].as_array().into_iter().flatten();
    Ok(all.filter_map(|object| read_deployment(object, namespace)).collect())
}

fn read_deployment(object: &Value, namespace: &str) -> Option<Deployment> {
    let metadata = &object["metadata"];
    let (container, whose) = whose(object)?;
    if whose == Whose::Ours && metadata["namespace"] != namespace {
        return None;
    }
    Some(Deployment {
        name: format!("{}/{}", metadata["namespace"].as_str()?, metadata["name"].as_str()?),
        whose,
        wanted: object["spec"]["replicas"].as_i64().unwrap_or(1),
        ready: object["status"]["readyReplicas"].as_i64().unwrap_or(0),
        image: container["image"].as_str().unwrap_or_default().to_owned(),
    })
}

/// Whose a Deployment is, with the container that tells. Names and labels are those that older operators have, too: what runs
/// there is ours by its image, or by how it is started where an image of ours has another name.
fn whose(object: &Value) -> Option<(&Value, Whose)> {
    let containers = object["spec"]["template"]["spec"]["containers"].as_array()?;
    let metadata = &object["metadata"];
    let is_named = metadata["labels"]["app.kubernetes.io/name"] == DEPLOYMENTS[0]
        || DEPLOYMENTS.iter().any(|name| metadata["name"] == *name);
    let is_known = |container: &Value| is_named || OLDER_IMAGES.contains(&image_name(container));
    let runs = |container: &Value| container["command"].is_null() && container["args"][0] == "run";
    let is_ours =
        |container: &&Value| image_name(container).contains("portolan") || (is_known(container) && runs(container));
    let ours = containers.iter().find(is_ours).map(|container| (container, Whose::Ours));
    ours.or_else(|| containers.iter().find(|container| is_known(container)).map(|container| (container, Whose::Older)))
}

/// `registry:5000/team/name:tag@sha256:…` → `name`.
fn image_name(container: &Value) -> &str {
    let image = container["image"].as_str().unwrap_or_default().split('@').next().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

fn why(error: CallError) -> String {
    crate::failure::Failure::from(error).what().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(namespace: &str, container: Value) -> Value {
        json!({
            "metadata": {"namespace": namespace, "name": "op"},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{"image": "envoy:1"}, container]}}},
            "status": {"readyReplicas": 1},
        })
    }

    #[test]
    fn an_older_operator_is_known_by_its_image_in_any_namespace() {
        let older =
            deployment("tools", json!({"image": "registry.example.com/team/cloudflare-zero-trust-operator:0.2.17"}));

        let found = read_deployment(&older, "cloudflare-zero-trust").unwrap();

        assert_eq!((found.whose, found.wanted, found.ready), (Whose::Older, 2, 1));
        assert_eq!(found.name, "tools/op");
    }

    #[test]
    fn ours_are_known_by_image_or_by_how_they_are_started() {
        let ours = json!({"image": "registry:5000/x/portolan@sha256:0"});
        let mirrored = json!({"image": "mirror/cloudflare-zero-trust-operator:1", "args": ["run"]});

        for container in [ours, mirrored] {
            let found = read_deployment(&deployment("ops", container.clone()), "ops").map(|one| one.whose);
            assert_eq!(found, Some(Whose::Ours), "{container}");
            assert_eq!(read_deployment(&deployment("other", container), "ops"), None);
        }
        assert_eq!(read_deployment(&deployment("ops", json!({"image": "nginx"})), "ops"), None);
    }

    #[test]
    fn an_older_operator_from_a_mirror_is_known_by_its_name_or_label() {
        let mut named = deployment("ops", json!({"image": "mirror/zt:0.1.40"}));
        named["metadata"]["name"] = json!("cloudflare-zero-trust-kube-worker");
        let mut labelled = deployment("ops", json!({"image": "mirror/zt:0.1.40"}));
        labelled["metadata"]["labels"] = json!({"app.kubernetes.io/name": "cloudflare-zero-trust-operator"});

        for object in [named, labelled] {
            assert_eq!(read_deployment(&object, "ops").map(|one| one.whose), Some(Whose::Older), "{object}");
        }
    }

    #[test]
    fn a_lease_without_a_holder_is_free() {
        let lease = read_lease("l", &json!({"holderIdentity": "", "leaseDurationSeconds": 15}));

        assert_eq!((lease.holder, lease.renewed, lease.duration), (None, None, Duration::from_secs(15)));
    }
}
