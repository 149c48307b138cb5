//! A write that changes nothing but times is no write.

use serde_json::Value;

/// Puts the live entries' times back where nothing but times differs between two objects.
pub fn keep_times(live: &Value, new: &mut Value) {
    let entries = |object: &Value| object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned();
    let (Some(old), Some(current)) = (entries(live), entries(new)) else {
        return;
    };
    let same_owners = old.len() == current.len()
        && old.iter().zip(&current).all(|(old, current)| without_time(old) == without_time(current));
    if !same_owners || old == current {
        return;
    }
    let Some(list) = new.pointer_mut("/metadata/managedFields") else {
        return;
    };
    *list = Value::Array(old);
    if new != live
        && let Some(list) = new.pointer_mut("/metadata/managedFields")
    {
        *list = Value::Array(current);
    }
}

fn without_time(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(fields) = entry.as_object_mut() {
        fields.remove("time");
    }
    entry
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &str, time: &str) -> Value {
        json!({"metadata": {"managedFields": [{"manager": "a", "time": time}]}, "data": {"a": value}})
    }

    #[test]
    fn times_alone_are_no_change() {
        let live = object("1", "2026-01-01T00:00:00Z");
        let mut new = object("1", "2026-01-02T00:00:00Z");

        keep_times(&live, &mut new);

        assert_eq!(new, live);
    }

    #[test]
    fn times_move_with_any_other_change() {
        let mut new = object("2", "2026-01-02T00:00:00Z");

        keep_times(&object("1", "2026-01-01T00:00:00Z"), &mut new);

        assert_eq!(new, object("2", "2026-01-02T00:00:00Z"));
    }
}
