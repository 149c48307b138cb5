//! The cluster as its users have it: apply, look, annotate, delete. Never through the failpoints.

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use portolan_core::ObjectKey;
use serde_json::{Value, json};

use crate::job::WorldJob;

const FIELD_MANAGER: &str = "a-user";

/// A cluster.
pub struct Cluster {
    client: Client,
    job: &'static WorldJob,
}

/// A kind and an object's key, written `DNSRecord/apps/www` or `VirtualNetwork/corp`.
struct Named {
    resource: ApiResource,
    key: ObjectKey,
}

/// A kind that every cluster serves, or that belongs to others.
fn known(kind: &str) -> Option<GroupVersionKind> {
    let (group, version) = match kind {
        "Namespace" | "Secret" | "ConfigMap" | "Service" | "Node" | "Pod" => ("", "v1"),
        "Deployment" | "ReplicaSet" => ("apps", "v1"),
        "Event" => ("events.k8s.io", "v1"),
        "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => ("rbac.authorization.k8s.io", "v1"),
        "Lease" => ("coordination.k8s.io", "v1"),
        "Ingress" => ("networking.k8s.io", "v1"),
        "Gateway" | "HTTPRoute" => ("gateway.networking.k8s.io", "v1"),
        "ReferenceGrant" => ("gateway.networking.k8s.io", "v1beta1"),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", "v1"),
        _ => return None,
    };
    Some(GroupVersionKind::gvk(group, version, kind))
}

impl Cluster {
    pub(crate) fn new(client: Client, job: &'static WorldJob) -> Self {
        Self { client, job }
    }

    /// The client behind it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Applies a manifest as a user does.
    pub async fn try_apply(&self, object: &Value) -> Result<Value, kube::Error> {
        let named = self.named_by(object);
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = self.api(&named).patch(&named.key.name, &parameters, &Patch::Apply(object)).await?;
        Ok(plain(applied))
    }

    /// Creates an object; one that exists is an error.
    pub async fn try_create(&self, object: &Value) -> Result<Value, kube::Error> {
        let named = self.named_by(object);
        let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        Ok(plain(self.api(&named).create(&PostParams::default(), &object).await?))
    }

    /// Applies a manifest that must be accepted.
    pub async fn apply(&self, object: &Value) -> Value {
        let applied = self.try_apply(object).await;
        applied.map_err(|error| format!("{error}\n{object:#}")).expect("the manifest is accepted")
    }

    /// Installs all CRDs of the job that are not there yet, and waits until they are served.
    pub async fn install_definitions(&self) {
        for definition in self.job.definitions() {
            let created = self.try_create(definition).await;
            let there = matches!(&created, Err(kube::Error::Api(status)) if status.code == 409);
            assert!(created.is_ok() || there, "{:?}", created.err());
        }
        for kind in self.job.kinds() {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &self.resource(kind));
            while api.list(&ListParams::default().limit(1)).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }

    /// Puts a definition in the place of the one there is, whole, as `kubectl replace` does; makes it where there is none.
    pub async fn replace_definition(&self, definition: &Value) {
        let named = self.named_by(definition);
        let found = self.api(&named).get_opt(&named.key.name).await.expect("the cluster answers");
        match found {
            Some(_) => drop(self.replace(definition).await),
            None => drop(self.try_create(definition).await.expect("the definition is accepted")),
        }
    }

    /// Puts an object in the place of the one there is, whole, as `kubectl replace` does: whatever others wrote to it goes,
    /// annotations and finalizers as well.
    pub async fn replace(&self, object: &Value) -> Value {
        let named = self.named_by(object);
        let api = self.api(&named);
        let found = api.get(&named.key.name).await.expect("there is one to be replaced");
        let mut wanted = object.clone();
        wanted["metadata"]["resourceVersion"] = json!(found.metadata.resource_version);
        let wanted: DynamicObject = serde_json::from_value(wanted).expect("a manifest is an object");
        plain(api.replace(&named.key.name, &PostParams::default(), &wanted).await.expect("the object is accepted"))
    }

    /// Writes an object once more as it stands, its status by itself, and answers what the cluster made of it: without what its
    /// definition does not know.
    pub async fn rewritten(&self, object: &Value) -> Value {
        self.replace(object).await;
        let named = self.named_by(object);
        let api = self.api(&named);
        if object.get("status").is_some() {
            let mut there = api.get(&named.key.name).await.expect("it was written just now");
            there.data["status"] = object["status"].clone();
            api.replace_status(&named.key.name, &PostParams::default(), &there).await.expect("the status is accepted");
        }
        plain(api.get(&named.key.name).await.expect("it was written just now"))
    }

