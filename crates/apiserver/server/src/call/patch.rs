//! `PATCH`: JSON patch, merge patch, strategic merge patch and server-side apply.

use http::StatusCode;
use portolan_patch::ssa::{ApplyError, Force};
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::Call;
use super::options::{FieldValidation, WriteOptions};
use super::update::{SentUpdate, UpdateResult, reset_fields};
use crate::answer::Answer;
use crate::decode::{self, BodyFormat, Decoded};
use crate::object;
use crate::status::{ApiError, Cause};
use crate::strategy::ObjectPart;

/// Most operations of one JSON patch.
const MOST_OPERATIONS: usize = 10_000;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The kinds of patch, by media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(super) fn of(content_type: &str, custom: bool) -> Result<Self, ApiError> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            JSON_PATCH => Ok(Self::Json),
            MERGE_PATCH => Ok(Self::Merge),
            APPLY_PATCH => Ok(Self::Apply),
            STRATEGIC_PATCH if custom => Err(ApiError::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH])),
            STRATEGIC_PATCH => Ok(Self::Strategic),
            _ => Err(ApiError::unsupported_patch()),
        }
    }
}

/// A patch that was read.
pub(super) enum PatchEdit {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Decoded),
}

impl Call {
    pub(super) async fn patch(&mut self, part: ObjectPart) -> Result<Answer, ApiError> {
        let kind = PatchKind::of(&self.content_type, self.resource.custom().is_some())?;
        let options = self.write_options("PatchOptions", kind == PatchKind::Apply)?;
        if kind == PatchKind::Apply {
            return self.apply(part, &options).await;
        }
        let edit = self.read_edit(kind);
        let intend = |live: &Value| {
            // An object that is not there is missed before the patch is looked at.
            let edit = edit.as_ref().map_err(Clone::clone)?;
            let (new, complaints) = self.edited(live, edit, options.field_validation)?;
            self.warnings.tell(|| complaints);
            let mut new = self.own_update(live, new, &options, &self.target.subresource);
            self.admit_update(&mut new, live)?;
            Ok(new)
        };
        let object = self.change(part, options.dry_run, SentUpdate::Edit, intend).await?.into_object();
        Ok(self.show(StatusCode::OK, &object))
    }

