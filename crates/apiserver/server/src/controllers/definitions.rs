//! CRDs: accepting their names, serving their resources, and clearing up after them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{call, edit};
use crate::api::Api;
use crate::call::DeleteOptions;
use crate::object;
use crate::registry::{Resource, custom_resources};
use crate::status::ApiError;
use crate::store::{Event, EventKind, Range};
use crate::strategy::ObjectPart;

/// What keeps a CRD until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

const MANAGER: &str = "kube-apiserver";

/// Follows CRDs and, while one goes, its objects.
pub(crate) async fn run(api: Arc<Api>, mut events: UnboundedReceiver<Arc<Event>>) {
    let Some(definitions) = api.registry().find("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned()
    else {
        return;
    };
    let mut controller = DefinitionController { api, definitions, going: BTreeMap::new() };
    while let Some(event) = events.recv().await {
        controller.see(&event).await;
    }
}

/// Serves every CRD that was established before; called once, before the first request.
pub(crate) fn serve_established(api: &Arc<Api>) {
    let registry = api.registry();
    let Some(definitions) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return;
    };
    for definition in all(api, definitions) {
        if is_true(&definition, "Established") {
            serve(api, &definition);
        }
    }
}

struct DefinitionController {
    api: Arc<Api>,
    definitions: Arc<Resource>,
    /// Collections that are being emptied, with the name of their CRD.
    going: BTreeMap<Arc<str>, String>,
}

impl DefinitionController {
    async fn see(&mut self, event: &Event) {
        let key = &event.object.key;
        let name = if key.collection == self.definitions.collection {
            if event.kind == EventKind::Deleted {
                self.api.serve_custom(key.name(), Vec::new());
                self.going.retain(|_, definition| definition != key.name());
                // Names that it held may now be free for others.
                for other in all(&self.api, &self.definitions) {
                    self.reconcile(object::name(&other)).await;
                }
                return;
            }
            key.name().to_owned()
        } else {
            match self.going.get(&key.collection) {
                Some(definition) if event.kind == EventKind::Deleted => definition.clone(),
                _ => return,
            }
        };
        self.reconcile(&name).await;
    }

    async fn reconcile(&mut self, name: &str) {
        let Some(stored) = self.api.store.get(&self.definitions.key("", name)) else {
            return;
        };
        let definition = self.api.object(&self.definitions, &stored);
        let result = if object::is_deleting(&definition) {
            self.clear(&definition).await
        } else {
            self.establish(&definition).await
        };
        if let Err(error) = result {
            tracing::warn!(name, error = %error.message, "Could not reconcile a CustomResourceDefinition");
        }
    }

    /// Accepts names and serves.
    async fn establish(&self, definition: &Value) -> Result<(), ApiError> {
        let name = object::name(definition);
        let others = all(&self.api, &self.definitions);
        let (accepted, conflict) = accept_names(definition, &others);
        let established = conflict.is_none() || is_true(definition, "Established");
        let now = self.api.now();
        let mut next = definition.clone();
        next["status"]["acceptedNames"] = accepted;
        let names_condition = match &conflict {
            None => ("True", "NoConflicts", "no conflicts found"),
            Some((reason, message)) => ("False", *reason, message.as_str()),
        };
        let established_condition = if established {
            ("True", "InitialNamesAccepted", "the initial names have been accepted")
        } else {
            ("False", "NotAccepted", "not all names are accepted")
        };
        set_condition(&mut next, "NamesAccepted", names_condition, &now);
        set_condition(&mut next, "Established", established_condition, &now);
        if established {
            serve(&self.api, &next);
        }
        let status = next["status"].clone();
        let call = call(&self.api, &self.definitions, "", name);
        edit(&call, ObjectPart::Status, MANAGER, |live| {
            let differs = live["status"] != status;
            live["status"] = status.clone();
            differs
        })
        .await?;
        Ok(())
    }

    /// Deletes a CRD's objects, and lets it go when none is left.
    async fn clear(&mut self, definition: &Value) -> Result<(), ApiError> {
        if !object::finalizers(definition).any(|f| f == CLEANUP_FINALIZER) {
            return Ok(());
        }
        let name = object::name(definition);
        let now = self.api.now();
        let definition_call = call(&self.api, &self.definitions, "", name);
        let set_terminating = |live: &mut Value| {
            let before = live.clone();
            let words = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
            set_condition(live, "Terminating", words, &now);
            *live != before
        };
        edit(&definition_call, ObjectPart::Status, MANAGER, set_terminating).await?;
        let Some(resource) = custom_resources(definition).ok().and_then(|r| r.into_iter().next()) else {
            return Ok(());
        };
        self.going.insert(resource.collection.clone(), name.to_owned());
        let range = Range { collection: &resource.collection, prefix: "", after: "", at: None };
        let objects = self.api.store.list(&range).map(|l| l.objects).unwrap_or_default();
        for stored in &objects {
            let call = call(&self.api, &resource, stored.key.namespace(), stored.key.name());
            match call.delete_object(stored.key.name(), &DeleteOptions::default()).await {
                Err(error) if error.reason != "NotFound" => return Err(error),
                _ => {}
            }
        }
        if self.api.store.count(&resource.collection) > 0 {
            return Ok(());
        }
        let finish = |live: &mut Value| {
            let words = ("False", "InstanceDeletionCompleted", "removed all instances");
            set_condition(live, "Terminating", words, &now);
            let rest = object::finalizers(live).filter(|f| *f != CLEANUP_FINALIZER).map(str::to_owned).collect();
            object::set_finalizers(live, rest);
            true
        };
        edit(&definition_call, ObjectPart::Main, MANAGER, finish).await?;
        Ok(())
    }
}

