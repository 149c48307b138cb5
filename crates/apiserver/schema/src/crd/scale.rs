//! The values behind a scale subresource must be counts, and its selector a text.

use serde_json::{Value, json};

use super::definition::Scale;
use crate::field::{ErrorKind, FieldError, show};
use crate::go;

impl Scale {
    /// What is wrong with an object's wanted count.
    pub fn validate_spec(&self, object: &Value) -> Vec<FieldError> {
        count(object, &self.spec_replicas).into_iter().collect()
    }

    /// What is wrong with an object's count and selector of the status.
    pub fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        let selector = self.label_selector.as_deref().and_then(|path| match find(object, path) {
            Ok(Some(Value::String(_)) | None) => None,
            Ok(Some(other)) => Some(invalid(path, &json!(""), wrong_type(path, other, "string"))),
            Err(why) => Some(invalid(path, &json!(""), why)),
        });
        count(object, &self.status_replicas).into_iter().chain(selector).collect()
    }
}

fn count(object: &Value, path: &str) -> Option<FieldError> {
    let value = match find(object, path) {
        Ok(value) => value?,
        Err(why) => return Some(invalid(path, &json!(0), why)),
    };
    match value.as_i64() {
        None => Some(invalid(path, &json!(0), wrong_type(path, value, "int64"))),
        Some(count) if count < 0 => Some(invalid(path, value, "should be a non-negative integer".to_owned())),
        Some(count) if count > i64::from(i32::MAX) => {
            Some(invalid(path, value, format!("should be less than or equal to {}", i32::MAX)))
        }
        Some(_) => None,
    }
}

/// The value at a path; an error where something on the way has no fields.
fn find<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let mut here = object;
    for (index, name) in names.iter().enumerate() {
        match here {
            Value::Object(fields) => match fields.get(*name) {
                Some(value) => here = value,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(wrong_type(&names[..=index].join("."), other, "map[string]interface{}")),
        }
    }
    Ok(Some(here))
}

fn wrong_type(path: &str, value: &Value, wanted: &str) -> String {
    let (shown, type_) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(flag) => (flag.to_string(), "bool"),
        Value::Number(number) if number.is_i64() => (number.to_string(), "int64"),
        Value::Number(number) => (go::number(number), "float64"),
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        Value::Object(_) => (value.to_string(), "map[string]interface {}"),
    };
    let path = path.trim_start_matches('.');
    format!(".{path} accessor error: {shown} is of the type {type_}, expected {wanted}")
}

fn invalid(path: &str, value: &Value, detail: String) -> FieldError {
    FieldError { kind: ErrorKind::Invalid, field: path.to_owned(), value: Some(show(value)), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_neither_negative_nor_texts() {
        let scale = Scale {
            spec_replicas: ".spec.n".to_owned(),
            status_replicas: ".status.n".to_owned(),
            label_selector: Some(".status.sel".to_owned()),
        };
        let messages = |object: Value| -> Vec<String> {
            let errors = scale.validate_spec(&object).into_iter().chain(scale.validate_status(&object));
            errors.map(|error| error.to_string()).collect()
        };

        assert!(messages(json!({"spec": {"n": 3}, "status": {"sel": "a=b"}})).is_empty());
        assert_eq!(
            messages(json!({"spec": {"n": -1}, "status": {"n": "x", "sel": 1}})),
            [
                ".spec.n: Invalid value: -1: should be a non-negative integer",
                ".status.n: Invalid value: 0: .status.n accessor error: x is of the type string, expected int64",
                r#".status.sel: Invalid value: "": .status.sel accessor error: 1 is of the type int64, expected string"#,
            ]
        );
    }
}
