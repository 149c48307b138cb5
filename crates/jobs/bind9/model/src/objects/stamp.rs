//! An object as it is to be, and as it is → whether anything has to be written.

use serde_json::Value;

use crate::names;

/// The object with a digest of itself among its annotations: what it says no longer is noticed by that, since nothing else tells it from what
/// others added.
pub fn stamped(mut object: Value) -> Value {
    let digest = names::digest(&[&object.to_string()]);
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = serde_json::json!({});
    }
    annotations[names::APPLIED_DIGEST] = Value::String(digest);
    object
}

/// Whether an object that is there has everything that it is to have. What a server or others added does not matter.
pub fn stands(wanted: &Value, there: &Value) -> bool {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => wanted
            .iter()
            .all(|(name, value)| value.is_null() || there.get(name).is_some_and(|there| stands(value, there))),
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len() && wanted.iter().zip(there).all(|(wanted, there)| stands(wanted, there))
        }
        // An empty folder is written as one, and read as nothing.
        (wanted, there) => wanted == there,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_added_is_no_reason_to_write_and_what_they_changed_is() {
        let wanted =
            stamped(json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 53}], "type": "ClusterIP"}}));
        let mut there = wanted.clone();
        there["spec"]["clusterIP"] = json!("10.0.0.1");
        there["spec"]["ports"][0]["protocol"] = json!("TCP");
        there["metadata"]["labels"] = json!({"by": "others"});
        assert!(stands(&wanted, &there));

        there["spec"]["ports"][0]["port"] = json!(54);
        assert!(!stands(&wanted, &there));
    }

    #[test]
    fn what_is_to_be_there_no_longer_is_a_reason_to_write() {
        let before = stamped(json!({"metadata": {"name": "a", "labels": {"x": "y", "old": "label"}}}));
        let after = stamped(json!({"metadata": {"name": "a", "labels": {"x": "y"}}}));

        assert!(!stands(&after, &before) && stands(&before, &before));
        assert_eq!(stamped(json!({"metadata": {}})), stamped(json!({"metadata": {}})));
    }
}
