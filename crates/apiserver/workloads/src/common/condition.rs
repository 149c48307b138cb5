//! Conditions of a status: found, set and removed as Kubernetes' own controllers do it.

use serde_json::{Value, json};

use super::object::list;

/// The condition of a type.
pub(crate) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    list(status, "/conditions").iter().find(|condition| condition["type"] == kind)
}

/// Sets a condition, at the end of the list. One with the same status and reason stays as it is, times included; one
/// with the same status keeps its `lastTransitionTime`.
pub(crate) fn set(status: &mut Value, mut condition: Value) {
    let kind = condition["type"].as_str().unwrap_or_default().to_owned();
    if let Some(current) = find(status, &kind)
        && current["status"] == condition["status"]
    {
        if current["reason"] == condition["reason"] {
            return;
        }
        condition["lastTransitionTime"] = current["lastTransitionTime"].clone();
    }
    replace(status, &kind, Some(condition));
}

/// Takes a condition away.
pub(crate) fn remove(status: &mut Value, kind: &str) {
    replace(status, kind, None);
}

/// Takes a condition away and puts another at the end; an empty list is none.
pub(crate) fn replace(status: &mut Value, kind: &str, condition: Option<Value>) {
    let mut conditions = list(status, "/conditions").to_vec();
    conditions.retain(|other| other["type"] != kind);
    conditions.extend(condition);
    if !status.is_object() {
        *status = json!({});
    }
    if let Some(fields) = status.as_object_mut() {
        if conditions.is_empty() {
            fields.remove("conditions");
        } else {
            fields.insert("conditions".to_owned(), Value::Array(conditions));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_status_and_reason_keeps_the_old_condition() {
        let mut status = json!({"conditions": [{"type": "A", "status": "True", "reason": "R", "message": "old"}]});
        let before = status.clone();

        set(&mut status, json!({"type": "A", "status": "True", "reason": "R", "message": "new"}));

        assert_eq!(status, before);
    }

    #[test]
    fn the_time_of_transition_moves_with_the_status_only() {
        let mut status = json!({"conditions": [
            {"type": "A", "status": "True", "reason": "R", "lastTransitionTime": "1"}, {"type": "B"}]});

        set(&mut status, json!({"type": "A", "status": "True", "reason": "S", "lastTransitionTime": "2"}));

        assert_eq!(status["conditions"][1]["lastTransitionTime"], "1");
        assert_eq!(status["conditions"][0]["type"], "B");
    }

    #[test]
    fn the_last_condition_takes_the_list_with_it() {
        let mut status = json!({"conditions": [{"type": "A"}]});

        remove(&mut status, "A");

        assert_eq!(status, json!({}));
    }
}
