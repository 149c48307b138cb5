//! [`FieldSet`] ↔ the JSON of `fieldsV1`: `{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`.

use serde_json::{Map, Value};

use crate::ssa::path::{PathElement, PathError};
use crate::ssa::set::{FieldSet, SetNode};

/// JSON that is no set of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A key is malformed.
    #[error("parsing key as path element: {0}")]
    Key(#[from] PathError),
    /// Something else than an object or null stands where fields belong.
    #[error("expected an object of fields")]
    NotFields,
}

/// Reads `fieldsV1`. Kinds of path elements that are not known are left out.
pub fn decode(fields: &Value) -> Result<FieldSet, FieldsError> {
    match fields {
        Value::Null => Ok(FieldSet::default()),
        Value::Object(fields) => children(fields),
        _ => Err(FieldsError::NotFields),
    }
}

fn children(fields: &Map<String, Value>) -> Result<FieldSet, FieldsError> {
    let mut nodes = Vec::with_capacity(fields.len());
    for (key, below) in fields {
        if key == "." {
            continue;
        }
        match PathElement::parse(key) {
            Ok(element) => nodes.push(read(element, below)?),
            Err(PathError::Unknown) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(FieldSet::from_unsorted(nodes))
}

fn read(element: PathElement, below: &Value) -> Result<SetNode, FieldsError> {
    let (children, named) = match below {
        Value::Null => (FieldSet::default(), false),
        Value::Object(fields) => (children(fields)?, fields.contains_key(".")),
        _ => return Err(FieldsError::NotFields),
    };
    Ok(SetNode { element, member: named || children.is_empty(), children })
}

/// Writes `fieldsV1`.
pub fn encode(set: &FieldSet) -> Value {
    Value::Object(set.nodes().iter().map(|node| (node.element.encode(), below(node))).collect())
}

fn below(node: &SetNode) -> Value {
    let mut fields = encode(&node.children);
    if let Some(fields) = fields.as_object_mut().filter(|_| node.member && !node.children.is_empty()) {
        fields.insert(".".to_owned(), Value::Object(Map::new()));
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_reads_back_as_it_was_written() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:name": {}}}, "f:x": {"v:\"a\"": {}}},
        });

        assert_eq!(encode(&decode(&fields).unwrap()), fields);
    }

    #[test]
    fn the_dot_alone_says_the_same_as_nothing() {
        assert_eq!(decode(&json!({"f:a": {".": {}}})).unwrap(), decode(&json!({"f:a": {}})).unwrap());
        assert_eq!(decode(&json!({"f:a": null})).unwrap(), decode(&json!({"f:a": {}})).unwrap());
        assert_eq!(decode(&json!({".": {}})).unwrap(), FieldSet::default());
    }

    #[test]
    fn unknown_kinds_of_elements_are_left_out() {
        assert_eq!(decode(&json!({"z:a": {"broken": 1}, "f:b": {}})).unwrap(), FieldSet::of_fields(&[&["b"]]));
    }

    #[test]
    fn keys_and_values_of_the_wrong_form_are_refused() {
        for fields in [json!({"a": {}}), json!({"f:a": 1}), json!([]), json!("x"), json!({"f:a": {"k:1": {}}})] {
            assert!(decode(&fields).is_err(), "{fields}");
        }
    }

    #[test]
    fn keys_that_mean_the_same_element_become_one() {
        let set = decode(&json!({"k:{\"p\":80}": {"f:a": {}}, "k:{\"p\":80.0}": {"f:b": {}}})).unwrap();

        assert_eq!(encode(&set), json!({"k:{\"p\":80}": {"f:a": {}, "f:b": {}}}));
    }
}
