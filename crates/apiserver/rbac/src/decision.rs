//! A decision and why.

/// What was decided, and the words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request may go on.
    pub allowed: bool,
    /// Which binding allowed it, or what could not be looked up; often empty.
    pub reason: String,
}

impl Decision {
    /// Allowed without a word: to those who may do everything.
    pub fn privileged() -> Self {
        Self { allowed: true, reason: String::new() }
    }

    pub(crate) fn allowed_by(source: &str) -> Self {
        Self { allowed: true, reason: format!("RBAC: allowed by {source}") }
    }

    pub(crate) fn denied(unresolved: &str) -> Self {
        let reason = if unresolved.is_empty() { String::new() } else { format!("RBAC: {unresolved}") };
        Self { allowed: false, reason }
    }
}
