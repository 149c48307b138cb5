//! An object → the same without what two servers never agree on: hashes, drawn names, uids, times, versions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

/// Letters of names that are drawn: no vowels.
static HASH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b").expect("a constant"));
static DRAWN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b").expect("a constant"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").expect("a constant"));

/// Fields that say when, or in which version.
const DROPPED: [&str; 13] = [
    "creationTimestamp",
    "resourceVersion",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "startTime",
    "completionTime",
    "deletionTimestamp",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "namespace",
    // The real controllers forget the time of a change that they had to try twice.
    "endpoints.kubernetes.io/last-change-trigger-time",
];
/// Lists whose order means nothing and depends on uids or chance.
const UNORDERED: [&str; 2] = ["endpoints", "subsets"];

/// What a deployment says of its later rollouts while they are under way. Whether it ever says more than that it made
/// the set depends on the moment: progress is more updated replicas than in the status before
/// (`DeploymentProgressing` in `k8s.io/kubernetes/pkg/controller/deployment/util`), and that still counts the
/// replicas of the set before, unless the controller happened to write a status between making the new set and seeing
/// its pods.
const UNDER_WAY: [&str; 3] = ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated"];
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The object as it is compared.
pub(super) fn masked(mut object: Value) -> Value {
    if object["metadata"]["annotations"][REVISION].as_str().is_some_and(|revision| revision != "1") {
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if condition["reason"].as_str().is_some_and(|reason| UNDER_WAY.contains(&reason)) {
                condition["reason"] = json!("<under way>");
                condition["message"] = json!("<under way>");
            }
        }
    }
    let managers = managers(&object["metadata"]["managedFields"]);
    let generation = object["metadata"]["generation"].clone();
    if !generation.is_null() && object["status"]["observedGeneration"] == generation {
        object["status"]["observedGeneration"] = json!("<generation>");
    }
    if object["kind"] == "pods" {
        // How pods are filled in is compared elsewhere.
        object["spec"] = Value::Null;
        object["status"] = json!({"phase": object["status"]["phase"]});
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "generation", "uid"] {
            metadata.remove(field);
        }
    }
    object["managers"] = managers;
    value(&object, "")
}

/// Who wrote by which endpoint.
fn managers(managed: &Value) -> Value {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = managed.as_array().into_iter().flatten();
    let mut managers: Vec<String> =
        entries.map(|e| [text(e, "manager"), text(e, "operation"), text(e, "subresource")].join(" ")).collect();
    managers.sort();
    managers.dedup();
    json!(managers)
}

fn value(object: &Value, key: &str) -> Value {
    match object {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| !DROPPED.contains(&name.as_str()) && !value.is_null());
            let mut kept: Map<String, Value> = kept.map(|(name, field)| (text(name), value(field, name))).collect();
            if kept.get("annotations").is_some_and(|annotations| *annotations == json!({})) {
                kept.remove("annotations");
            }
            Value::Object(kept)
        }
        Value::Array(items) if key == "conditions" => {
            let named =
                items.iter().map(|item| (item["type"].as_str().unwrap_or_default().to_owned(), value(item, "")));
            Value::Object(named.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| value(item, key)).collect();
            if UNORDERED.contains(&key) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::String(_) if key == "pod-template-hash" => json!("<hash>"),
        Value::String(_) if key == "uid" => json!("<uid>"),
        Value::String(found) if found.starts_with("-----BEGIN CERTIFICATE") => json!("<certificate>"),
        Value::String(found) => json!(text(found)),
        other => other.clone(),
    }
}

fn text(text: &str) -> String {
    let text = UID.replace_all(text, "<uid>");
    let text = HASH.replace_all(&text, "-<hash>");
    DRAWN.replace_all(&text, "-<drawn>").into_owned()
}

/// Objects of a collection in an order that drawn names have no part in; like events are added up.
pub(super) fn gathered(collection: &str, mut objects: Vec<Value>) -> Value {
    if collection != "events" {
        objects.sort_by_key(Value::to_string);
        return json!(objects);
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for event in &objects {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let told = format!(
            "{} {} {} {}/{}: {}",
            text("/source/component"),
            text("/type"),
            text("/reason"),
            text("/involvedObject/kind"),
            text("/involvedObject/name"),
            text("/message"),
        );
        *counts.entry(told).or_default() += event["count"].as_u64().unwrap_or(1);
    }
    json!(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_drawn_names_are_masked() {
        assert_eq!(text("Created pod: web-5d4f8c7b9f-x2kqz"), "Created pod: web-<hash>-<drawn>");
        assert_eq!(text("web-controller"), "web-controller");
    }

    fn deployment(revision: &str, reason: &str, status: &str) -> Value {
        let condition = json!({"type": "Progressing", "status": status, "reason": reason, "message": reason});
        json!({"metadata": {"annotations": {REVISION: revision}}, "status": {"conditions": [condition]}})
    }

    #[test]
    fn how_far_a_later_rollout_came_before_it_was_looked_at_is_not_compared() {
        let seen = |reason: &str| masked(deployment("2", reason, "True"));

        assert_eq!(seen("NewReplicaSetCreated"), seen("ReplicaSetUpdated"));
        assert_ne!(seen("NewReplicaSetCreated"), seen("NewReplicaSetAvailable"));
        assert_ne!(seen("ReplicaSetUpdated"), masked(deployment("2", "ReplicaSetUpdated", "False")));
    }

    #[test]
    fn a_first_rollout_is_compared_as_it_is() {
        let seen = |reason: &str| masked(deployment("1", reason, "True"));

        assert_ne!(seen("NewReplicaSetCreated"), seen("ReplicaSetUpdated"));
    }

    #[test]
    fn like_events_are_added_up() {
        let event = json!({"reason": "R", "message": "m", "count": 2});

        let counts = gathered("events", vec![event.clone(), event]);

        assert_eq!(counts.as_object().unwrap().values().next(), Some(&json!(4)));
    }
}
