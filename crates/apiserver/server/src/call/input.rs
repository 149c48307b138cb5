//! A request's body → an object of the resource.

use serde_json::{Value, json};

use super::Call;
use super::options::FieldValidation;
use crate::decode::{self, BodyFormat, Decoded};
use crate::object;
use crate::status::ApiError;
use crate::warnings;

impl Call {
    /// The object in the body: decoded, of the right kind, without unknown fields, with defaults.
    pub(crate) fn object_from_body(&mut self, validation: FieldValidation) -> Result<Value, ApiError> {
        let (decoded, validation) = match decode::body_format(&self.content_type)? {
            // A field that is not known has no name to complain of.
            BodyFormat::Protobuf => (self.object_from_protobuf()?, FieldValidation::Ignore),
            format => (decode::decode(&self.body, format).map_err(|error| self.unreadable(&error))?, validation),
        };
        let value = self.typed(decoded.value)?;
        let (mut value, complaints) = self.read_object(Decoded { value, ..decoded }, validation)?;
        self.warnings.tell(|| complaints);
        let doubled = warnings::drop_duplicate_owners(&mut value);
        self.warnings.tell(|| doubled);
        Ok(value)
    }

    fn unreadable(&self, error: &str) -> ApiError {
        let shown = if self.body.is_empty() { " (<empty>)" } else { "" };
        self.unrecognized(&format!("couldn't get version/kind; json parse error: {error}{shown}"))
    }

    pub(super) fn unrecognized(&self, why: &str) -> ApiError {
        let kind = &self.resource.kind;
        ApiError::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why}"))
    }

    /// Checks `kind` and `apiVersion`, and fills them in where a built-in kind may leave them out.
    pub(super) fn typed(&self, mut value: Value) -> Result<Value, ApiError> {
        let Some(fields) = value.as_object_mut() else {
            return Err(self.unreadable("json: cannot unmarshal into Go value of type struct"));
        };
        for field in ["apiVersion", "kind"] {
            if let Some(wrong) = fields.get(field).filter(|v| !v.is_string() && !v.is_null()) {
                let word = decode::type_word(wrong);
                return Err(self.unreadable(&format!(
                    "json: cannot unmarshal {word} into Go struct field .{field} of type string"
                )));
            }
        }
        let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let expected = self.resource.api_version();
        if self.resource.custom().is_some() {
            if kind.is_empty() {
                return Err(self.unrecognized(&format!("Object 'Kind' is missing in '{value}'")));
            }
            if api_version.is_empty() {
                return Err(self.unrecognized(&format!("Object 'apiVersion' is missing in '{value}'")));
            }
        }
        if api_version.matches('/').count() > 1 {
            let why = format!("couldn't get version/kind; unexpected GroupVersion string: {api_version}");
            return Err(self.unrecognized(&why));
        }
        if let Some(error) = self.wrong_type(&kind, &api_version, &value) {
            return Err(error);
        }
        let fields = value.as_object_mut().expect("checked above");
        fields.insert("kind".to_owned(), json!(self.resource.kind));
        fields.insert("apiVersion".to_owned(), json!(expected));
        Ok(value)
    }

    /// What is wrong with a body's `kind` and `apiVersion`.
    fn wrong_type(&self, kind: &str, api_version: &str, value: &Value) -> Option<ApiError> {
        let resource = &self.resource;
        let expected = resource.api_version();
        let same_version = api_version.is_empty() || api_version == expected;
        let same_kind = kind.is_empty() || kind == resource.kind;
        if same_version && same_kind {
            return None;
        }
        let given = if api_version.is_empty() { expected.as_str() } else { api_version };
        let named = if kind.is_empty() { resource.kind.as_str() } else { kind };
        if resource.custom().is_none() {
            let version = given.rsplit('/').next().unwrap_or_default();
            let opening = format!("{named} in version {version:?} cannot be handled as a {}", resource.kind);
            let known = self.registry.by_kind(given, named).is_some()
                || named
                    .strip_suffix("List")
                    .is_some_and(|item| item.is_empty() || self.registry.by_kind(given, item).is_some());
            if !known {
                return Some(ApiError::bad_request(format!("{opening}: {}", unregistered(named, given))));
            }
            // A scale is converted from whatever is sent; other versions of other kinds are not even looked at.
            if same_version || resource.is("autoscaling", "scales") {
                return Some(ApiError::bad_request(format!("{opening}: {}", self.no_conversion(version, named))));
            }
        }
        if !same_version {
            return Some(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )));
        }
        let root = portolan_schema::Path::root();
        let detail = format!("must be {}", resource.kind);
        let error = portolan_schema::FieldError::invalid(&root.field("kind"), &json!(kind), detail);
        Some(ApiError::invalid(&resource.group, kind, object::name(value), &[error]))
    }

    /// What the real server says of a kind that is not the resource's.
    pub(super) fn no_conversion(&self, version: &str, kind: &str) -> String {
        let group = self.resource.group.split('.').next().unwrap_or_default();
        let internal = if group.is_empty() { "core" } else { group };
        format!("converting ({version}.{kind}) to ({internal}.{}): unknown conversion", self.resource.kind)
    }

    /// Drops unknown fields and fills in defaults; answers what to warn of.
    pub(super) fn read_object(
        &self,
        decoded: Decoded,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let Decoded { mut value, duplicates } = decoded;
        let unknown = self.resource.read(&mut value).map_err(|error| self.cannot_handle(&error))?;
        let complaints = complaints(&duplicates, &unknown, validation).map_err(|error| self.cannot_handle(&error))?;
        self.resource.default(&mut value);
        Ok((value, complaints))
    }

    pub(super) fn cannot_handle(&self, error: &str) -> ApiError {
        let (kind, version) = (&self.resource.kind, &self.resource.version);
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
    }

    /// Checks the body's namespace and name against the path, and fills them in where the body leaves them out.
    pub(crate) fn place(&self, value: &mut Value, named: bool) -> Result<(), ApiError> {
        let given = object::namespace(value);
        if self.resource.namespaced {
            if !given.is_empty() && given != self.target.namespace {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            let namespace = json!(self.target.namespace);
            object::set_meta(value, "namespace", Some(namespace));
        } else {
            object::set_meta(value, "namespace", None);
        }
        if named {
            let given = object::name(value);
            if !given.is_empty() && given != self.target.name {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({given}) does not match the name on the URL ({})",
                    self.target.name
                )));
            }
            if given.is_empty() {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({} based on URL) was undeterminable: name must be provided",
                    self.target.name
                )));
            }
        }
        Ok(())
    }
}

/// What to warn of; an error where that is asked for instead.
pub(super) fn complaints(
    duplicates: &[String],
    unknown: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, String> {
    let duplicates = duplicates.iter().map(|path| format!("duplicate field {path:?}"));
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    let complaints: Vec<String> = duplicates.chain(unknown).collect();
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !complaints.is_empty() => {
            Err(format!("strict decoding error: {}", complaints.join(", ")))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(complaints),
    }
}

/// What the real server says of a kind that it does not know.
pub(super) fn unregistered(kind: &str, api_version: &str) -> String {
    format!(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    )
}
