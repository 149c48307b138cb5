//! A strategic merge patch and a live object of a built-in kind → the object that is wanted.

use portolan_builtin::unstructured;
use portolan_patch::strategic::{Merged, StrategicError};
use portolan_schema::Cursor;
use serde_json::{Value, json};

use super::Call;
use super::options::FieldValidation;
use super::patch::{invalid_patch, refused_patch, unapplicable};
use crate::decode::{self, BodyFormat, Decoded};
use crate::status::ApiError;

impl Call {
    /// A strategic merge patch in the body.
    pub(super) fn read_strategic(&self) -> Result<Decoded, String> {
        let decoded = decode::decode(&self.body, BodyFormat::Json)?;
        match &decoded.value {
            Value::Object(_) | Value::Null => Ok(decoded),
            other => {
                let word = decode::type_word(other);
                Err(format!("json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"))
            }
        }
    }

    /// The live object after a strategic merge patch.
    pub(super) fn merged(
        &self,
        live: &Value,
        patch: &Decoded,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let definition = self.resource.builtin_kind().ok_or_else(ApiError::unsupported_patch)?.definition;
        let merged = merge_strategically(live, &patch.value, self.resource.cursor(), definition)?;
        let Merged { object: mut value, patch: rest } = merged;
        // What a patch says about the kind is not looked at.
        value["kind"] = json!(self.resource.kind);
        value["apiVersion"] = json!(self.resource.api_version());
        let decoded = Decoded { value, duplicates: patch.duplicates.clone() };
        let shown = portolan_patch::strategic::print(&rest);
        let read = self.read_object(decoded, validation);
        let (mut value, complaints) = read.map_err(|e| refused_patch(&shown, &e, &self.cannot_handle("")))?;
        self.place(&mut value, true)?;
        Ok((value, complaints))
    }
}

/// A strategic merge, with an outcome that fits the Go type of that definition.
pub(super) fn merge_strategically(
    live: &Value,
    patch: &Value,
    schema: Cursor<'_>,
    definition: &str,
) -> Result<Merged, ApiError> {
    let mut merged = portolan_patch::strategic::merge(live, patch, schema).map_err(|e| strategic_error(&e))?;
    unstructured::take_over(definition, &mut merged.object)
        .map_err(|why| invalid_patch(&portolan_patch::strategic::print(&merged.patch), &why))?;
    Ok(merged)
}

fn strategic_error(error: &StrategicError) -> ApiError {
    match error {
        StrategicError::Malformed(_) | StrategicError::Incomparable => ApiError::bad_request(error.to_string()),
        StrategicError::ListOfLists => unapplicable(),
        StrategicError::Unforeseen(_) => ApiError::unexpected(error.to_string()),
    }
}