    /// Removes what an earlier world left on a shared server, by force.
    pub(crate) async fn clear(&self) {
        let unheld = json!({ "metadata": { "finalizers": null } });
        for kind in self.job.kinds() {
            for object in self.list(kind).await {
                let named = self.named_by(&object);
                let api = self.api(&named);
                // An object that is gone meanwhile is what is wanted.
                let _ = api.delete(&named.key.name, &DeleteParams::default()).await;
                let _ = api.patch(&named.key.name, &PatchParams::default(), &Patch::Merge(&unheld)).await;
            }
            while !self.list(kind).await.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
        self.clear_deployments().await;
        let spaces = || self.job.namespaces.iter().copied().chain(["default"]);
        for (kind, namespace) in
            ["Event", "ConfigMap", "Secret"].iter().flat_map(|kind| spaces().map(|space| (*kind, space)))
        {
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &self.resource(kind));
            let cleared = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
            cleared.expect("the cluster lets go");
            // Credentials are held until what they published is gone, and nobody is there any more to see that.
            for kept in api.list(&ListParams::default()).await.expect("the cluster answers") {
                let name = kept.metadata.name.unwrap_or_default();
                let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(&unheld)).await;
            }
        }
    }

    /// Removes Deployments and, by the cluster's own controllers, what belongs to them.
    async fn clear_deployments(&self) {
        for kind in ["Deployment", "ReplicaSet", "Pod"] {
            for object in self.list(kind).await {
                let named = self.named_by(&object);
                let _ = self.api(&named).delete(&named.key.name, &DeleteParams::background()).await;
            }
            while !self.list(kind).await.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }

    /// Applies all documents of a YAML text.
    pub async fn apply_yaml(&self, text: &str) {
        for document in text.split("\n---").filter(|document| !document.trim().is_empty()) {
            let object: Value = serde_saphyr::from_str(document).expect("the text is YAML");
            self.apply(&object).await;
        }
    }

    /// Creates objects, many at once.
    pub async fn create_all(&self, objects: &[Value]) {
        for chunk in objects.chunks(50) {
            let created = futures::future::join_all(chunk.iter().map(|object| self.try_create(object))).await;
            for result in created {
                result.expect("the manifest is accepted");
            }
        }
    }

    /// Merges a patch into an object.
    pub async fn patch(&self, id: &str, patch: &Value) -> Value {
        let named = self.named(id);
        let patched = self.api(&named).patch(&named.key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        plain(patched.expect("the patch is accepted"))
    }

    /// Merges a patch into an object's status, as another controller does; an object that went meanwhile needs none.
    pub async fn patch_status(&self, id: &str, patch: &Value) {
        let named = self.named(id);
        let api = self.api(&named);
        match api.patch_status(&named.key.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(refused)) if refused.code == 404 => {}
            patched => drop(patched.expect("the status is accepted")),
        }
    }

    /// Sets one annotation.
    pub async fn annotate(&self, id: &str, annotation: &str, value: &str) {
        self.patch(id, &json!({ "metadata": { "annotations": { annotation: value } } })).await;
    }

    /// Asks for an object's deletion.
    pub async fn delete(&self, id: &str) {
        let named = self.named(id);
        let deleted = self.api(&named).delete(&named.key.name, &DeleteParams::default()).await;
        let gone = matches!(&deleted, Err(kube::Error::Api(status)) if status.code == 404);
        assert!(deleted.is_ok() || gone, "deleting {id}: {:?}", deleted.err());
    }

    /// An object, if it exists.
    pub async fn get(&self, id: &str) -> Option<Value> {
        let named = self.named(id);
        self.api(&named).get_opt(&named.key.name).await.expect("the cluster answers").map(plain)
    }

    /// All objects of a kind, in all namespaces.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        let resource = self.resource(kind);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let listed = api.list(&ListParams::default()).await.expect("the cluster answers");
        let named = |mut object: Value| {
            // Servers leave the kind out of listed objects.
            object["kind"] = json!(kind);
            object["apiVersion"] = json!(resource.api_version);
            object
        };
        listed.items.into_iter().map(plain).map(named).collect()
    }

    /// The conditions of an object: `Ready=True/Synced Stalled=False/Progressing`, without those that are false and no news.
    pub async fn conditions(&self, id: &str) -> String {
        match self.get(id).await {
            Some(object) => shown_conditions(&object),
            None => "gone".to_owned(),
        }
    }

    /// The `Ready` condition alone: `True/Synced`.
    pub async fn ready(&self, id: &str) -> String {
        self.get(id).await.map_or("gone".to_owned(), |object| ready_of(&object))
    }

    /// The message of the `Ready` condition.
    pub async fn message(&self, id: &str) -> String {
        let object = self.get(id).await.unwrap_or_default();
        condition(&object, "Ready").and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
    }

    /// Reasons of the events about an object, oldest first.
    pub async fn events(&self, id: &str) -> Vec<String> {
        let reason = |event: &Value| event["reason"].as_str().unwrap_or_default().to_owned();
        self.events_about(id).await.iter().map(reason).collect()
    }

    /// Events about an object as texts, oldest first: `DNSSkipped: no zone …`.
    pub async fn told(&self, id: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = self.events_about(id).await;
        events.iter().map(|event| format!("{}: {}", text(&event["reason"]), text(&event["note"]))).collect()
    }

    async fn events_about(&self, id: &str) -> Vec<Value> {
        let named = self.named(id);
        let mut events = self.list("Event").await;
        events.retain(|event| {
            event["regarding"]["kind"] == named.resource.kind.as_str()
                && event["regarding"]["name"] == named.key.name.as_str()
                && event["regarding"]["namespace"].as_str() == named.key.namespace.as_deref()
        });
        events.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
        events
    }

    fn api(&self, named: &Named) -> Api<DynamicObject> {
        match &named.key.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &named.resource),
            None => Api::all_with(self.client.clone(), &named.resource),
        }
    }

    fn named(&self, id: &str) -> Named {
        let parts: Vec<&str> = id.split('/').collect();
        let (kind, key) = match parts.as_slice() {
            [kind, namespace, name] => (kind, ObjectKey { namespace: Some((*namespace).into()), name: (*name).into() }),
            [kind, name] => (kind, ObjectKey { namespace: None, name: (*name).into() }),
            _ => (&"", ObjectKey { namespace: None, name: String::new() }),
        };
        assert!(!kind.is_empty(), "write Kind/namespace/name or Kind/name, not {id}");
        Named { resource: self.resource(kind), key }
    }

    fn named_by(&self, object: &Value) -> Named {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let api_version = text("/apiVersion").expect("manifests have an apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = text("/kind").expect("manifests have a kind");
        let kind = GroupVersionKind::gvk(group, version, &kind);
        let defined = self.job.resource(&kind.kind).filter(|one| one.group == kind.group);
        Named {
            resource: match defined {
                Some(defined) => ApiResource::from_gvk_with_plural(&kind, &defined.plural),
                None => ApiResource::from_gvk(&kind),
            },
            key: ObjectKey { namespace: text("/metadata/namespace"), name: text("/metadata/name").unwrap_or_default() },
        }
    }

    fn resource(&self, kind: &str) -> ApiResource {
        let resource = known(kind).map(|known| ApiResource::from_gvk(&known));
        let resource = resource.or_else(|| self.job.resource(kind).cloned());
        assert!(resource.is_some(), "no cluster of this job has {kind}");
        resource.expect("it was looked at just now")
    }
}

