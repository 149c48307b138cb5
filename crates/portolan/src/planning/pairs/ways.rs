//! The ways in which people apply files, each as the tool itself does it.

use http::Method;
use serde_json::{Map, Value, json};

use crate::applying::{Applier, ApplyOptions, As, Conflicts, Storing};
use crate::kinds::{Kinds, segment};
use crate::manifest::Manifest;
use crate::server::{Server, ServerRequest};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A way of applying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    PortolanApply,
    Kubectl,
    KubectlServerSide,
    Helm3,
    Helm4,
    Flux,
    Argo,
    ArgoServerSide,
}

impl Way {
    pub(super) const ALL: [Self; 9] = [
        Self::Up,
        Self::PortolanApply,
        Self::Kubectl,
        Self::KubectlServerSide,
        Self::Helm3,
        Self::Helm4,
        Self::Flux,
        Self::Argo,
        Self::ArgoServerSide,
    ];

    /// Applies objects; `before` is what was applied in this way last.
    pub(super) async fn apply(self, server: &Server, before: &[Value], objects: &[Value]) {
        match self {
            Self::Up => portolan(server, objects, Conflicts::TakeOver).await,
            Self::PortolanApply => portolan(server, objects, Conflicts::Refuse).await,
            _ => {
                let kinds = Kinds::discover(server).await.unwrap();
                for object in objects {
                    self.apply_one(server, &kinds, before, object).await;
                }
            }
        }
    }

    async fn apply_one(self, server: &Server, kinds: &Kinds, before: &[Value], object: &Value) {
        let kind = kinds.of_object(text(object, "/apiVersion"), text(object, "/kind")).unwrap();
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let path = kind.object_path(namespace, name);
        let last = before.iter().find(|one| is_same(one, object));
        let sent = SentManifest { server, collection: kind.collection_path(Some(namespace)), path };
        match self {
            Self::Up | Self::PortolanApply => unreachable!("applied by ourselves"),
            Self::Kubectl => sent.client_side("kubectl-client-side-apply", object).await,
            Self::Argo => sent.client_side("argocd-controller", object).await,
            Self::KubectlServerSide => sent.server_side("kubectl", "", object).await,
            Self::Helm4 => sent.server_side("helm", "", object).await,
            Self::Flux => sent.server_side("kustomize-controller", "&force=true", object).await,
            Self::ArgoServerSide => sent.server_side("argocd-controller", "&force=true", object).await,
            Self::Helm3 => match last {
                None => sent.create("helm", &released(object)).await,
                Some(last) => sent.merge("helm", &difference(&released(last), &released(object))).await,
            },
        }
    }
}

fn is_same(left: &Value, right: &Value) -> bool {
    ["/kind", "/metadata/namespace", "/metadata/name"].iter().all(|field| left.pointer(field) == right.pointer(field))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

async fn portolan(server: &Server, objects: &[Value], conflicts: Conflicts) {
    let manifests: Vec<Manifest> = objects.iter().map(|object| Manifest::made("a pair", object.clone())).collect();
    let options = ApplyOptions { namespace: None, applier: As::portolan(), conflicts, storing: Storing::Stored };
    let mut applier = Applier::new(server, options).await.unwrap();
    let each = |_: &Manifest, outcome: crate::failure::Outcome<_>| drop(outcome.unwrap());
    applier.apply_all(&manifests, each).await.unwrap();
}

/// helm adds what it finds its objects by.
fn released(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("Helm");
    object["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("site");
    object["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = json!("default");
    object
}

struct SentManifest<'a> {
    server: &'a Server,
    collection: String,
    path: String,
}

impl SentManifest<'_> {
    async fn send(&self, method: Method, path: &str, content_type: &str, query: &str, body: &Value) {
        let path = format!("{path}?{query}");
        let call =
            ServerRequest { method, content_type, body: body.to_string().into_bytes(), ..ServerRequest::get(&path) };
        self.server.call(call).await.unwrap_or_else(|error| panic!("{path}: {error:?}\n{body:#}"));
    }

    async fn create(&self, manager: &str, object: &Value) {
        let query = format!("fieldManager={}", segment(manager));
        self.send(Method::POST, &self.collection, "application/json", &query, object).await;
    }

    async fn merge(&self, manager: &str, patch: &Value) {
        let query = format!("fieldManager={}", segment(manager));
        self.send(Method::PATCH, &self.path, "application/merge-patch+json", &query, patch).await;
    }

    async fn server_side(&self, manager: &str, force: &str, object: &Value) {
        let query = format!("fieldManager={}{force}", segment(manager));
        self.send(Method::PATCH, &self.path, "application/apply-patch+yaml", &query, object).await;
    }

    /// `kubectl apply`: what was applied last stands in an annotation (k8s.io/kubectl/pkg/cmd/apply/patcher.go).
    async fn client_side(&self, manager: &str, object: &Value) {
        let mut modified = object.clone();
        modified["metadata"]["annotations"][LAST_APPLIED] = json!(object.to_string());
        let Some(current) = self.server.find(&self.path).await.unwrap() else {
            return self.create(manager, &modified).await;
        };
        let last = current["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
        let original: Value = serde_json::from_str(last).unwrap();
        // jsonmergepatch.CreateThreeWayJSONMergePatch
        let mut patch = only(Nulls::Kept, &difference(&original, &modified));
        overlay(&mut patch, &only(Nulls::Dropped, &difference(&current, &modified)));
        self.merge(manager, &patch).await;
    }
}

/// RFC 7396: what turns one document into another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Some(old), Some(new)) = (from.as_object(), to.as_object()) else { return to.clone() };
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(there) if there == value => {}
            Some(there) if there.is_object() && value.is_object() => {
                patch.insert(name.clone(), difference(there, value));
            }
            _ => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Value::Object(patch)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Kept,
    Dropped,
}

/// Only the deletions of a patch, or everything else.
fn only(nulls: Nulls, patch: &Value) -> Value {
    let mut kept = Map::new();
    for (name, value) in patch.as_object().into_iter().flatten() {
        match value {
            Value::Null if nulls == Nulls::Kept => drop(kept.insert(name.clone(), Value::Null)),
            Value::Object(below) if !below.is_empty() => {
                let below = only(nulls, value);
                if below.as_object().is_some_and(|below| !below.is_empty()) {
                    kept.insert(name.clone(), below);
                }
            }
            Value::Null => {}
            other if nulls == Nulls::Dropped => drop(kept.insert(name.clone(), other.clone())),
            _ => {}
        }
    }
    Value::Object(kept)
}

fn overlay(patch: &mut Value, other: &Value) {
    match (patch, other) {
        (Value::Object(patch), Value::Object(other)) => {
            for (name, value) in other {
                overlay(patch.entry(name).or_insert(Value::Null), value);
            }
        }
        (patch, other) => *patch = other.clone(),
    }
}
