//! The schema of `metadata`, which every object has whatever its kind's own schema says.

use std::sync::LazyLock;

use portolan_schema::{Cursor, Schema};
use serde_json::{Map, Value, json};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::parse_definitions(&definitions()).expect("the definitions below refer to each other only")
});

/// The schema of a field that every resource has: `apiVersion`, `kind`, `metadata`.
pub(super) fn field(name: &str) -> Option<Cursor<'static>> {
    match name {
        "apiVersion" | "kind" => SCHEMA.definition("Text"),
        "metadata" => SCHEMA.definition("ObjectMeta"),
        _ => None,
    }
}

fn definitions() -> Map<String, Value> {
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer", "format": "int64"});
    let time = || json!({"type": "string", "format": "date-time"});
    let texts = || json!({"type": "object", "additionalProperties": text()});
    let owner = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "apiVersion": text(), "kind": text(), "name": text(), "uid": {"type": "string", "default": ""},
        "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
    }});
    let entry = json!({"type": "object", "properties": {
        "apiVersion": text(), "fieldsType": text(), "fieldsV1": {"type": "object"}, "manager": text(),
        "operation": text(), "subresource": text(), "time": time(),
    }});
    let meta = json!({"type": "object", "properties": {
        "annotations": texts(), "creationTimestamp": time(), "deletionGracePeriodSeconds": number(),
        "deletionTimestamp": time(),
        "finalizers": {"type": "array", "items": text(), "x-kubernetes-list-type": "set"},
        "generateName": text(), "generation": number(), "labels": texts(),
        "managedFields": {"type": "array", "items": entry, "x-kubernetes-list-type": "atomic"},
        "name": text(), "namespace": text(),
        "ownerReferences": {
            "type": "array", "items": owner,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
        },
        "resourceVersion": text(), "selfLink": text(), "uid": text(),
    }});
    Map::from_iter([("Text".to_owned(), text()), ("ObjectMeta".to_owned(), meta)])
}
