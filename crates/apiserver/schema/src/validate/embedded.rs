//! Embedded resources: they name their version and kind, and their metadata has the usual forms.

use serde_json::{Map, Value};

use crate::field::{FieldError, Path};
use crate::names;
use crate::node::Cursor;
use crate::object_meta;

/// What is wrong with the type and metadata of embedded resources, anywhere below an object.
pub(super) fn validate(value: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    place(value, schema, &Path::root(), &mut errors);
    errors
}

fn place(value: &Value, schema: Cursor<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if schema.node().embedded_resource {
                resource(fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(child) = schema.property(name) {
                    place(value, child, &path.field(name), errors);
                } else if let Some(child) = schema.values() {
                    place(value, child, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                place(item, schema, &path.index(index), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn resource(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        match fields.get(name) {
            None => errors.push(FieldError::required(&path.field(name), "")),
            Some(value) => type_field(name, value, &path.field(name), errors),
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        let path = path.field("metadata");
        match object_meta::type_error(metadata) {
            Some(reason) => errors.push(FieldError::invalid(&path, metadata, reason)),
            None => meta(metadata, &path, errors),
        }
    }
}

fn type_field(name: &str, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let reason = match value.as_str() {
        None => Some("must be a string".to_owned()),
        Some("") => Some("must not be empty".to_owned()),
        Some(text) if name == "apiVersion" => {
            (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
        }
        Some(text) => {
            let wrong = names::dns1035_label(&text.to_lowercase());
            (!wrong.is_empty()).then(|| format!("may have mixed case, but should otherwise match: {}", wrong.join(",")))
        }
    };
    errors.extend(reason.map(|reason| FieldError::invalid(path, value, reason)));
}

fn meta(metadata: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut check = |name: &str, form: fn(&str) -> Vec<String>| {
        if let Some(text) = metadata.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()) {
            let path = path.field(name);
            errors.extend(form(text).into_iter().map(|why| FieldError::invalid(&path, &Value::from(text), why)));
        }
    };
    check("generateName", |text| names::path_segment(&format!("{text}x")));
    check("name", names::path_segment);
    check("namespace", names::dns1123_label);
    for (key, value) in pairs(metadata, "labels") {
        let path = path.field("labels");
        errors.extend(
            names::qualified_name(key).into_iter().map(|why| FieldError::invalid(&path, &Value::from(key), why)),
        );
        errors.extend(
            names::label_value(value).into_iter().map(|why| FieldError::invalid(&path, &Value::from(value), why)),
        );
    }
    for (key, _) in pairs(metadata, "annotations") {
        let wrong = names::qualified_name(&key.to_lowercase());
        let path = path.field("annotations");
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&path, &Value::from(key), why)));
    }
}

fn pairs<'v>(metadata: &'v Value, name: &str) -> impl Iterator<Item = (&'v str, &'v str)> {
    let map = metadata.get(name).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("")))
}
