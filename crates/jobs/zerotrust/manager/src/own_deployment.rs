//! The pod of this process → the Deployment that it belongs to, by owner references; never by a name that is guessed.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ObjectMeta, PartialObjectMeta};
use kube::{Api, Client};
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{in_time, kubernetes_problem};
use portolan_zerotrust_model::reasons;

/// The operator's own Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnDeployment {
    pub(crate) deployment: ObjectKey,
    pub(crate) uid: String,
}

/// How far the search for it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Begun,
    Found(OwnDeployment),
    Failed(Problem),
}

/// Follows the owners of a pod up to its Deployment.
pub(crate) async fn find(client: &Client, namespace: &str, pod: Option<&str>) -> Result<OwnDeployment, Problem> {
    let pod = pod.map(str::trim).filter(|pod| !pod.is_empty()).ok_or_else(|| {
        nowhere("this process does not know its pod, so that there is no Deployment to configure".to_owned())
    })?;
    let found = metadata::<Pod>(client, namespace, pod).await?;
    let meta = found.ok_or_else(|| nowhere(format!("there is no Pod {namespace}/{pod}")))?;
    let (name, _) = owner(&meta, "ReplicaSet").ok_or_else(|| unowned("Pod", pod, &meta, "ReplicaSet"))?;
    let found = metadata::<ReplicaSet>(client, namespace, &name).await?;
    let meta = found.ok_or_else(|| nowhere(format!("the ReplicaSet {namespace}/{name} of Pod {pod} is gone")))?;
    let (deployment, uid) =
        owner(&meta, "Deployment").ok_or_else(|| unowned("ReplicaSet", &name, &meta, "Deployment"))?;
    Ok(OwnDeployment { deployment: ObjectKey { namespace: Some(namespace.to_owned()), name: deployment }, uid })
}

async fn metadata<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<ObjectMeta>, Problem>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let found: Result<Option<PartialObjectMeta<K>>, kube::Error> = in_time(api.get_metadata_opt(name)).await;
    let kind = K::kind(&());
    found
        .map(|found| found.map(|found| found.metadata))
        .map_err(|error| kubernetes_problem(format_args!("reading {kind} {namespace}/{name}"), &error))
        .map_err(|problem| Problem { reason: reasons::APPLY_FAILED, ..problem })
}

/// The name and uid of the object of a kind that controls another.
fn owner(meta: &ObjectMeta, kind: &str) -> Option<(String, String)> {
    let controller = meta.owner_references.iter().flatten().find(|one| one.controller == Some(true))?;
    (controller.kind == kind).then(|| (controller.name.clone(), controller.uid.clone()))
}

fn unowned(kind: &str, name: &str, meta: &ObjectMeta, wanted: &str) -> Problem {
    let controller = meta.owner_references.iter().flatten().find(|one| one.controller == Some(true));
    let by = controller.map_or("nothing".to_owned(), |one| format!("{} {}", one.kind, one.name));
    nowhere(format!("{kind} {name} is controlled by {by} and not by a {wanted}"))
}

fn nowhere(what: String) -> Problem {
    let message = format!(
        "{what}: run the operator by a Deployment, with POD_NAME from the field metadata.name and OPERATOR_NAMESPACE from \
         the field metadata.namespace"
    );
    Problem::waiting(reasons::APPLY_FAILED, message)
}

/// Whether a Deployment is the own one.
pub(crate) fn is_own(own: &OwnDeployment, deployment: &Deployment) -> bool {
    deployment.metadata.uid.as_deref() == Some(own.uid.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta(owners: serde_json::Value) -> ObjectMeta {
        serde_json::from_value(json!({"name": "a", "ownerReferences": owners})).unwrap()
    }

    #[test]
    fn only_the_controller_counts_as_owner_and_only_if_it_is_of_the_kind() {
        let one = |kind: &str, controller: bool| json!({"apiVersion": "v1", "kind": kind, "name": "x", "uid": "u", "controller": controller});

        let found = owner(&meta(json!([one("Node", false), one("ReplicaSet", true)])), "ReplicaSet");
        assert_eq!(found, Some(("x".to_owned(), "u".to_owned())));
        assert_eq!(owner(&meta(json!([one("ReplicaSet", false)])), "ReplicaSet"), None);
        assert_eq!(owner(&meta(json!([one("StatefulSet", true)])), "ReplicaSet"), None);
    }

    #[test]
    fn a_pod_of_something_else_is_told_with_what_to_do() {
        let owners =
            json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": true}]);

        let problem = unowned("Pod", "web-0", &meta(owners), "ReplicaSet");

        assert!(
            problem.message.starts_with("Pod web-0 is controlled by StatefulSet web and not by a ReplicaSet: run"),
            "{problem}"
        );
    }
}