fn plain(object: DynamicObject) -> Value {
    serde_json::to_value(object).expect("objects are plain JSON")
}

/// One condition of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|one| one["type"] == kind)
}

/// The `Ready` condition of an object: `True/Synced`, or `none`.
pub fn ready_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    condition(object, "Ready")
        .map_or("none".to_owned(), |one| format!("{}/{}", text(&one["status"]), text(&one["reason"])))
}

/// `Ready`, and whatever else is true.
fn shown_conditions(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let told = all.iter().filter(|one| one["type"] == "Ready" || one["status"] == "True");
    let mut shown: Vec<String> =
        told.map(|one| format!("{}={}/{}", text(&one["type"]), text(&one["status"]), text(&one["reason"]))).collect();
    shown.sort();
    shown.join(" ")
}

/// An object without what differs between two runs that ended alike: ids, versions, times.
pub fn essence(object: &Value) -> Value {
    let conditions = shown_conditions(object);
    let mut status = object["status"].clone();
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|name, _| {
            let name = name.to_lowercase();
            name != "conditions" && !name.ends_with("id") && !name.ends_with("ids") && !name.ends_with("time")
        });
    }
    let meta = &object["metadata"];
    json!({
        "name": meta["name"], "namespace": meta["namespace"], "finalizers": meta["finalizers"],
        "deleting": !meta["deletionTimestamp"].is_null(),
        "spec": object["spec"], "status": status, "conditions": conditions,
    })
}