/// What a CRD says from the request to delete it on.
pub(crate) fn mark_pending(definition: &mut Value, now: &str) {
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(definition, "Terminating", ("True", "InstanceDeletionPending", message), now);
}

fn serve(api: &Api, definition: &Value) {
    match custom_resources(definition) {
        Ok(resources) => api.serve_custom(object::name(definition), resources),
        Err(error) => tracing::error!(name = object::name(definition), %error, "A stored CRD cannot be read"),
    }
}

fn all(api: &Api, definitions: &Resource) -> Vec<Value> {
    let range = Range { collection: &definitions.collection, prefix: "", after: "", at: None };
    let listing = api.store.list(&range).map(|l| l.objects).unwrap_or_default();
    listing.iter().map(|stored| api.object(definitions, stored)).collect()
}

/// The names that a CRD gets, and why it does not get the others.
fn accept_names(definition: &Value, others: &[Value]) -> (Value, Option<(&'static str, String)>) {
    let names = &definition["spec"]["names"];
    let mut accepted = definition["status"]["acceptedNames"].clone();
    if !accepted.is_object() {
        accepted = json!({"plural": "", "kind": ""});
    }
    let taken = TakenNames::of(definition, others);
    let mut conflict: Option<(&'static str, String)> = None;
    let mut note = |reason: &'static str, name: &str| {
        // The last one found is told.
        conflict = Some((reason, format!("{name:?} is already in use")));
    };
    for (field, reason) in [("plural", "PluralConflict"), ("singular", "SingularConflict")] {
        match names[field].as_str() {
            Some(name) if taken.resources.contains(&name.to_owned()) => note(reason, name),
            Some(name) => accepted[field] = json!(name),
            None => {}
        }
    }
    let short: Vec<&str> = names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match short.iter().find(|name| taken.resources.iter().any(|t| t == *name)) {
        Some(name) => note("ShortNamesConflict", name),
        None => set_or_remove(&mut accepted, "shortNames", names.get("shortNames")),
    }
    for (field, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        match names[field].as_str() {
            Some(name) if taken.kinds.contains(&name.to_owned()) => note(reason, name),
            Some(name) => accepted[field] = json!(name),
            None => {}
        }
    }
    set_or_remove(&mut accepted, "categories", names.get("categories"));
    (accepted, conflict)
}

fn set_or_remove(object: &mut Value, field: &str, value: Option<&Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// The names that other CRDs of the group hold.
struct TakenNames {
    resources: Vec<String>,
    kinds: Vec<String>,
}

impl TakenNames {
    fn of(definition: &Value, others: &[Value]) -> Self {
        let mut taken = Self { resources: Vec::new(), kinds: Vec::new() };
        let same_group = |other: &&Value| {
            other["spec"]["group"] == definition["spec"]["group"] && object::name(other) != object::name(definition)
        };
        for other in others.iter().filter(same_group) {
            let names = &other["status"]["acceptedNames"];
            let texts = |field: &str| names[field].as_str().filter(|n| !n.is_empty()).map(str::to_owned);
            taken.resources.extend(texts("plural"));
            taken.resources.extend(texts("singular"));
            let short = names["shortNames"].as_array().into_iter().flatten();
            taken.resources.extend(short.filter_map(Value::as_str).map(str::to_owned));
            taken.kinds.extend(texts("kind"));
            taken.kinds.extend(texts("listKind"));
        }
        taken
    }
}

fn is_true(definition: &Value, condition: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == condition && c["status"] == "True")
}

/// Sets a condition; its time moves only when its status does.
fn set_condition(definition: &mut Value, kind: &str, (status, reason, message): (&str, &str, &str), now: &str) {
    if !definition["status"].is_object() {
        definition["status"] = json!({});
    }
    if !definition["status"]["conditions"].is_array() {
        definition["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else {
        return;
    };
    let mut next =
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(old) => {
            if old["status"] == next["status"] {
                next["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            if let Some(observed) = old.get("observedGeneration") {
                next["observedGeneration"] = observed.clone();
            }
            *old = next;
        }
        None => conditions.push(next),
    }
}
