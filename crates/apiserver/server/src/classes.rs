//! Classes of pods, claims and ingresses: the system's own, and those that new objects get on their way in.

use std::sync::Arc;

use portolan_builtin::class;
use serde_json::{Value, json};

use crate::api::Api;
use crate::controllers;
use crate::object;
use crate::registry::Resource;
use crate::status::ApiError;
use crate::store::Range;

const MANAGER: &str = "kube-apiserver";
const SCHEDULING: &str = "scheduling.k8s.io";

/// Makes the classes of pods that are always there.
pub(crate) async fn bootstrap(api: &Arc<Api>) {
    let registry = api.registry();
    let Some(resource) = registry.find(SCHEDULING, "v1", "priorityclasses") else {
        return;
    };
    for class in class::system_priorities() {
        let name = object::name(&class).to_owned();
        if api.store.get(&resource.key("", &name)).is_some() {
            continue;
        }
        if let Err(error) = controllers::call(api, resource, "", &name).system_create(MANAGER, class).await {
            tracing::warn!(name, error = error.message, "Could not make a priority class");
        }
    }
}

/// Gives a new object its class, or says why it may not be made.
pub(crate) fn admit_create(api: &Api, resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    if resource.is("", "pods") {
        let refused = class::set_priority(object, &all(api, SCHEDULING, "priorityclasses"));
        return refused.map_err(|why| ApiError::forbidden(resource.about(object::name(object)), &why));
    }
    if resource.is("", "persistentvolumeclaims") && class::wants_storage_class(object) {
        set_default(object, "storageClassName", &all(api, "storage.k8s.io", "storageclasses"));
    }
    if resource.is("networking.k8s.io", "ingresses") && class::wants_ingress_class(object) {
        set_default(object, "ingressClassName", &all(api, "networking.k8s.io", "ingressclasses"));
    }
    only_default(api, resource, object, true)
}

/// Says why an object may not become what an update makes of it.
pub(crate) fn admit_update(api: &Api, resource: &Resource, object: &Value) -> Result<(), ApiError> {
    only_default(api, resource, object, false)
}

fn only_default(api: &Api, resource: &Resource, object: &Value, is_new: bool) -> Result<(), ApiError> {
    if !resource.is(SCHEDULING, "priorityclasses") || object["globalDefault"] != json!(true) {
        return Ok(());
    }
    match class::second_default(object, &all(api, SCHEDULING, "priorityclasses"), is_new) {
        Some(why) => Err(ApiError::forbidden(resource.about(object::name(object)), &why)),
        None => Ok(()),
    }
}

fn set_default(object: &mut Value, field: &str, classes: &[Value]) {
    if let Some(name) = class::default_class(classes)
        && object["spec"].is_object()
    {
        object["spec"][field] = json!(name);
    }
}

/// Every class of a kind.
fn all(api: &Api, group: &str, plural: &str) -> Vec<Value> {
    let registry = api.registry();
    let Some(resource) = registry.find(group, "v1", plural) else {
        return Vec::new();
    };
    let range = Range { collection: &resource.collection, prefix: "", after: "", at: None };
    let stored = api.store.list(&range).map(|listed| listed.objects).unwrap_or_default();
    stored.iter().map(|stored| api.object(resource, stored)).collect()
}
