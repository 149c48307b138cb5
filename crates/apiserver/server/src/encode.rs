//! Stored texts ↔ objects: the text leaves out `kind`, `apiVersion` and `metadata.resourceVersion`.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::store::{Labels, ObjectText, StoredObject};

/// The `kind` and `apiVersion` that an object is shown with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMeta {
    /// Such as `Deployment`.
    pub kind: String,
    /// Such as `apps/v1`.
    pub api_version: String,
}

/// The text to store of an object.
pub fn body_of(mut object: Value) -> ObjectText {
    let mut metadata = Map::new();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
        if let Some(Value::Object(found)) = fields.remove("metadata") {
            metadata = found;
        }
    }
    metadata.remove("resourceVersion");
    let labels = labels_of(&metadata);
    let mut tail = serde_json::to_vec(&metadata).expect("JSON values are written to memory");
    tail.remove(0);
    let rest = serde_json::to_vec(&object).expect("JSON values are written to memory");
    if rest.len() > 2 {
        tail.push(b',');
        tail.extend_from_slice(&rest[1..]);
    } else {
        tail.push(b'}');
    }
    // A copy of its own size: a buffer that grew and was cut off leaves a hole behind every object that stays.
    ObjectText { tail: Bytes::copy_from_slice(&tail), labels }
}

/// Writes an object's whole text.
pub fn write_object(out: &mut Vec<u8>, stored: &StoredObject, type_meta: Option<&TypeMeta>) {
    match type_meta {
        Some(TypeMeta { kind, api_version }) => {
            out.extend_from_slice(b"{\"kind\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"apiVersion\":\"");
            out.extend_from_slice(api_version.as_bytes());
            out.extend_from_slice(b"\",");
        }
        None => out.push(b'{'),
    }
    out.extend_from_slice(b"\"metadata\":{\"resourceVersion\":\"");
    out.extend_from_slice(stored.version.to_string().as_bytes());
    out.extend_from_slice(b"\",");
    out.extend_from_slice(&stored.body.tail);
}

/// The object as a value, with its version and the given type.
pub fn object_of(stored: &StoredObject, type_meta: &TypeMeta) -> Value {
    let mut text = Vec::with_capacity(stored.body.tail.len() + 128);
    write_object(&mut text, stored, Some(type_meta));
    serde_json::from_slice(&text).unwrap_or(Value::Null)
}

fn labels_of(metadata: &Map<String, Value>) -> Labels {
    let labels = metadata.get("labels")?.as_object()?;
    if labels.is_empty() {
        return None;
    }
    Some(labels.iter().filter_map(|(k, v)| Some((k.as_str().into(), v.as_str()?.into()))).collect())
}

/// The labels inside a stored text; an error where it is no object's text.
pub(crate) fn labels_of_tail(tail: &[u8]) -> Result<Labels, serde_json::Error> {
    #[derive(Deserialize)]
    struct MetadataOnly {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        labels: std::collections::BTreeMap<Box<str>, Box<str>>,
    }
    let mut text = Vec::with_capacity(tail.len() + 13);
    text.extend_from_slice(b"{\"metadata\":{");
    text.extend_from_slice(tail);
    let object: MetadataOnly = serde_json::from_slice(&text)?;
    let labels = object.metadata.labels;
    Ok((!labels.is_empty()).then(|| labels.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::store::StoreKey;

    fn stored(object: Value) -> StoredObject {
        StoredObject { key: StoreKey::new(&Arc::from("configmaps"), "default", "a"), version: 7, body: body_of(object) }
    }

    fn config_map() -> TypeMeta {
        TypeMeta { kind: "ConfigMap".to_owned(), api_version: "v1".to_owned() }
    }

    #[test]
    fn a_stored_object_reads_back_with_type_and_version() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1", "data": {"k": "v\u{0}\"}"},
            "metadata": {"name": "a", "namespace": "default", "resourceVersion": "3"},
        });
        let mut expected = object.clone();
        expected["metadata"]["resourceVersion"] = json!("7");

        assert_eq!(object_of(&stored(object), &config_map()), expected);
    }

    #[test]
    fn an_object_of_metadata_alone_reads_back() {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});

        assert_eq!(object_of(&stored(object), &config_map())["metadata"]["name"], "a");
    }

    #[test]
    fn labels_are_found_in_the_stored_text() {
        let stored = stored(json!({"metadata": {"name": "a", "labels": {"b": "2", "a": "1"}}, "spec": {}}));

        let read_again = labels_of_tail(&stored.body.tail).unwrap();

        assert_eq!(read_again, stored.body.labels);
        assert_eq!(read_again.unwrap().len(), 2);
    }
}
