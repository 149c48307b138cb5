//! Small readings of an object's metadata.

use serde_json::{Map, Value};

/// A text field of `metadata`; empty where it is absent.
pub(crate) fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    meta_text(object, "name")
}

/// `metadata.namespace`.
pub(crate) fn namespace(object: &Value) -> &str {
    meta_text(object, "namespace")
}

/// `metadata`, made where it is absent.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let fields = object.as_object_mut().expect("made an object above");
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("made an object above")
}

/// Sets a field of `metadata`, or takes it away.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: Option<Value>) {
    let metadata = meta_mut(object);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// Whether the object waits for its finalizers.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Replaces `metadata.finalizers`.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    let value = (!finalizers.is_empty()).then(|| Value::from(finalizers));
    set_meta(object, "finalizers", value);
}

/// `metadata.generation`.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// A whole number at a dotted path such as `.spec.replicas`.
pub(crate) fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|p| !p.is_empty()).try_fold(object, |value, part| value.get(part))
}

/// Sets a value at a dotted path, making the objects on the way.
pub(crate) fn set_at_path(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.').filter(|p| !p.is_empty()) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = place.as_object_mut().expect("made an object above").entry(part).or_insert(Value::Null);
    }
    *place = value;
}
