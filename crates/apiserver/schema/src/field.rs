//! Errors about one field of an object, worded as Kubernetes words them.

use std::fmt;

use serde_json::Value;

use crate::go;

/// What is wrong with a field. Its [`reason`](ErrorKind::reason) goes into `Status.details.causes[].reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A required field is absent.
    Required,
    /// The value is of the wrong form.
    Invalid,
    /// The value is not one of an enumeration.
    NotSupported,
    /// The field may not be set, or not be set so.
    Forbidden,
    /// The same value or key stands twice in a list.
    Duplicate,
    /// A string, list or map is too long.
    TooLong,
    /// A list has too many items.
    TooMany,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The value names something that does not exist.
    NotFound,
    /// The check itself failed.
    Internal,
}

impl ErrorKind {
    /// The `CauseType` that a client sees.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    /// The words that open the message.
    pub fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// One wrong field: `spec.replicas: Invalid value: -1: must be greater than or equal to 0`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// The field, as `spec.containers[0].name` or `metadata.labels[a/b]`.
    pub field: String,
    /// The value as it is shown in the message; `None` where the message shows none (Required, Forbidden, …).
    pub value: Option<String>,
    /// The sentence after the value; may be empty.
    pub detail: String,
}

impl FieldError {
    /// An error that shows the offending value.
    pub fn with_value(kind: ErrorKind, path: &Path<'_>, value: &Value, detail: impl Into<String>) -> Self {
        Self { kind, field: path.to_string(), value: Some(show(value)), detail: detail.into() }
    }

    /// `Invalid value`.
    pub fn invalid(path: &Path<'_>, value: &Value, detail: impl Into<String>) -> Self {
        Self::with_value(ErrorKind::Invalid, path, value, detail)
    }

    /// `Required value`.
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Required, field: path.to_string(), value: None, detail: detail.into() }
    }

    /// `Forbidden`.
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Forbidden, field: path.to_string(), value: None, detail: detail.into() }
    }

    /// `Duplicate value`.
    pub fn duplicate(path: &Path<'_>, value: &Value) -> Self {
        Self::with_value(ErrorKind::Duplicate, path, value, "")
    }

    /// `Unsupported value: "x": supported values: "a", "b"`.
    pub fn not_supported(path: &Path<'_>, value: &Value, supported: &[&str]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|s| go::quote(s)).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::with_value(ErrorKind::NotSupported, path, value, detail)
    }

    /// `Too long: may not be more than 63 bytes`.
    pub fn too_long(path: &Path<'_>, limit: u64) -> Self {
        let detail = format!("may not be more than {limit} {}", if limit == 1 { "byte" } else { "bytes" });
        Self { kind: ErrorKind::TooLong, field: path.to_string(), value: None, detail }
    }

    /// `Too many: 4: must have at most 3 items`.
    pub fn too_many(path: &Path<'_>, actual: usize, limit: u64) -> Self {
        let detail = format!("must have at most {limit} {}", if limit == 1 { "item" } else { "items" });
        Self { kind: ErrorKind::TooMany, field: path.to_string(), value: Some(actual.to_string()), detail }
    }

    /// Puts the error below a field; one about no field is then about that one.
    pub(crate) fn move_under(&mut self, base: &str) {
        self.field = match self.field.as_str() {
            "" | "<nil>" => base.to_owned(),
            field => format!("{base}.{field}"),
        };
    }

    /// The message without the field's name, as it stands in `causes[].message`.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return write!(f, "<nil>: {}", self.body());
        }
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A value as error messages show it: strings quoted, numbers as Go prints them, the rest as Go's compact JSON.
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => go::number(number),
        Value::Array(_) | Value::Object(_) => go::json(value),
    }
}

/// A path to a field, built on the way down and printed only when something is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy, Debug)]
enum PathStep<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const fn root() -> Path<'static> {
        Path { parent: None, step: PathStep::Root }
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// `parent.name`.
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: PathStep::Field(name) }
    }

    /// `parent[key]`, as for labels and annotations.
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: PathStep::Key(key) }
    }

    /// `parent[3]`.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: PathStep::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            PathStep::Root => Ok(()),
            PathStep::Field(name) if self.parent.is_some_and(|p| !matches!(p.step, PathStep::Root)) => {
                write!(f, ".{name}")
            }
            PathStep::Field(name) => f.write_str(name),
            PathStep::Key(key) => write!(f, "[{key}]"),
            PathStep::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_error_reads_as_kubernetes_words_it() {
        let root = Path::root();
        let spec = root.field("spec");
        let ports = spec.field("ports");
        let first = ports.index(0);
        let name = first.field("name");
        let error = FieldError::invalid(&name, &json!("A b"), "must be lower case");

        assert_eq!(error.to_string(), r#"spec.ports[0].name: Invalid value: "A b": must be lower case"#);
        assert_eq!(FieldError::required(&ports, "").to_string(), "spec.ports: Required value");
    }
}
