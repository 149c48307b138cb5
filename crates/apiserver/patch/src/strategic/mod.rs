//! A live object and a strategic merge patch → the patched object, as kube-apiserver merges built-in kinds.
//!
//! Maps are merged key by key and null removes. Lists are replaced unless the schema names a merge strategy; then items
//! are told apart by the merge key, or by their value where they are scalars. Directives in the patch say the rest:
//! `$patch`, `$retainKeys`, `$setElementOrder/FIELD` and `$deleteFromPrimitiveList/FIELD`.

mod clean;
mod element_order;
mod error;
mod field;
mod list;
mod map;
mod order;
mod print;
mod slots;

use portolan_schema::Cursor;
use serde_json::{Map, Value};

pub use error::StrategicError;
pub use print::print;

pub(crate) type Fields = Map<String, Value>;

/// What came of a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The patched object. Directives that the merge did not look at are still in it, as fields that nobody knows.
    pub object: Value,
    /// What is left of the patch: the real server takes directives out of it as they are carried out, and shows the rest
    /// in messages.
    pub patch: Value,
}

/// Merges a patch into the live object of a kind with that schema. Nothing but a JSON object changes anything.
pub fn merge(live: &Value, patch: &Value, schema: Cursor<'_>) -> Result<Merged, StrategicError> {
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut patch = fields(patch);
    let object = map::merge(fields(live), &mut patch, schema)?;
    Ok(Merged { object: Value::Object(object), patch: Value::Object(patch) })
}
