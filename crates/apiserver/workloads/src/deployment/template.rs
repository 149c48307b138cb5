//! Templates of pods: whether two mean the same, and the short hash that tells them apart in names and labels.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::common::letters::safe_letters;

/// The label that holds the hash.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// Fields whose empty map means the same as none.
const MAPS: [&str; 8] =
    ["labels", "annotations", "nodeSelector", "limits", "requests", "matchLabels", "metadata", "overhead"];

/// Whether two templates make the same pods, hash aside.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    one == other || normal(one) == normal(other)
}

/// A hash of a template as it stands in names: eight to ten letters and digits. Another one for each collision.
pub(super) fn hash(template: &Value, collisions: Option<i64>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(normal(template).to_string());
    if let Some(collisions) = collisions {
        hasher.update(collisions.to_le_bytes());
    }
    let digest = hasher.finalize();
    let number = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    safe_letters(&number.to_string())
}

/// The template with the hash as a label.
pub(super) fn with_hash(template: &Value, hash: &str) -> Value {
    let mut labeled = template.clone();
    labeled["metadata"]["labels"][HASH_LABEL] = json!(hash);
    labeled
}

/// Without the hash, nulls, and what is empty; fields in the order of their names.
fn normal(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    normalized(&template)
}

fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            let kept = names.into_iter().map(|name| (name.clone(), normalized(&fields[name])));
            Value::Object(kept.filter(|(name, value)| !is_nothing(name, value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(normalized).collect()),
        other => other.clone(),
    }
}

fn is_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && MAPS.contains(&name),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_label_and_empty_fields_make_no_difference() {
        let one = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}});
        let mut other = with_hash(&one, "x");
        other["metadata"]["annotations"] = json!({});
        other["spec"]["containers"][0]["env"] = json!([]);

        assert!(same(&one, &other));
        assert_eq!(hash(&one, None), hash(&other, None));
    }

    #[test]
    fn an_empty_volume_is_not_no_volume() {
        let (one, other) = (json!({"volumes": [{"emptyDir": {}}]}), json!({"volumes": [{}]}));

        assert!(!same(&one, &other));
    }

    #[test]
    fn a_collision_gives_another_hash() {
        let template = json!({"metadata": {}, "spec": {}});

        assert_ne!(hash(&template, None), hash(&template, Some(1)));
    }
}
