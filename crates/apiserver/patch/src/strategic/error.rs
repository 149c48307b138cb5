//! Why a patch cannot be merged, in the real server's words.

use serde_json::Value;

use crate::strategic::Fields;
use crate::strategic::print::{print, print_as_text, type_name};

/// A patch that cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// A directive is written wrongly: 400.
    #[error("invalid patch format of {0}")]
    Malformed(&'static str),
    /// Lists of lists are not merged: 422.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// What the real server did not foresee, and answers with 500 and these words.
    #[error("{0}")]
    Unforeseen(String),
    /// The real server panics on this patch, and its answer breaks off.
    #[error("the patch has directives for a list that holds maps without a merge key, or null")]
    Incomparable,
}

impl StrategicError {
    pub(crate) const DELETION_LIST: Self = Self::Malformed("primitive list");
    pub(crate) const RETAIN_KEYS: Self = Self::Malformed("retainKeys");
    pub(crate) const ELEMENT_ORDER: Self = Self::Malformed("setElementOrder list");

    pub(crate) fn no_merge_key(item: &Fields, key: &str) -> Self {
        let item = print(&Value::Object(item.clone()));
        Self::Unforeseen(format!("map: {item} does not contain declared merge key: {key}"))
    }

    pub(crate) fn not_a_list(found: &Value) -> Self {
        Self::Unforeseen(format!("expected a []interface {{}}, but received a {}", type_name(found)))
    }

    pub(crate) fn not_a_map(found: &Value) -> Self {
        Self::Unforeseen(format!("expected a map[string]interface {{}}, but received a {}", type_name(found)))
    }

    pub(crate) fn unknown_directive(directive: &Value, item: &Fields) -> Self {
        let item = print(&Value::Object(item.clone()));
        Self::Unforeseen(format!("unknown patch type: {} in map: {item}", print_as_text(directive)))
    }
}
