//! Why an apply failed, in the words and causes of the real server.

use crate::ssa::managed::{ManagedEntry, Operation};
use crate::ssa::path::PathElement;
use crate::ssa::scalar;
use crate::ssa::set::path_text;

/// A field that somebody else owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The field, as `.spec.replicas`.
    pub field: String,
    /// Its owner.
    pub manager: String,
    /// How the owner came to it.
    pub operation: Operation,
    /// The version in which the owner wrote it.
    pub api_version: String,
    /// The endpoint at which the owner wrote it; empty for the main one.
    pub subresource: String,
    /// The field, to be found in a set.
    pub(crate) path: Vec<PathElement>,
}

impl Conflict {
    pub(crate) fn new(entry: &ManagedEntry, path: Vec<PathElement>) -> Self {
        Self {
            field: path_text(&path),
            manager: entry.manager.clone(),
            operation: entry.operation,
            api_version: entry.api_version.clone(),
            subresource: entry.subresource.clone(),
            path,
        }
    }

    /// `"kubectl" with subresource "status" using apps/v1`.
    fn owner(&self) -> String {
        let mut text = scalar::quoted(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(" with subresource ");
            text.push_str(&scalar::quoted(&self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(" using ");
            text.push_str(&self.api_version);
        }
        text
    }
}

/// One entry of `Status.details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Always `FieldManagerConflict`.
    pub reason: &'static str,
    /// `conflict with "m" using v1`.
    pub message: String,
    /// `.data.a`.
    pub field: String,
}

/// Why an apply failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own some of the fields with other values: 409, reason `Conflict`.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration may not be applied as it is: 400, reason `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the stored object does not fit the schema: 500, without a reason.
    #[error("{0}")]
    Invalid(String),
}

impl ApplyError {
    /// `Status.message`.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// `Status.code`.
    pub fn code(&self) -> u16 {
        match self {
            Self::Conflicts(_) => 409,
            Self::BadRequest(_) => 400,
            Self::Invalid(_) => 500,
        }
    }

    /// `Status.reason`; empty where the real server gives none.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Conflicts(_) => "Conflict",
            Self::BadRequest(_) => "BadRequest",
            Self::Invalid(_) => "",
        }
    }

    /// `Status.details.causes`.
    pub fn causes(&self) -> Vec<Cause> {
        let Self::Conflicts(conflicts) = self else {
            return Vec::new();
        };
        let cause = |conflict: &Conflict| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", conflict.owner()),
            field: conflict.field.clone(),
        };
        conflicts.iter().map(cause).collect()
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", only.owner(), only.field);
    }
    let mut lines = Vec::new();
    for same in conflicts.chunk_by(|left, right| left.owner() == right.owner()) {
        lines.push(format!("conflicts with {}:", same[0].owner()));
        lines.extend(same.iter().map(|conflict| format!("- {}", conflict.field)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