    pub(super) fn read_edit(&self, kind: PatchKind) -> Result<PatchEdit, ApiError> {
        if kind == PatchKind::Strategic {
            return self.read_strategic().map(PatchEdit::Strategic).map_err(ApiError::bad_request);
        }
        let decoded = decode::decode(&self.body, BodyFormat::Json)
            .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))?;
        let value = decoded.value;
        let mistyped = |value: &Value, go: &str| {
            let word = decode::type_word(value);
            ApiError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {word} into Go value of type {go}"
            ))
        };
        match (kind, &value) {
            (PatchKind::Json, Value::Array(operations)) if operations.len() > MOST_OPERATIONS => {
                Err(ApiError::too_many_operations(MOST_OPERATIONS, operations.len()))
            }
            (PatchKind::Json, Value::Array(_)) => {
                serde_json::from_value(value).map(PatchEdit::Json).map_err(|_| unapplicable())
            }
            (PatchKind::Json, other) => Err(mistyped(other, "[]handlers.jsonPatchOp")),
            (PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply, Value::Object(_)) => {
                Ok(PatchEdit::Merge(value))
            }
            (PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply, other) => {
                Err(mistyped(other, "map[string]interface {}"))
            }
        }
    }

    /// The live object after a patch, read anew as if a client had sent it.
    fn edited(
        &self,
        live: &Value,
        edit: &PatchEdit,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut value = live.clone();
        match edit {
            PatchEdit::Json(patch) => patch_json(&mut value, patch)?,
            PatchEdit::Merge(patch) => json_patch::merge(&mut value, patch),
            PatchEdit::Strategic(patch) => return self.merged(live, patch, validation),
        }
        let patched = value.to_string();
        let value = self.reread(value).map_err(|e| refused_patch(&patched, &e, &self.cannot_handle("")))?;
        let decoded = Decoded { value, duplicates: Vec::new() };
        let (mut value, complaints) =
            self.read_object(decoded, validation).map_err(|e| refused_patch(&patched, &e, &self.cannot_handle("")))?;
        self.place(&mut value, true)?;
        Ok((value, complaints))
    }

    /// A patch may not make another kind of the object.
    fn reread(&self, value: Value) -> Result<Value, ApiError> {
        if !value.is_object() {
            return Err(unapplicable());
        }
        self.typed(value)
    }

    /// What an apply asks for.
    pub(super) fn read_applied(&self) -> Result<Value, ApiError> {
        let decoded = decode::decode(&self.body, BodyFormat::Yaml)
            .map_err(|e| ApiError::bad_request(format!("error decoding YAML: {e}")))?;
        let config = decoded.value;
        if !config.is_object() {
            return Err(ApiError::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                decode::type_word(&config)
            )));
        }
        Ok(config)
    }

    async fn apply(&mut self, part: ObjectPart, options: &WriteOptions) -> Result<Answer, ApiError> {
        let config = self.read_applied()?;
        let force = if options.force { Force::Yes } else { Force::No };
        let key = self.resource.key(&self.target.namespace, &self.target.name);
        if self.api.store.get(&key).is_none() {
            return self.create_by_apply(part, &config, force, options).await;
        }
        let intend = |live: &Value| self.applied(live, &config, force, options);
        let outcome: UpdateResult = self.change(part, options.dry_run, SentUpdate::Edit, intend).await?;
        let object = outcome.into_object();
        Ok(self.show(StatusCode::OK, &object))
    }

    async fn create_by_apply(
        &mut self,
        part: ObjectPart,
        config: &Value,
        force: Force,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        let name = &self.target.name;
        if part != ObjectPart::Main {
            return Err(ApiError::not_found(self.resource.about(name)));
        }
        let uid = object::meta_text(config, "uid");
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(ApiError::conflict(self.resource.about(name), &why));
        }
        self.check_namespace(name)?;
        let empty = json!({
            "apiVersion": self.resource.api_version(), "kind": self.resource.kind, "metadata": {},
        });
        let mut value = self.applied(&empty, config, force, options)?;
        let version = object::meta_text(&value, "resourceVersion");
        if !version.is_empty() && version.parse::<u64>().is_err() {
            return Err(ApiError::unexpected(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")));
        }
        if !options.dry_run {
            object::set_meta(&mut value, "resourceVersion", None);
        }
        self.admit_create(&mut value).await?;
        let created = self.insert(value, options.dry_run).await?;
        Ok(self.show(StatusCode::CREATED, &created))
    }

    /// The live object after an apply.
    fn applied(&self, live: &Value, config: &Value, force: Force, options: &WriteOptions) -> Result<Value, ApiError> {
        let api_version = self.resource.api_version();
        let (now, reset) = (self.api.now(), reset_fields(&self.resource, &self.target.subresource));
        let context = portolan_patch::ssa::Context {
            manager: &options.manager,
            api_version: &api_version,
            subresource: &self.target.subresource,
            now: &now,
            schema: self.resource.cursor(),
            reset,
        };
        let merged = portolan_patch::ssa::apply(live, config, &context, force).map_err(|e| apply_error(&e))?;
        let mut value = merged;
        self.resource.read(&mut value).map_err(|error| self.cannot_handle(&error))?;
        self.resource.default_applied(&mut value);
        self.place(&mut value, true)?;
        Ok(value)
    }
}

/// JSON patch as the real server reads it: to replace a key that is not there is to add it, and a key that is not there
/// is null to a test.
pub(super) fn patch_json(value: &mut Value, patch: &json_patch::Patch) -> Result<(), ApiError> {
    use json_patch::{AddOperation, PatchOperation};
    for operation in &patch.0 {
        let path = operation.path();
        let in_object = path.parent().and_then(|parent| value.pointer(parent.as_str())).is_some_and(Value::is_object);
        let lenient = match operation {
            PatchOperation::Replace(replace) if in_object => {
                PatchOperation::Add(AddOperation { path: replace.path.clone(), value: replace.value.clone() })
            }
            PatchOperation::Test(test)
                if in_object && test.value.is_null() && value.pointer(path.as_str()).is_none() =>
            {
                continue;
            }
            other => other.clone(),
        };
        json_patch::patch(value, std::slice::from_ref(&lenient)).map_err(|_| unapplicable())?;
    }
    Ok(())
}

pub(super) fn unapplicable() -> ApiError {
    ApiError::unprocessable("the server rejected our request due to an error in our request")
}

/// What makes a patched object unreadable is said of the patch.
pub(super) fn refused_patch(patched: &str, error: &ApiError, opening: &ApiError) -> ApiError {
    let detail = match error.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "))
    {
        Some((_, why)) => why,
        None => error.message.strip_prefix(&opening.message).unwrap_or(&error.message),
    };
    invalid_patch(patched, detail)
}

pub(super) fn invalid_patch(patch: &str, why: &str) -> ApiError {
    let root = Path::root();
    let error = FieldError::invalid(&root.field("patch"), &json!(patch), why);
    ApiError::invalid("", "", "", &[error])
}

pub(super) fn apply_error(error: &ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(_) => {
            let causes = error.causes().into_iter().map(|c| Cause {
                reason: c.reason.to_owned(),
                message: c.message,
                field: c.field,
            });
            ApiError::apply_conflict(error.message(), causes.collect())
        }
        ApplyError::BadRequest(message) => ApiError::bad_request(message),
        ApplyError::Invalid(message) => ApiError::unexpected(message),
    }
}
