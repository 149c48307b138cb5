//! `POST` of `/binding`: a pod gets its node, once.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::Call;
use super::update::check_uid;
use crate::answer::Answer;
use crate::decode;
use crate::encode;
use crate::object;
use crate::status::{About, ApiError, succeeded};
use crate::store::{Expect, StoreWrite, Write, WriteError};

/// How often a change is computed anew because someone else wrote meanwhile.
const MOST_ATTEMPTS: usize = 100;

/// Labels of a node that its pods get, too.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

impl Call {
    pub(super) async fn bind(&self) -> Result<Answer, ApiError> {
        let options = self.write_options("CreateOptions", false)?;
        let binding = self.posted("Binding", &["v1"])?;
        check_target(&binding)?;
        let labels = self.binding_labels(&binding);
        let edit = |pod: &mut Value| {
            self.check_same(&binding, pod)?;
            let why = self.assign(pod, &binding, &labels);
            let about = About { group: "", plural: "pods/binding", name: &self.target.name };
            why.map_or(Ok(()), |why| Err(ApiError::conflict(about, &why)))
        };
        self.rewrite(options.dry_run, edit).await?;
        Ok(Answer::value(StatusCode::CREATED, &succeeded(StatusCode::CREATED), self.accepted))
    }

    /// The object of another kind that was posted to a subresource.
    pub(super) fn posted(&self, kind: &str, versions: &[&str]) -> Result<Value, ApiError> {
        let format = decode::body_format(&self.content_type)?;
        let decoded = decode::decode(&self.body, format)
            .map_err(|error| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}")))?;
        let value = decoded.value;
        let (given, version) =
            (value["kind"].as_str().unwrap_or(kind), value["apiVersion"].as_str().unwrap_or(versions[0]));
        if given != kind || !versions.contains(&version) {
            let short = version.rsplit('/').next().unwrap_or_default();
            return Err(ApiError::bad_request(format!(
                "{given} in version {short:?} cannot be handled as a {kind}: {}",
                super::input::unregistered(given, version)
            )));
        }
        let namespace = object::namespace(&value);
        if !namespace.is_empty() && namespace != self.target.namespace {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(why));
        }
        if object::name(&value) != self.target.name {
            return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
        }
        Ok(value)
    }

    /// The binding's labels, and where the node is.
    fn binding_labels(&self, binding: &Value) -> Map<String, Value> {
        let mut labels = binding["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        if binding["target"]["kind"] == "Node" {
            labels.extend(self.topology(binding["target"]["name"].as_str().unwrap_or_default()));
        }
        labels
    }

    /// The labels that say where a node is.
    fn topology(&self, node: &str) -> Map<String, Value> {
        let node = self.api.find_core("nodes", "", node);
        let label = |key: &str| Some((key.to_owned(), node.as_ref()?["metadata"]["labels"].get(key)?.clone()));
        TOPOLOGY.into_iter().filter_map(label).collect()
    }

    /// A pod that is born with a node says where that is.
    pub(super) fn place_by_node(&self, pod: &mut Value) {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let labels = if node.is_empty() { Map::new() } else { self.topology(node) };
        if labels.is_empty() {
            return;
        }
        let mut all = pod["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        all.extend(labels);
        object::set_meta(pod, "labels", Some(Value::Object(all)));
    }

    /// A binding may say which pod it means.
    fn check_same(&self, binding: &Value, pod: &Value) -> Result<(), ApiError> {
        check_uid(&self.resource, binding, pod)?;
        let (given, actual) =
            (object::meta_text(binding, "resourceVersion"), object::meta_text(pod, "resourceVersion"));
        if given.is_empty() || given == actual {
            return Ok(());
        }
        let key = format!("/registry/pods/{}/{}", self.target.namespace, self.target.name);
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             ResourceVersion in precondition: {given}, ResourceVersion in object meta: {actual}"
        );
        Err(ApiError::conflict(self.resource.about(&self.target.name), &why))
    }

    /// Gives a pod its node; answers why it cannot be given one.
    fn assign(&self, pod: &mut Value, binding: &Value, labels: &Map<String, Value>) -> Option<String> {
        let name = object::name(pod);
        if object::is_deleting(pod) {
            return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
            return Some(format!("pod {name} is already assigned to node {node:?}"));
        }
        if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            return Some(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        pod["spec"]["nodeName"] = binding["target"]["name"].clone();
        if let Some(status) = pod["status"].as_object_mut() {
            status.remove("nominatedNodeName");
        }
        let annotations = binding["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        for (field, added) in [("annotations", &annotations), ("labels", labels)] {
            let mut all = pod["metadata"][field].as_object().cloned().unwrap_or_default();
            all.extend(added.clone());
            if !all.is_empty() {
                object::set_meta(pod, field, Some(Value::Object(all)));
            }
        }
        set_condition(pod, &json!({"type": "PodScheduled", "status": "True"}), &self.api.now());
        None
    }

    /// Changes the named object as storage does: without defaults, checks or new owners.
    pub(super) async fn rewrite(
        &self,
        dry_run: bool,
        edit: impl Fn(&mut Value) -> Result<(), ApiError>,
    ) -> Result<Value, ApiError> {
        let key = self.resource.key(&self.target.namespace, &self.target.name);
        let about = || self.resource.about(&self.target.name);
        let mut current = self.api.store.get(&key).ok_or_else(|| ApiError::not_found(about()))?;
        for _ in 0..MOST_ATTEMPTS {
            let live = self.api.object(&self.resource, &current);
            let mut new = live.clone();
            edit(&mut new)?;
            if dry_run || new == live {
                return Ok(new);
            }
            let (key, expect) = (current.key.clone(), Expect::Version(current.version));
            let change = StoreWrite::Put(encode::body_of(self.resource.store_form(new)));
            match self.api.store.write(Write { key, expect, change }).await {
                Ok(stored) => return Ok(self.api.object(&self.resource, &stored)),
                Err(WriteError::Unexpected(Some(now))) => current = now,
                Err(WriteError::Unexpected(None)) => return Err(ApiError::not_found(about())),
                Err(error) => return Err(ApiError::internal(error)),
            }
        }
        Err(ApiError::modified(about()))
    }
}

/// A binding is to a node.
fn check_target(binding: &Value) -> Result<(), ApiError> {
    let target = &binding["target"];
    let kind = target["kind"].as_str().unwrap_or_default();
    let mut wrong = Vec::new();
    if !matches!(kind, "" | "Node") {
        wrong.push(format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""));
    }
    if target["name"].as_str().is_none_or(str::is_empty) {
        wrong.push("target.name: Required value".to_owned());
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [only] => Err(ApiError::unexpected(only)),
        several => Err(ApiError::unexpected(format!("[{}]", several.join(", ")))),
    }
}

/// Sets a condition of a pod; its time changes with its status only.
pub(super) fn set_condition(pod: &mut Value, wanted: &Value, now: &str) {
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut made = json!({"lastProbeTime": null, "lastTransitionTime": now});
    for (field, value) in wanted.as_object().into_iter().flatten() {
        made[field] = value.clone();
    }
    match conditions.iter_mut().find(|condition| condition["type"] == wanted["type"]) {
        Some(there) => {
            if there["status"] == wanted["status"] {
                made["lastTransitionTime"] = there["lastTransitionTime"].clone();
            }
            *there = made;
        }
        None => conditions.push(made),
    }
    pod["status"]["conditions"] = json!(conditions);
}
