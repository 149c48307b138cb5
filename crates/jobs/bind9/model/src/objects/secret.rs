//! The keys of a server → its Secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::kinds::keys::RndcKeyConfig;
use crate::names;
use crate::objects::{ObjectSet, metadata};

/// The Secret that a server's keys are in. Where the user has one for the key itself, ours is another.
pub fn secret_name(instance: &str, keys: &RndcKeyConfig) -> String {
    let named = keys.secret.as_ref().map(|secret| secret.metadata.name.clone());
    match (&keys.secret_ref, named) {
        (Some(_), _) => names::server_keys_secret(instance),
        (None, Some(name)) => name,
        (None, None) => names::keys_secret(instance),
    }
}

pub(crate) fn secret(set: &ObjectSet<'_>) -> Value {
    let keys = &set.settings.keys;
    let mut metadata = metadata(set, &secret_name(&set.instance.name_any(), keys));
    let asked = keys.secret.as_ref().filter(|_| keys.secret_ref.is_none());
    let mut annotations = Map::new();
    if let Some(asked) = asked {
        annotations
            .extend(asked.metadata.annotations.iter().flatten().map(|(name, value)| (name.clone(), json!(value))));
        for (name, value) in asked.metadata.labels.iter().flatten() {
            metadata["labels"]
                .as_object_mut()
                .expect("labels are an object")
                .entry(name)
                .or_insert_with(|| json!(value));
        }
    }
    annotations.extend(set.keys.annotations.iter().map(|(name, value)| (name.clone(), json!(value))));
    metadata["annotations"] = Value::Object(annotations);
    let entries = set.keys.data.iter().chain(&set.files.secret);
    let data: Map<String, Value> = entries.map(|(name, text)| (name.clone(), json!(STANDARD.encode(text)))).collect();
    let kind = asked.and_then(|asked| asked.secret_type.clone()).unwrap_or_else(|| "Opaque".to_owned());
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": data})
}
