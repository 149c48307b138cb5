//! `/openapi/v3`: which operations there are and which query parameters they take, for clients that ask before they
//! send `fieldValidation`. Schemas are not published yet.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::registry::{Registry, Resource, api_version};

/// `/openapi/v2` without any definition: clients that look a kind up there find none, and go on without.
///
/// `kubectl` reads it as protocol buffers; this is a document whose only field says `swagger: "2.0"`.
pub(crate) fn nothing_in_version_2() -> Answer {
    let mut answer = Answer::text(StatusCode::OK, "\n\u{3}2.0");
    answer.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    answer
}

/// The index: one document for each group and version.
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for resource in registry.all() {
        let path = document_path(&resource.group, &resource.version);
        let url = format!("/openapi/v3/{path}?hash={}", hash(&document(registry, &resource.group, &resource.version)));
        paths.entry(path).or_insert_with(|| json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// The document at `api/v1` or `apis/GROUP/VERSION`.
pub(crate) fn find(registry: &Registry, path: &str) -> Option<Value> {
    let (group, version) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => (String::new(), (*version).to_owned()),
        ["apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
        _ => return None,
    };
    registry.serves(&group, &version).then(|| document(registry, &group, &version))
}

/// A text that changes with the document.
pub(crate) fn hash(document: &Value) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    document.to_string().hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}

fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn document(registry: &Registry, group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    for resource in registry.of(group, version) {
        let scope = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
        let collection = format!("/{}/{scope}{}", document_path(group, version), resource.plural);
        paths.insert(format!("{collection}/{{name}}"), operations(resource, &["get", "put", "patch", "delete"]));
        paths.insert(collection, operations(resource, &["get", "post", "delete"]));
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Portolan", "version": api_version(group, version)},
        "paths": paths,
    })
}

fn operations(resource: &Resource, methods: &[&str]) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let text = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let entry = |method: &&str| {
        let mut parameters = Vec::new();
        if matches!(*method, "put" | "patch" | "post") {
            parameters.extend(["dryRun", "fieldManager", "fieldValidation"].map(text));
        }
        let operation = json!({
            "parameters": parameters, "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": method, "x-kubernetes-group-version-kind": kind,
        });
        ((*method).to_owned(), operation)
    };
    Value::Object(methods.iter().map(entry).collect())
}
